//! What holds whatever PostgreSQL, the network and the operator do.
//!
//! The world has a server with a size in effect and a size in its file, a guest with memory in
//! use beside the cache, and agents that ask, hang up and come back. It loses answers, stops and
//! restarts the server, and lets an operator change the size.
#[path = "support/world.rs"]
mod world;

use proptest::collection::vec;
use proptest::prelude::*;
use windlass_informant_postgres_core::Proposal;
use windlass_protocol::Bytes;
use world::{Step, World, mib, step};

proptest! {
    /// What is agreed to fits, and the cache does not grow back by our doing while it stands.
    #[test]
    fn consent_before_shrinkage(steps in vec(step(), 1..80)) {
        let mut world = World::new();
        for step in steps {
            world.step(&step);
            prop_assert_eq!(world.broken.as_deref(), None);
        }
    }

    /// A refused or abandoned consent leaves no half of it behind: once PostgreSQL answers, the
    /// cache has the size that goes with the memory that the VM was last promised.
    #[test]
    fn a_kind_world_gets_its_goal(steps in vec(step(), 1..40)) {
        let mut world = World::new();
        for step in steps {
            world.step(&step);
        }
        world.be_kind();
        let wanted = world.wanted();
        let near = world.in_effect.saturating_add(mib(8)) > wanted && world.in_effect <= wanted;
        prop_assert!(near, "{} in effect, {wanted} wanted", world.in_effect);
        prop_assert_eq!(world.cache.problem(), None);
    }

    /// Nothing is asked of PostgreSQL before it is decided that everything fits.
    #[test]
    fn fail_static_what_does_not_fit_touches_nothing(steps in vec(step(), 1..40), asked in 0_u64..4000) {
        let mut world = World::new();
        for step in steps {
            world.step(&step);
        }
        world.be_kind();
        let before = world.cache.plan(world.now);
        let proposal = world.cache.propose(world.now, mib(asked));
        prop_assert_eq!(world.cache.plan(world.now), before);
        if let Ok(Proposal::Shrink { target, rest }) = proposal {
            let room = rest.saturating_sub(world.overhead);
            prop_assert!(world.beside <= room, "{} beside {target} in {asked} MiB", world.beside);
            prop_assert!(target <= world.in_effect.max(world.in_file), "a consent never grows it");
        }
    }

    /// However PostgreSQL fails, it is not asked more often than it can bear.
    #[test]
    fn failures_are_met_with_patience(seed: u64) {
        let mut world = World::with_seed(seed);
        world.step(&Step::Stop);
        let mut asked = 0;
        for _ in 0..600 {
            asked += u32::from(world.turn());
            world.wait(100);
        }
        // A minute: five short waits, and then one in five seconds, give or take a quarter.
        prop_assert!((10..=24).contains(&asked), "asked {asked} times in a minute");
    }
}

#[test]
fn the_world_is_not_empty() {
    let mut world = World::new();
    world.be_kind();
    assert_eq!(world.in_effect, world.wanted());
    assert!(world.in_effect > Bytes::ZERO);
    let proposal = world.cache.propose(world.now, mib(2048)).unwrap();
    assert!(matches!(proposal, Proposal::Shrink { .. }), "{proposal:?}");
}
