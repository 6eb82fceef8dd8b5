//! host.toml: what a host is told about itself, checked as a whole.
//!
//! All problems of a file are reported together, each with the field, what stands there and
//! what may. An unknown key is a problem: a misspelt one would otherwise be a silent default.

use super::keys::HOST;
use super::together::{Listeners, is_one_host};
use crate::problem::Problem;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use windlass_kit::config;
use windlass_protocol::config::{Node, Reader};
use windlass_protocol::{Bytes, MilliCpu, UnitChoice};

/// What a host is told about itself.
#[derive(Clone, Debug, PartialEq)]
pub struct HostConfig {
    /// Where it keeps what survives a restart.
    pub state_dir: PathBuf,
    /// Where it looks for VM files.
    pub vms_dir: PathBuf,
    /// Where the command line reaches it.
    pub socket: PathBuf,
    /// Where health and metrics are served.
    pub admin: SocketAddr,
    /// Where informants call back.
    pub callback_listen: IpAddr,
    /// One port per VM.
    pub callback_ports: RangeInclusive<u16>,
    /// Whether a parked vCPU leaves the books.
    pub trust_guest_parking: bool,
    /// What may be reserved for VMs.
    pub node: NodeConfig,
    /// What is said of the step that sizes move in.
    pub unit: UnitChoice,
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
    pub(crate) fn listeners(&self) -> Listeners<'_> {
        Listeners {
            file: "host.toml",
            vms_dir: &self.vms_dir,
            socket: &self.socket,
            admin: self.admin,
            callback_listen: self.callback_listen,
            callback_ports: self.callback_ports.clone(),
        }
    }

    /// Checks what host.toml says.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn from_text(text: &str) -> Result<Self, Vec<Problem>> {
        let mut file = config::read(&HOST, text)?;
        // Every key is looked at, also when an earlier one is wrong.
        let config = Self {
            state_dir: file.get("state_dir"),
            vms_dir: file.get("vms_dir"),
            socket: file.get("socket"),
            admin: file.get("admin"),
            callback_listen: file.get("callback_listen"),
            callback_ports: file.get("callback_ports"),
            trust_guest_parking: file.get("trust_guest_parking"),
            node: NodeConfig::read(&mut file),
            unit: UnitChoice::read(&mut file),
        };
        config.combinations(&mut file);
        file.finish(Some(config))
    }

    /// What differs from `other` and is only read at the start.
    pub fn needs_restart(&self, other: &Self) -> Vec<&'static str> {
        [
            ("state_dir", self.state_dir != other.state_dir),
            ("vms_dir", self.vms_dir != other.vms_dir),
            ("socket", self.socket != other.socket),
            ("admin", self.admin != other.admin),
            ("callback_listen", self.callback_listen != other.callback_listen),
            ("callback_ports", self.callback_ports != other.callback_ports),
            ("trust_guest_parking", self.trust_guest_parking != other.trust_guest_parking),
            ("compute_unit", self.unit != other.unit),
        ]
        .into_iter()
        .filter_map(|(name, differs)| differs.then_some(name))
        .collect()
    }

    /// What is right by itself and wrong together.
    fn combinations(&self, file: &mut Reader) {
        if self.state_dir == self.vms_dir && file.are_sound(&["state_dir", "vms_dir"]) {
            let dir = self.vms_dir.display();
            file.wrong("vms_dir", dir, "must not be the same folder as state_dir");
        }
        let Self { admin, callback_listen, callback_ports, .. } = self;
        let same_address = is_one_host(admin.ip(), *callback_listen);
        let sound = file.are_sound(&["admin", "callback_listen", "callback_ports"]);
        if sound && same_address && callback_ports.contains(&admin.port()) {
            let ports = format!("{}-{}", callback_ports.start(), callback_ports.end());
            let limit = format!("must not contain {}, the port of admin", admin.port());
            file.wrong("callback_ports", ports, &limit);
        }
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
        let waits = |text| HostConfig::from_text(text).unwrap().needs_restart(&before);
        assert_eq!(waits("[node]\ncpu = 3\nmemory = \"2GiB\""), [""; 0]);
        let all = "state_dir = \"/s\"\nvms_dir = \"/v\"\nsocket = \"/x\"\n\
                   admin = \"127.0.0.2:1\"\ncallback_listen = \"127.0.0.3\"\n\
                   callback_ports = \"5-6\"\ntrust_guest_parking = true\n\
                   [compute_unit]\ncpu = 2\n";
        let names = [
            "state_dir",
            "vms_dir",
            "socket",
            "admin",
            "callback_listen",
            "callback_ports",
            "trust_guest_parking",
            "compute_unit",
        ];
        assert_eq!(waits(all), names);
    }
}
