//! Looks at ceilings that are too high or too low, a few at a time.

use std::time::Duration;
use windlass_protocol::{Moment, VmName};

/// Between two looks.
const LOOKS: Duration = Duration::from_secs(10);

/// Ceilings that are mended at one look, at most.
const MENDED: usize = 50;

/// When the next look is, and where it begins.
#[derive(Clone, Debug)]
pub struct Mending {
    next: Moment,
    /// Looks go round: VMs whose writes are refused again and again hold up no other.
    from: usize,
}

// === impl Mending ===

impl Mending {
    /// From this moment on.
    pub fn new(now: Moment) -> Self {
        Self { next: now.after(LOOKS), from: 0 }
    }

    /// When the next look is.
    pub const fn next(&self) -> Moment {
        self.next
    }

    /// Whether to look at this moment, unless no write may be sent; the next look is later then.
    pub fn begin(&mut self, now: Moment, rests: bool) -> bool {
        let is_due = now >= self.next && !rests;
        if is_due {
            self.next = now.after(LOOKS);
        }
        is_due
    }

    /// Those of all ceilings to mend whose turn it is.
    pub fn choose(&mut self, mut all: Vec<VmName>) -> Vec<VmName> {
        let from = if self.from < all.len() { self.from } else { 0 };
        all.rotate_left(from);
        all.truncate(MENDED);
        self.from = from + MENDED;
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_go_round() {
        let mut mending = Mending::new(Moment::default());
        let all: Vec<VmName> = (0..120).map(|nth| VmName::on_host(format!("{nth:03}"))).collect();
        let mut look = || mending.choose(all.clone());
        let (first, second, third, fourth) = (look(), look(), look(), look());
        assert_eq!((first.as_slice(), second.as_slice()), (&all[..50], &all[50..100]));
        assert_eq!(third, [&all[100..], &all[..30]].concat());
        assert_eq!(fourth, first);
        assert_eq!(mending.choose(all[..3].to_vec()), all[..3], "there are fewer by now");
        assert!(mending.choose(Vec::new()).is_empty());
        let ten = Moment::from_millis(10_000);
        assert!(!mending.begin(Moment::from_millis(9_999), false) && !mending.begin(ten, true));
        assert!(mending.begin(ten, false) && !mending.begin(ten, false));
    }
}
