//! Which placements are settled by reading their pods, a few at a time.

use crate::rebuild::Inherited;
use std::collections::BTreeSet;
use std::time::Duration;

/// Between two looks at open placements.
pub const SETTLE_EVERY: Duration = Duration::from_secs(2);

/// The pods that are read at one look, at most: a start after an outage does not flood the API server.
const AT_ONCE: usize = 50;

/// What was open at the last look.
#[derive(Clone, Debug, Default)]
pub struct Settling {
    open: BTreeSet<Inherited>,
    /// Looks go round: a pod whose read is refused again and again holds up no other.
    last: Option<Inherited>,
}

// === impl Settling ===

impl Settling {
    /// These placements are open. Those that were open at the last look, too, are to be settled, in this order.
    pub fn look(&mut self, open: BTreeSet<Inherited>) -> Vec<Inherited> {
        let before = std::mem::replace(&mut self.open, open);
        let mut still: Vec<Inherited> = self.open.intersection(&before).cloned().collect();
        let last = self.last.as_ref();
        let from = still.partition_point(|placed| last.is_some_and(|last| placed <= last));
        still.rotate_left(from);
        still.truncate(AT_ONCE);
        still
    }

    /// The pod of this placement is read.
    pub fn reads(&mut self, placed: Inherited) {
        self.last = Some(placed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_protocol::VmName;

    #[test]
    fn what_is_open_at_a_second_look_is_settled_and_looks_go_round() {
        let mut settling = Settling::default();
        let open = |nths: std::ops::Range<usize>| -> BTreeSet<Inherited> {
            nths.map(|nth| (VmName::on_host(format!("{nth:03}")), "uid".to_owned())).collect()
        };
        assert!(settling.look(open(0..60)).is_empty());
        let first = settling.look(open(0..60));
        assert_eq!(first, open(0..50).into_iter().collect::<Vec<_>>());
        for placed in first.into_iter().take(20) {
            settling.reads(placed);
        }
        let next = settling.look(open(10..70));
        assert_eq!(next.first(), open(20..21).first(), "the API server did not answer");
        assert_eq!(next.len(), 50);
        assert!(!next.contains(&(VmName::on_host("065"), "uid".to_owned())), "it is new");
    }
}
