//! How far each release came, and when one is given up.
//!
//! A VM that is released with a size is moved there first, which may take a guest, a permit and
//! room that others have. A client that waits for it has to hear an end: a VM that came no nearer for
//! [`STALLED`] rounds is let go with what it has. A VM that goes to and fro comes no nearer.
//! Rounds are counted, not time: a host that was stopped itself has waited for nothing.

use crate::api::ReleaseState;
use windlass_agent::Known;
use windlass_protocol::Resources;

/// Rounds without a step towards the size after which a release is given up: ten minutes.
pub(super) const STALLED: u32 = 300;

/// One release, from the order on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Release {
    pub(super) wanted: Option<Resources>,
    pub(super) state: ReleaseState,
    /// Why it was given up.
    pub(super) why: Option<String>,
    /// How far each axis was from its size when it was nearest, and for how many rounds none
    /// came nearer.
    nearest: Option<Resources>,
    rounds: u32,
}

/// Why a release is to be given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hopeless {
    /// The hypervisor has ended.
    Gone,
    /// The VM came no nearer for [`STALLED`] rounds.
    Stalled,
}

// === impl Release ===

impl Release {
    pub(super) fn begin(wanted: Option<Resources>) -> Self {
        Self { wanted, state: ReleaseState::UnderWay, why: None, nearest: None, rounds: 0 }
    }

    /// One of before the host started: whether the VM was brought to its size is not kept.
    pub(super) fn lost() -> Self {
        let why = "the host was started anew since the release, and let the VM go as it found it"
            .to_owned();
        Self { state: ReleaseState::GivenUp, why: Some(why), ..Self::begin(None) }
    }

    /// Takes note of a look.
    pub(super) fn look(&mut self, vm: Known) {
        let nothing_to_do = self.wanted.is_none() && !vm.present;
        if self.is_under_way() && (vm.let_go || nothing_to_do) {
            self.state = ReleaseState::Done;
        }
    }

    /// The same, and a round has passed; while the host is frozen a release waits. Why it is to be given
    /// up, if it is.
    pub(super) fn round(&mut self, vm: Known, frozen: bool) -> Option<Hopeless> {
        self.look(vm);
        if !self.is_under_way() {
            return None;
        }
        if !vm.present {
            return Some(Hopeless::Gone);
        }
        if frozen {
            return None;
        }
        match self.comes_nearer(vm.upper) {
            true => self.rounds = 0,
            false => self.rounds += 1,
        }
        (self.rounds >= STALLED).then_some(Hopeless::Stalled)
    }

    /// Whether an axis is nearer than it ever was, which then is the nearest.
    fn comes_nearer(&mut self, has: Option<Resources>) -> bool {
        let (Some(wanted), Some(has)) = (self.wanted, has) else { return false };
        // One of the two differences is nothing.
        let away = wanted.saturating_sub(has).saturating_add(has.saturating_sub(wanted));
        let nearest = self.nearest.map_or(away, |nearest| nearest.min(away));
        self.nearest.replace(nearest) != Some(nearest)
    }

    /// The VM comes no nearer: it is let go with what it has.
    pub(super) fn give_up(&mut self, why: String) {
        (self.state, self.why) = (ReleaseState::GivenUp, Some(why));
    }

    pub(super) fn is_under_way(&self) -> bool {
        self.state == ReleaseState::UnderWay
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_protocol::{Bytes, MilliCpu};

    #[test]
    fn a_release_is_done_once_the_agent_has_let_go() {
        let mut release = Release::begin(Some(size(2)));
        assert_eq!(release.round(sight(1), false), None);
        assert_eq!(release.state, ReleaseState::UnderWay);
        release.look(Known { let_go: true, ..sight(2) });
        assert_eq!(release.state, ReleaseState::Done);
        // What it has later is not the release's matter.
        assert!((0..2 * STALLED).all(|_| release.round(sight(1), false).is_none()));
        assert_eq!(release.state, ReleaseState::Done);
    }

    #[test]
    fn a_release_that_stalls_is_given_up_and_one_that_comes_nearer_is_not() {
        let mut release = Release::begin(Some(size(4)));
        for vcpus in [1, 2, 5] {
            assert!((0..STALLED).all(|_| release.round(sight(vcpus), false).is_none()), "{vcpus}");
        }
        assert_eq!(release.round(sight(5), false), Some(Hopeless::Stalled));
        release.give_up("no room".to_owned());
        assert_eq!(release.state, ReleaseState::GivenUp);
        assert_eq!(release.round(sight(1), false), None);
    }

    #[test]
    fn a_release_that_goes_to_and_fro_is_given_up() {
        let mut release = Release::begin(Some(size(4)));
        let rounds = (0..).map(|round| release.round(sight(1 + round % 2), false));
        let until = rounds.take(9 * STALLED as usize).position(|given_up| given_up.is_some());
        assert_eq!(until, Some(1 + STALLED as usize));
    }

    #[test]
    fn memory_that_comes_nearer_is_a_step_too() {
        let wanted = Resources { cpu: MilliCpu::from_cores(1), mem: Bytes::from_gib(1) };
        let mut release = Release::begin(Some(wanted));
        for gib in [4, 3, 2] {
            let has = Resources { mem: Bytes::from_gib(gib), ..wanted };
            let sight = Known { upper: Some(has), ..sight(1) };
            assert!((0..STALLED).all(|_| release.round(sight, false).is_none()), "{gib}");
        }
    }

    #[test]
    fn what_waits_for_the_thaw_does_not_stall() {
        let mut release = Release::begin(Some(size(9)));
        assert!((0..2 * STALLED).all(|_| release.round(sight(1), true).is_none()));
    }

    #[test]
    fn a_vm_that_is_not_there_is_let_go_at_once() {
        let mut release = Release::begin(None);
        release.look(Known::default());
        assert_eq!(release.state, ReleaseState::Done);
        let mut release = Release::begin(Some(size(1)));
        assert_eq!(release.round(Known::default(), false), Some(Hopeless::Gone));
    }

    fn sight(vcpus: u64) -> Known {
        Known { present: true, upper: Some(size(vcpus)), ..Known::default() }
    }

    fn size(vcpus: u64) -> Resources {
        Resources { cpu: MilliCpu::from_cores(vcpus), mem: Bytes::from_gib(1) }
    }
}
