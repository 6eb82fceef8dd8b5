//! What a person sees of leader and standby, in true milliseconds.

use crate::world::{Fate, World};
use windlass_plugin_core::lease::Write;

/// Seconds, in milliseconds.
const S: u64 = 1_000;

#[test]
fn the_first_process_leads_once_it_has_watched_that_there_is_no_lease() {
    let mut world = World::new();
    world.start(1_000);
    assert_eq!(until_answered(&mut world, &[0]), (0, 1, 15));
    run(&mut world, 60 * S);
    assert_eq!(world.answer(), [(0, 1)], "it renews its lease");
}

#[test]
fn a_lease_that_was_made_beforehand_and_never_held_is_taken_at_once() {
    let mut world = released();
    world.start(1_000);
    assert_eq!(until_answered(&mut world, &[0]), (0, 1, 0));
}

#[test]
fn a_standby_leads_17_seconds_after_the_leader_was_killed_at_the_latest() {
    let mut world = two();
    world.kill(0);
    let (leader, epoch, seconds) = until_answered(&mut world, &[1]);
    assert_eq!((leader, epoch), (1, 2));
    // The leader's last renewal was up to two seconds before.
    assert!((13..17).contains(&seconds), "{seconds}");
}

#[test]
fn a_standby_leads_three_seconds_after_the_leader_was_told_to_end_at_the_latest() {
    let mut world = two();
    world.leave(0);
    assert!(world.answer().is_empty(), "it stops answering first");
    let (leader, epoch, seconds) = until_answered(&mut world, &[1]);
    assert_eq!((leader, epoch), (1, 2));
    assert_eq!(seconds, 2, "an agent uses the leader's last answer for two");
    assert!(world.processes[0].has_ended);
}

#[test]
fn a_leader_that_was_stopped_for_20_seconds_finds_that_it_is_none() {
    let mut world = two();
    world.processes[0].paused_until = world.now + 20 * S;
    run(&mut world, 10 * S);
    assert!(world.answer().is_empty(), "its lease has lapsed");
    let (leader, _, _) = until_answered(&mut world, &[1]);
    assert_eq!(leader, 1);
    run(&mut world, 10 * S);
    assert_eq!(world.answer(), [(1, 2)]);
    assert!(world.processes[0].has_ended, "it starts anew");
}

#[test]
fn a_renewal_counts_from_its_start_however_late_its_answer_is_heard() {
    let mut world = two();
    while !world.processes[0].asks() {
        run(&mut world, 1);
    }
    // Its answer comes a moment later, to a process that hears it after 20 seconds.
    world.processes[0].paused_until = world.now + 20 * S;
    run(&mut world, 19 * S);
    assert_eq!(world.answer(), [(1, 2)]);
    for _ in 0..2 * S {
        run(&mut world, 1);
        assert_eq!(world.answer(), [(1, 2)]);
    }
}

#[test]
fn a_leader_goes_on_in_its_epoch_after_a_minute_without_the_api_server() {
    let mut world = two();
    let gone = Fate { there: None, ..Fate::KIND };
    for _ in 0..60 * S {
        world.pass(|_| gone);
        assert!(world.answer().iter().all(|(nth, _)| *nth == 0));
    }
    assert!(world.answer().is_empty());
    let (leader, epoch, seconds) = until_answered(&mut world, &[0, 1]);
    assert_eq!((leader, epoch), (0, 1), "the standby has watched nothing meanwhile");
    assert!(seconds <= 3, "{seconds}");
}

#[test]
fn one_lost_renewal_is_not_noticed() {
    let mut world = two();
    let mut lost = 0;
    for _ in 0..20 * S {
        world.pass(|_| {
            lost += 1;
            if lost == 1 { Fate { there: None, ..Fate::KIND } } else { Fate::KIND }
        });
        assert_eq!(world.answer(), [(0, 1)]);
    }
}

#[test]
fn a_lease_that_was_deleted_is_not_taken_before_its_holder_has_stopped() {
    let mut world = two();
    world.delete();
    let (leader, epoch, seconds) = until_answered(&mut world, &[1]);
    assert_eq!((leader, epoch), (1, 2), "the standby knows which epoch was the last");
    assert!(seconds >= 14, "{seconds}");
    assert!(world.processes[0].has_ended);
}

#[test]
fn a_take_over_whose_answer_was_lost_counts_once_it_was_renewed() {
    let mut world = released();
    world.start(1_000);
    let mut requests = 0;
    while world.answer().is_empty() {
        world.pass(|_| {
            requests += 1;
            // A read, then the take-over.
            if requests == 2 { Fate { back: None, ..Fate::KIND } } else { Fate::KIND }
        });
        assert!(world.now < 10 * S);
    }
    let record = world.record.clone().unwrap();
    assert_eq!((record.holder.as_str(), record.transitions), (world.processes[0].identity(), 1));
    assert_eq!(record.revision, "3", "it was written, and renewed");
}

#[test]
fn a_claim_that_comes_late_into_a_deleted_lease_is_not_trusted() {
    let mut world = World::new();
    world.start(1_000);
    run(&mut world, S);
    world.start(1_000);
    // The first claim of the first process takes four seconds, and the second process makes the lease meanwhile.
    let is_claim = |write: &Write| write.over.is_none() && write.holder == "p0";
    while world.now < 18_500 {
        world.pass(|write| {
            let there = if write.is_some_and(is_claim) { 4_000 } else { 5 };
            Fate { there: Some(there), ..Fate::KIND }
        });
    }
    assert_eq!(world.answer(), [(1, 1)]);
    // It is deleted while its holder is stopped, and the claim comes.
    world.processes[1].paused_until = world.now + 8 * S;
    world.delete();
    for _ in 0..12 * S {
        run(&mut world, 1);
        assert!(world.answer().len() < 2, "{:?}", world.answer());
    }
    assert_eq!(world.record.clone().unwrap().holder, "p0", "the claim came");
    assert_eq!(until_answered(&mut world, &[0]).1, 2);
}

/// A leader in epoch 1, and a standby.
fn two() -> World {
    let mut world = released();
    world.start(1_000);
    run(&mut world, S);
    world.start(1_000);
    run(&mut world, 5 * S);
    assert_eq!(world.answer(), [(0, 1)]);
    world
}

/// A world with a lease that nobody has held.
pub(crate) fn released() -> World {
    let mut world = World::new();
    world.make_lease();
    world
}

fn run(world: &mut World, millis: u64) {
    for _ in 0..millis {
        world.pass(|_| Fate::KIND);
    }
}

/// Runs until one of these processes answers: which, in which epoch, and after how many seconds.
fn until_answered(world: &mut World, wanted: &[usize]) -> (usize, u32, u64) {
    let begun = world.now;
    loop {
        run(world, 1);
        if let Some((nth, epoch)) = world.answer().into_iter().find(|(nth, _)| wanted.contains(nth))
        {
            return (nth, epoch, (world.now - begun) / S);
        }
        assert!(world.now < begun + 60 * S, "nobody leads");
    }
}
