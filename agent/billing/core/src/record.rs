//! Records of a meter, in the form in which the shell stores them.

use crate::Endpoint;
use serde::{Deserialize, Serialize};
use windlass_protocol::{MilliCpu, Moment, Sequence, VmName};

/// The size of one VM, and the billed endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Allocation {
    /// The VM. One that was made anew under an old name is the same to this crate.
    pub vm: VmName,
    /// The billed endpoint.
    pub endpoint: Endpoint,
    /// The VM's vCPUs.
    pub cpu: MilliCpu,
}

// === impl Allocation ===

impl Allocation {
    /// What a VM has on a host without a cluster, where its name is its endpoint. `None` where that is
    /// no endpoint: then the VM cannot be billed.
    pub fn on_host(vm: VmName, cpu: MilliCpu) -> Option<Self> {
        let endpoint = Endpoint::try_from(vm.name.clone()).ok()?;
        Some(Self { vm, endpoint, cpu })
    }
}

/// One step of a meter, with all its decisions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Record {
    /// VMs were looked at.
    Seen {
        /// When.
        at: Moment,
        /// The milliseconds before `at` for which VMs that were seen before too are billed.
        span: u64,
        /// Every VM that is there, each once.
        vms: Vec<Allocation>,
        /// Endpoints that are gone, and of which nothing whole is left.
        forget: Vec<Endpoint>,
    },
    /// The windows of these endpoints end; what is whole goes into the queue.
    Ended {
        /// In the order of their events.
        endpoints: Vec<Endpoint>,
    },
    /// The receiver has every event up to this one.
    Delivered {
        /// The number of the last one.
        through: Sequence,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_vm_is_its_endpoint_if_it_can_be_one() {
        let cpu = MilliCpu::from_cores(3);
        let named = |name: &str| Allocation::on_host(VmName::on_host(name), cpu);
        let billed = named("db1").map(|billed| (billed.endpoint.to_string(), billed.cpu));
        assert_eq!(billed, Some(("db1".to_owned(), cpu)));
        assert_eq!(named("two words"), None);
    }
}
