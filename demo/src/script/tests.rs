//! What must be true of the script for the demo to show what it says.

use super::*;

#[test]
fn the_node_has_room_for_less_than_all_want() {
    let sum =
        SCRIPT.players.iter().fold(Resources::ZERO, |sum, p| sum.saturating_add(p.bounds.max));
    assert!(SCRIPT.room.cpu < sum.cpu && SCRIPT.room.mem < sum.mem);
    for step in SCRIPT.steps {
        let has = step.ends.iter().fold(Resources::ZERO, |sum, end| sum.saturating_add(end.has));
        assert!(SCRIPT.room.covers(has), "{}: {has} of {}", step.name, SCRIPT.room);
    }
}

#[test]
fn every_step_says_where_each_player_should_be() {
    for step in SCRIPT.steps {
        let named: Vec<&str> = step.ends.iter().map(|end| end.vm).collect();
        let players: Vec<&str> = SCRIPT.players.iter().map(|player| player.name).collect();
        assert_eq!(named, players, "step {}", step.name);
        assert!(step.loads.iter().all(|(vm, _)| players.contains(vm)), "step {}", step.name);
        assert!(step.steady < step.within);
    }
    assert!(SCRIPT.players.iter().any(|player| player.name == SCRIPT.explained));
}

#[test]
fn nobody_is_refused_room_that_is_there() {
    for step in SCRIPT.steps {
        let has = step.ends.iter().fold(Resources::ZERO, |sum, end| sum.saturating_add(end.has));
        let left = SCRIPT.room.saturating_sub(has);
        for end in step.ends {
            let Because::Room(wants) = end.because else { continue };
            let missing = wants.saturating_sub(end.has);
            assert!(!left.covers(missing), "{}: {} could have {missing}", step.name, end.vm);
        }
    }
}

#[test]
fn at_most_two_guests_spin_at_once() {
    let mut spinning = std::collections::BTreeMap::new();
    for step in SCRIPT.steps {
        for (vm, load) in step.loads {
            match load {
                Load::Spin(processes) => _ = spinning.insert(vm, *processes),
                Load::Take { .. } | Load::Free => {}
            }
        }
        assert!(spinning.values().filter(|processes| **processes > 0).count() <= 2);
    }
}

#[test]
fn the_script_shows_rise_contention_a_burst_a_refusal_and_a_fall() {
    let because = |wanted: fn(&Because) -> bool| {
        SCRIPT.steps.iter().flat_map(|step| step.ends).any(|end| wanted(&end.because))
    };
    assert!(because(|b| matches!(b, Because::Room(_))));
    assert!(because(|b| *b == Because::Refusal));
    let bursts = |load: &Load| matches!(load, Load::Take { chunk, .. } if chunk.mib() == 16);
    assert!(SCRIPT.steps.iter().flat_map(|step| step.loads).any(|(_, load)| bursts(load)));
    let (first, last) = (SCRIPT.steps.first().unwrap(), SCRIPT.steps.last().unwrap());
    assert_eq!(first.ends, last.ends);
}
