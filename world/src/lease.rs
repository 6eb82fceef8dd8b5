//! Until when the health checks of a session let its agent act, and whether only a false answer does.
//!
//! An informant that lies may say that a session stands which it has ended. Its agent cannot tell that answer from a
//! true one. So the agent breaks no law while it acts by a false answer, for as long as a true one would let it
//! act, and no longer.

use windlass_protocol::timing::LEASE_USED;
use windlass_protocol::{AgentId, Moment};

/// What one run of an agent was answered.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lease {
    /// The newest health check that reached the informant: its call, and whether the answer is true.
    check: Option<(u64, bool)>,
    session: Option<AgentId>,
    /// Until when true answers let the agent act, by the agent's clock.
    by_truth: Moment,
    /// Until when false answers do.
    by_lie: Moment,
}

// === impl Lease ===

impl Lease {
    /// A health check reaches the informant, which answers it truly, or not. To a check that arrives twice, one
    /// true answer is enough.
    pub(crate) fn checked(&mut self, call: u64, is_true: bool) {
        let known = self.check.unwrap_or_default();
        self.check = Some(known.max((call, is_true)));
    }

    /// An agent that sent a health check at this moment hears that its session stands.
    pub(crate) fn healthy(&mut self, call: u64, session: AgentId, sent: Moment) {
        if self.session != Some(session) {
            *self = Self { check: self.check, session: Some(session), ..Self::default() };
        }
        let until = sent.after(LEASE_USED);
        let is_false = self.check == Some((call, false));
        let lasts = if is_false { &mut self.by_lie } else { &mut self.by_truth };
        *lasts = until.max(*lasts);
    }

    /// Whether nothing but a lie lets the agent act in this session, when its clock shows `now`.
    pub(crate) fn is_lie(&self, session: Option<AgentId>, now: Moment) -> bool {
        self.session == session && self.by_truth <= now && now < self.by_lie
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: AgentId = AgentId::from_u128(1);
    const NEXT: AgentId = AgentId::from_u128(2);

    const fn at(seconds: u64) -> Moment {
        Moment::from_millis(1_000 * seconds)
    }

    /// The seconds, of the first 30, in which nothing but a lie lets an agent act in this session.
    fn lie(lease: Lease, session: AgentId) -> Vec<u64> {
        (0..30).filter(|second| lease.is_lie(Some(session), at(*second))).collect()
    }

    #[test]
    fn a_lie_counts_from_the_end_of_the_true_lease_to_the_end_of_its_own() {
        let mut lease = Lease::default();
        lease.checked(1, true);
        lease.healthy(1, OURS, at(1));
        assert_eq!(lie(lease, OURS), [0_u64; 0], "the answer is true");
        lease.checked(2, false);
        lease.healthy(2, OURS, at(6));
        assert_eq!(lie(lease, OURS), [9, 10, 11, 12, 13]);
        assert_eq!(lie(lease, NEXT), [0_u64; 0], "another session has no part in it");
        lease.healthy(3, NEXT, at(7));
        assert_eq!(
            [lie(lease, OURS), lie(lease, NEXT)],
            [[0_u64; 0]; 2],
            "it ends with its session"
        );
    }

    #[test]
    fn a_check_that_was_answered_truly_once_is_no_lie() {
        let mut lease = Lease::default();
        lease.checked(1, true);
        lease.checked(1, false);
        lease.healthy(1, OURS, at(1));
        assert_eq!(lie(lease, OURS), [0_u64; 0]);
        lease.checked(2, true);
        lease.checked(1, false);
        lease.healthy(2, OURS, at(6));
        assert_eq!(
            lie(lease, OURS),
            [0_u64; 0],
            "an older one that arrives late says nothing of it"
        );
    }
}
