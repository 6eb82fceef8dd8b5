//! Laws 1, 2 and 9 where ceilings are recorded, over random histories.

use crate::model::{Model, step};
use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    /// Law 9: at every moment the recorded ceiling covers what the VM's agent was answered, so that books which are
    /// rebuilt cover what was lost. Law 2: what waits for a ceiling is within the room like what was granted.
    #[test]
    fn rebuild_equals_live_a_ceiling_covers_every_answer(steps in vec(step(), 0..120)) {
        let mut model = Model::new();
        for step in steps {
            let before = model.reserved();
            let is_decision = model.step(&step);
            let most = model.room().max(before);
            prop_assert!(
                !is_decision || most.covers(model.reserved()),
                "{step:?}: {before} to {}", model.reserved(),
            );
            prop_assert_eq!(model.uncovered(), None, "{:?}", step);
        }
    }

    /// Law 7: once writes are answered again, what was in doubt holds no agent up.
    #[test]
    fn fail_static_growth_goes_on_once_ceilings_are_recorded(steps in vec(step(), 0..60)) {
        let mut model = Model::new();
        for step in &steps {
            model.step(step);
        }
        prop_assert!(model.comes_to_rest());
    }
}
