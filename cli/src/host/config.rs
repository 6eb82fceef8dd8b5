//! host.toml: what a host is told about itself, checked as a whole.
//!
//! All problems of a file are reported together, each with the field, what stands there and
//! what may. An unknown key is a problem: a misspelt one would otherwise be a silent default.

use super::keys::HOST;
use crate::problem::Problem;
use std::net::{IpAddr, Ipv4Addr};
use windlass_agent_host::basics::Basics;
use windlass_kit::config;
use windlass_protocol::config::{Node, Reader};
use windlass_protocol::{Bytes, MilliCpu};

/// What a host is told about itself.
#[derive(Clone, Debug, PartialEq)]
pub struct HostConfig {
    /// What agent.toml says, too.
    pub basics: Basics,
    /// What may be reserved for VMs.
    pub node: NodeConfig,
}

/// What may be reserved for VMs, as far as the file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeConfig {
    /// vCPUs; absent: the host's count.
    pub cpu: Option<MilliCpu>,
    /// Memory.
    pub memory: NodeMemory,
}

/// Memory that may be reserved for VMs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeMemory {
    /// This much.
    Exactly(Bytes),
    /// The host's, less this.
    AllBut(Bytes),
}

// === impl HostConfig ===

impl HostConfig {
    /// Checks what host.toml says.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn from_text(text: &str) -> Result<Self, Vec<Problem>> {
        let mut file = config::read(&HOST, text)?;
        // Every key is looked at, also when an earlier one is wrong.
        let config = Self {
            basics: Basics::read(&mut file, IpAddr::V4(Ipv4Addr::LOCALHOST)),
            node: NodeConfig::read(&mut file),
        };
        config.basics.check(&mut file);
        file.finish(Some(config))
    }
}

// === impl NodeConfig ===

impl NodeConfig {
    fn read(file: &mut Reader) -> Self {
        let cpu = file.find("node.cpu");
        if let (Some(memory), Some(reserved)) =
            (file.peek("node.memory"), file.peek("node.reserved"))
        {
            let both = format!("{memory} and node.reserved = {reserved}");
            file.wrong("node.memory", both, "say one of the two, not both");
        }
        let exactly = file.find("node.memory").map(NodeMemory::Exactly);
        let reserved = file.get_with("node.reserved", Node::memory);
        Self { cpu, memory: exactly.unwrap_or(NodeMemory::AllBut(reserved)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_only_read_at_the_start_waits_for_the_next() {
        let before = HostConfig::from_text("").unwrap();
        let waits =
            |text| HostConfig::from_text(text).unwrap().basics.needs_restart(&before.basics);
        assert_eq!(waits("[node]\ncpu = 3\nmemory = \"2GiB\""), [""; 0]);
        let all = "state_dir = \"/s\"\nvms_dir = \"/v\"\nsocket = \"/x\"\n\
                   admin = \"127.0.0.2:1\"\ncallback_listen = \"127.0.0.3\"\n\
                   callback_ports = \"5-6\"\ncpu_limit = \"trust\"\n\
                   [compute_unit]\ncpu = 2\n";
        let names = [
            "state_dir",
            "vms_dir",
            "socket",
            "admin",
            "callback_listen",
            "callback_ports",
            "cpu_limit",
            "compute_unit",
        ];
        assert_eq!(waits(all), names);
    }
}
