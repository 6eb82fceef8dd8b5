//! How much of this host may be reserved for VMs.

use super::config::{NodeConfig, NodeMemory};
use crate::problem::Problem;
use windlass_protocol::{Bytes, MilliCpu, Resources};

/// What this machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Machine {
    /// CPUs that this process may run on.
    pub(crate) cpu: MilliCpu,
    /// Memory in all, if the kernel says.
    pub(crate) memory: Option<Bytes>,
}

// === impl Machine ===

impl Machine {
    /// Asks the kernel.
    pub(crate) fn here() -> Self {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        Self {
            cpu: MilliCpu::from_cores(u64::try_from(cpus).unwrap_or(u64::MAX)),
            memory: total(&meminfo),
        }
    }

    /// What `host.toml` gives VMs beyond what this machine has. Allowed: VMs seldom use all that they
    /// have. Also what a typing error looks like.
    pub(crate) fn overcommitted(self, node: NodeConfig) -> Vec<Problem> {
        let cpu = node.cpu.filter(|cpu| *cpu > self.cpu).map(|cpu| {
            let limit = format!("is more than this machine has, which is {} vCPU", self.cpu);
            Problem::new("node.cpu", cpu, limit)
        });
        let memory = match (node.memory, self.memory) {
            (NodeMemory::Exactly(memory), Some(has)) if memory > has => {
                let limit = format!("is more than this machine has, which is {has}");
                Some(Problem::new("node.memory", memory, limit))
            }
            (NodeMemory::Exactly(_) | NodeMemory::AllBut(_), _) => None,
        };
        cpu.into_iter().chain(memory).collect()
    }

    /// What may be reserved for VMs.
    pub(crate) fn room(self, node: NodeConfig) -> Result<Resources, Problem> {
        let cpu = node.cpu.unwrap_or(self.cpu);
        let mem = match (node.memory, self.memory) {
            (NodeMemory::Exactly(memory), _) => memory,
            (NodeMemory::AllBut(reserved), Some(has)) if reserved < has => {
                has.saturating_sub(reserved)
            }
            (NodeMemory::AllBut(reserved), Some(has)) => {
                let limit = format!("must be less than the host's memory, which is {has}");
                return Err(Problem::new("node.reserved", reserved, limit));
            }
            (NodeMemory::AllBut(_), None) => {
                let limit = "is needed: the kernel does not say how much memory the host has";
                return Err(Problem::without_value("node.memory", limit));
            }
        };
        Ok(Resources { cpu, mem })
    }
}

fn total(meminfo: &str) -> Option<Bytes> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    Some(Bytes::from_kib(kib))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINE: Machine =
        Machine { cpu: MilliCpu::from_cores(2), memory: Some(Bytes::from_gib(4)) };

    #[test]
    fn what_the_file_leaves_open_the_machine_says() {
        let node = |cpu, memory| NodeConfig { cpu, memory };
        let six = Some(MilliCpu::from_cores(6));
        let exactly = NodeMemory::Exactly(Bytes::from_gib(9));
        let room = MACHINE.room(node(six, exactly)).unwrap();
        assert_eq!(room.to_string(), "6 vCPU / 9GiB");
        let room = MACHINE.room(node(None, NodeMemory::AllBut(Bytes::from_gib(1)))).unwrap();
        assert_eq!(room.to_string(), "2 vCPU / 3GiB");
    }

    #[test]
    fn what_goes_beyond_the_machine_is_named_and_what_it_has_is_not() {
        let said = |cpu, memory| {
            let node = NodeConfig { cpu: Some(MilliCpu::from_cores(cpu)), memory };
            let problems = MACHINE.overcommitted(node);
            problems.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(
            said(400, NodeMemory::Exactly(Bytes::from_gib(900))),
            [
                "node.cpu = 400: is more than this machine has, which is 2 vCPU",
                "node.memory = 900GiB: is more than this machine has, which is 4GiB",
            ]
        );
        assert!(said(2, NodeMemory::Exactly(Bytes::from_gib(4))).is_empty());
        assert!(said(1, NodeMemory::AllBut(Bytes::from_gib(1))).is_empty());
    }

    #[test]
    fn a_host_that_would_have_nothing_left_is_refused() {
        let all = NodeConfig { cpu: None, memory: NodeMemory::AllBut(Bytes::from_gib(4)) };
        let problem = MACHINE.room(all).unwrap_err().to_string();
        assert_eq!(
            problem,
            "node.reserved = 4GiB: must be less than the host's memory, which is 4GiB"
        );
        let silent = Machine { memory: None, ..MACHINE };
        assert!(silent.room(all).unwrap_err().to_string().starts_with("node.memory: "));
    }

    #[test]
    fn the_kernels_line_is_found() {
        assert_eq!(total("MemTotal:  2048 kB\nMemFree: 1 kB\n"), Some(Bytes::from_mib(2)));
        assert_eq!(total("MemTotal: lots\n"), None);
    }
}
