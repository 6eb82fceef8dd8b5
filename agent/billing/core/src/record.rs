//! What happened, in the form in which it is written down.

use crate::Endpoint;
use serde::{Deserialize, Serialize};
use windlass_protocol::status::{SessionState, VmStatus};
use windlass_protocol::{MilliCpu, Moment, Sequence, VmName, Waiting};

/// What one VM has, and who is billed for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Allocation {
    /// The VM. One that was made anew under an old name is the same to this crate.
    pub vm: VmName,
    /// Who is billed.
    pub endpoint: Endpoint,
    /// vCPUs that it has.
    pub cpu: MilliCpu,
}

// === impl Allocation ===

impl Allocation {
    /// What is billed of a VM to this endpoint: the vCPUs that the books must cover. A guest that says
    /// that it uses fewer is believed as far as the books believe it, and no further. `None` before
    /// its hypervisor has said what it has, and while it does not answer: old figures are not billed.
    /// `None` too while another agent acts on it, which bills it.
    pub fn of(status: &VmStatus, endpoint: Endpoint) -> Option<Self> {
        let lost = status.waiting.contains(&Waiting::HypervisorLost);
        if lost || status.session == SessionState::Suspended {
            return None;
        }
        Some(Self { vm: status.name.clone(), endpoint, cpu: status.upper?.cpu })
    }

    /// The same for a VM of a host without a cluster, where its name is its endpoint.
    pub fn on_host(status: &VmStatus) -> Option<Self> {
        Self::of(status, Endpoint::try_from(status.name.name.clone()).ok()?)
    }
}

/// One thing that happened. Everything that was decided is in it.
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
    use windlass_protocol::{Bounds, Bytes, Mode, Resources, Signals};

    #[test]
    fn a_vm_is_billed_for_what_the_books_must_cover_while_that_is_known() {
        let size = Resources::new(MilliCpu::from_cores(3), Bytes::from_gib(1));
        let seen = VmStatus {
            name: VmName::on_host("db1"),
            mode: Mode::Act,
            priority: 0,
            bounds: Bounds { min: size, max: size },
            seen: None,
            online: Some(MilliCpu::from_cores(1)),
            upper: Some(size),
            signals: Signals::default(),
            goal: None,
            reason: None,
            permit: None,
            consent: None,
            session: SessionState::Absent,
            waiting: vec![Waiting::Informant],
        };
        let billed =
            Allocation::on_host(&seen).map(|billed| (billed.endpoint.to_string(), billed.cpu));
        assert_eq!(billed, Some(("db1".to_owned(), size.cpu)));
        let lost = VmStatus { waiting: vec![Waiting::HypervisorLost], ..seen.clone() };
        assert_eq!(Allocation::on_host(&lost), None);
        let waits = VmStatus { session: SessionState::Suspended, ..seen.clone() };
        assert_eq!(Allocation::on_host(&waits), None, "the agent that acts bills it");
        assert_eq!(Allocation::on_host(&VmStatus { upper: None, ..seen.clone() }), None);
        let unfit = VmStatus { name: VmName::on_host("two words"), ..seen };
        assert_eq!(Allocation::on_host(&unfit), None);
    }
}
