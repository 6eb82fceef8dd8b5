//! Laws 2 and 9 over random histories of a cluster.

use crate::model::{Model, step};
use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    /// Law 2: no placement and no grant raises what VMs and other pods take of a node above what it can
    /// allocate, or at all while they take more. Whatever a VM that is bound may have is in the books of
    /// its node.
    #[test]
    fn books_within_the_node_across_growth_and_placement(steps in vec(step(), 0..80)) {
        let mut model = Model::default();
        for step in steps {
            let before = model.taken();
            let is_decision = model.step(&step);
            for ((_, before), (allocatable, after)) in before.into_iter().zip(model.taken()) {
                let most = allocatable.max(before);
                prop_assert!(
                    !is_decision || most.covers(after),
                    "{step:?}: {before} to {after} of {allocatable}",
                );
            }
            prop_assert_eq!(model.uncovered(), None, "{:?}", step);
        }
    }

    /// Law 9: once nothing is under way, books that followed the watch, late and repeated words included,
    /// equal those that are made of the API server's lists, after each agent's next request.
    #[test]
    fn rebuild_equals_live_in_a_cluster(steps in vec(step(), 0..80), landed in any::<bool>()) {
        let mut model = Model::default();
        for step in &steps {
            model.step(step);
        }
        model.come_to_rest(landed);
        prop_assert_eq!(model.uncovered(), None);
        prop_assert_eq!(model.pods.placements().count(), 0);
        let rebuilt = model.rebuilt();
        let live = model.after_each_agent_spoke(&model.pods);
        prop_assert_eq!(model.after_each_agent_spoke(&rebuilt), live);
    }
}
