//! What always holds, against a guest and agents that lose, repeat, refuse and lie.
//!
//! - **Consent before shrinkage.** Nothing is agreed to unless the most that was in use lately
//!   fits, with the margin; or it is no less than the VM has.
//! - **Newest session counts.** The same request twice has the effect of once, and the same
//!   answer; a stale one, or one of an agent that does not count, changes nothing.
//! - **Some agent counts.** Once the world is kind, the newest of those that are left does.
//! - **Nothing before the first agent.** The machine is left as it is until one registers.
#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "support/hostile.rs"]
mod hostile;

use hostile::{Step, World, steps};
use proptest::collection::vec;
use proptest::prelude::*;
use std::iter;
use windlass_informant_core::memory::{OVERHEAD, margin};
use windlass_protocol::Bytes;

/// The most that was in use lately fits into what was agreed to just now, with the margin.
fn what_is_agreed_to_fits(world: &mut World) -> Result<(), TestCaseError> {
    let Some((asked, memory)) = world.agreed.take() else { return Ok(()) };
    let overhead = memory.overhead.unwrap_or(OVERHEAD);
    if asked >= memory.total.saturating_add(overhead) {
        return Ok(());
    }
    let usable = asked.saturating_sub(overhead);
    let used = world.most_used_lately();
    let needed = used.saturating_add(margin(usable));
    prop_assert!(needed <= usable, "{used} in use, agreed to {asked}, usable {usable}");
    prop_assert!(world.samples_lately() >= 5, "{} samples", world.samples_lately());
    Ok(())
}

proptest! {
    #[test]
    fn consent_before_shrinkage(history in steps(80)) {
        let mut world = World::new();
        for step in history {
            world.step(step);
            what_is_agreed_to_fits(&mut world)?;
        }
    }

    #[test]
    fn consent_before_shrinkage_counts_a_peak_that_is_over(
        peak in 200_u64..1_500,
        pauses in vec(50_u64..250, 0..12),
        spare in 0_u64..200,
    ) {
        let mut world = World::new();
        world.be_kind();
        let calm = iter::repeat_n(Step::Pass(100), 30);
        let history = [Step::Size(4096), Step::Register(1)].into_iter().chain(calm);
        let peak = [Step::Use(peak), Step::Pass(100), Step::Use(100), Step::Pass(100)];
        let after = pauses.into_iter().map(Step::Pass).chain([Step::Fitting(spare)]);
        for step in history.chain(peak).chain(after) {
            world.step(step);
            what_is_agreed_to_fits(&mut world)?;
        }
    }

    #[test]
    fn newest_session_counts(history in steps(80)) {
        let mut world = World::new();
        for step in history {
            world.step(step);
            prop_assert!(world.informant.agents() <= 8);
            for surprise in world.surprises.drain(..) {
                prop_assert!(false, "{surprise}");
            }
        }
    }

    #[test]
    fn some_agent_counts_in_a_kind_world(history in steps(60)) {
        let mut world = World::new();
        for step in history {
            world.step(step);
        }
        world.be_kind();
        for _ in 0..300 {
            world.step(Step::Pass(100));
        }
        let left = world.registered();
        prop_assert_eq!(world.informant.current(), left.last().copied());
        prop_assert!(left.is_empty() || world.informant.settled(world.now));
        for agent in left {
            prop_assert!(world.is_alive(agent), "{} is dead and still registered", agent);
        }
    }

    #[test]
    fn nothing_is_changed_before_the_first_agent(history in steps(60)) {
        let mut world = World::new();
        for step in history {
            if matches!(step, Step::Register(_)) {
                break;
            }
            world.step(step);
            prop_assert!(world.changes == 0);
        }
    }

    #[test]
    fn the_margin_always_leaves_more_than_what_is_urgent(mib in 0_u64..1 << 22) {
        let usable = Bytes::from_mib(mib);
        prop_assert!(margin(usable) > windlass_informant_core::memory::threshold(usable));
    }
}
