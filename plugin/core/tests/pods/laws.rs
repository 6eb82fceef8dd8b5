//! Laws 2 and 9 over random histories of a cluster.

use crate::cluster::cu;
use crate::model::{Model, step};
use crate::resized::{self, Resized, SIZE};
use crate::shared::{self, Shared};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

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

proptest! {
    /// Law 2 on a node that is shared with others: what VMs may have and what the kubelet has allocated to others never
    /// exceeds what the node can allocate, whatever is lost or late of what the controller, the kubelet and the watch say.
    #[test]
    fn books_within_the_node_that_is_shared(
        steps in vec(shared::step(), 0..120),
        spare in prop_oneof![Just(None), Just(Some(0)), Just(Some(1))],
    ) {
        let mut node = Shared::new(spare);
        for step in steps {
            node.step(&step, spare);
            let used = node.in_use();
            prop_assert!(cu(8).covers(used), "{:?}: {} in use", step, used);
        }
    }
}

proptest! {
    /// Law 2 where VMs' pods are resized: what VMs have and what the kubelet has allocated never exceeds what the node can
    /// allocate, and no VM has more than its kubelet has allocated to it. Law 9: whatever a VM has is in the books, also in
    /// those of a plugin that has just started.
    #[test]
    fn books_within_the_node_whose_pods_are_resized(steps in vec(resized::step(), 0..150)) {
        let mut node = Resized::new();
        for step in steps {
            node.step(&step);
            let used = node.in_use();
            prop_assert!(used <= SIZE, "{:?}: {} in use", step, used);
            prop_assert_eq!(node.uncovered(), None, "{:?}", step);
        }
    }
}

/// The histories of that law meet what it is about.
#[test]
fn growth_by_resized_pods_is_met_often() {
    let mut runner = TestRunner::deterministic();
    let steps = vec(resized::step(), 150);
    let (mut grown, mut given_up) = (0, 0);
    for _ in 0..100 {
        let mut node = Resized::new();
        for step in steps.new_tree(&mut runner).unwrap().current() {
            node.step(&step);
        }
        grown += usize::from(node.grown > 0);
        given_up += usize::from(node.given_up > 0);
    }
    assert!(grown > 30 && given_up > 5, "of 100 {grown} grew, {given_up} were given up");
}

/// The histories of that law meet what it is about.
#[test]
fn growth_into_headroom_is_met_often() {
    let mut runner = TestRunner::deterministic();
    let steps = vec(shared::step(), 120);
    let mut met = 0;
    for _ in 0..100 {
        let mut node = Shared::new(Some(1));
        for step in steps.new_tree(&mut runner).unwrap().current() {
            node.step(&step, Some(1));
        }
        met += usize::from(node.grants_beyond_requests > 0);
    }
    assert!(met > 30, "{met} of 100");
}
