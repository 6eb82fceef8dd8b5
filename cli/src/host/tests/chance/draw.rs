//! What happens in a world, from its seed.

use std::time::Duration;
use windlass_world::Chance;

/// VMs of a world, and places where the monitor of each may be.
pub(super) const VMS: usize = 3;
pub(super) const PLACES: usize = 2;

/// One thing that happens. A place is one of a VM's.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// A machine of so many units begins where there is none, or in the place of another.
    Begins(usize, usize, u64),
    Ends(usize, usize),
    Slow(usize, usize, u64),
    Turns(usize, usize, Knob),
    Writes(usize, Text),
    Garbles(usize),
    Removes(usize),
    Pauses(usize, u64),
    Resumes(usize),
    /// With so many units, or as it is.
    Releases(usize, Option<u64>),
    Freezes(bool),
    Restarts,
    DiskHangs(&'static str, bool),
    DiskFull(bool),
}

/// What happens to a machine that is there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Knob {
    /// Nothing is answered; `false` ends that.
    Hangs(bool),
    /// No command is answered.
    Mute,
    HangsUp,
    /// Another client has the monitor at the next attempt, or gives it up.
    Taken(bool),
    Reboots,
    Booted,
    Refuses(bool),
    /// The next answer is lost, of a command that was done or was not.
    Loses(bool),
}

/// What a VM's file says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Text {
    pub(super) place: usize,
    pub(super) least: u64,
    pub(super) most: u64,
    pub(super) observes: bool,
    pub(super) removal: bool,
    pub(super) figures_elsewhere: bool,
    pub(super) priority: u64,
}

/// The next thing, and how long to wait after it.
pub(super) fn step(chance: &mut Chance) -> (Step, Duration) {
    let (vm, place) = (index(chance, VMS), usize::from(chance.happens(15)));
    let step = match chance.below(20) {
        0..=5 => machine(chance, vm, place),
        6 | 7 => Step::Begins(vm, place, 1 + chance.below(3)),
        8 => Step::Ends(vm, place),
        9 | 10 => Step::Writes(vm, text(chance, place)),
        11 if chance.happens(30) => Step::Garbles(vm),
        11 => Step::Removes(vm),
        12 => Step::Pauses(vm, 5 + chance.below(60)),
        13 | 14 => Step::Resumes(vm),
        15 | 16 if chance.happens(50) => Step::Releases(vm, Some(1 + chance.below(4))),
        15 | 16 => Step::Releases(vm, None),
        17 => Step::Freezes(chance.happens(40)),
        18 => Step::Restarts,
        _ if chance.happens(50) => Step::DiskFull(chance.happens(50)),
        _ => {
            let kind = ["look", "save", "history"][index(chance, 3)];
            Step::DiskHangs(kind, chance.happens(50))
        }
    };
    (step, pause(chance))
}

fn machine(chance: &mut Chance, vm: usize, place: usize) -> Step {
    let knob = match chance.below(9) {
        0 | 1 => Knob::Hangs(chance.happens(50)),
        2 => Knob::Mute,
        3 => return Step::Slow(vm, place, [0, 0, 200, 1_500][index(chance, 4)]),
        4 => Knob::HangsUp,
        5 => Knob::Taken(chance.happens(50)),
        6 if chance.happens(50) => Knob::Booted,
        6 => Knob::Reboots,
        7 => Knob::Refuses(chance.happens(40)),
        _ => Knob::Loses(chance.happens(50)),
    };
    Step::Turns(vm, place, knob)
}

/// What a file says that names this place.
pub(super) fn text(chance: &mut Chance, place: usize) -> Text {
    Text {
        place,
        least: 1 + chance.below(2),
        most: 2 + chance.below(3),
        observes: chance.happens(15),
        removal: chance.happens(30),
        figures_elsewhere: chance.happens(60),
        priority: chance.below(3),
    }
}

/// Often shorter than an answer, and seldom long enough for a wait to end.
fn pause(chance: &mut Chance) -> Duration {
    Duration::from_millis(match chance.below(4) {
        0 => 0,
        1 => chance.below(300),
        2 => 300 + chance.below(1_500),
        _ => 1_000 + chance.below(8_000),
    })
}

fn index(chance: &mut Chance, limit: usize) -> usize {
    usize::try_from(chance.below(limit as u64)).unwrap()
}
