//! Schedules from seeds.

use crate::schedule::{Act, Kind, Schedule, Turn};
use std::time::Duration;
use windlass_agent_core::Order;
use windlass_protocol::{Bytes, Mode};
use windlass_world::script::{MOST_UNITS, info, units, vm};
use windlass_world::world::{Driver, Muted};
use windlass_world::{Chance, Faults, Step};

const FAULTS: [Kind; 12] = [
    Kind::Network,
    Kind::Agent,
    Kind::Host,
    Kind::Informant,
    Kind::Reboot,
    Kind::Deaf,
    Kind::Stuck,
    Kind::Figures,
    Kind::Unparks,
    Kind::Online,
    Kind::Driver,
    Kind::Arrivals,
];
/// At least so many kinds of fault in each.
const LEAST_KINDS: usize = 3;
/// At least so long; one in ten is longer.
const LENGTH: Duration = Duration::from_secs(125);
const LONG: Duration = Duration::from_secs(605);

/// The schedule of this seed.
pub fn draw(seed: u64) -> Schedule {
    let chance = Chance::new(seed ^ 0x5EED);
    let mut draw = Draw { chance, nodes: 0, vms: 0, room: 0, kinds: Vec::new() };
    draw.nodes = 2 + draw.index(2);
    draw.vms = draw.nodes * 2 + draw.index(3);
    let trust = draw.chance.happens(50);
    draw.kinds = draw.pick_kinds(trust);
    let per_node = draw.vms.div_ceil(draw.nodes) as u64;
    // Less than all could want, and more than all have at first.
    let room = per_node + 1 + draw.chance.below(per_node * (MOST_UNITS - 1));
    draw.room = room;
    let length = if seed.is_multiple_of(10) { LONG } else { LENGTH };
    let mut turns = Vec::new();
    let mut now = Duration::ZERO;
    while now < length {
        let after = Duration::from_millis(draw.pause());
        now += after;
        turns.push(Turn { after, act: draw.act() });
    }
    Schedule { seed, nodes: draw.nodes, room, vms: draw.vms, trust, turns }
}

struct Draw {
    chance: Chance,
    nodes: usize,
    vms: usize,
    room: u64,
    kinds: Vec<Kind>,
}

// === impl Draw ===

impl Draw {
    /// Some kinds of fault. With parking trusted, a guest that restarts or un-parks takes what was
    /// promised to others: that is the guest's doing, and no fault of ours.
    fn pick_kinds(&mut self, trust: bool) -> Vec<Kind> {
        let mut left: Vec<Kind> = FAULTS.to_vec();
        left.retain(|kind| !(trust && matches!(kind, Kind::Reboot | Kind::Unparks)));
        let count = LEAST_KINDS + self.index(left.len() - LEAST_KINDS + 1);
        (0..count).map(|_| left.swap_remove(self.index(left.len()))).collect()
    }

    /// Milliseconds until the next thing: often while messages are on their way.
    fn pause(&mut self) -> u64 {
        match self.chance.below(3) {
            0 => self.chance.below(300),
            1 => 300 + self.chance.below(1_500),
            _ => 1_000 + self.chance.below(6_000),
        }
    }

    fn act(&mut self) -> Act {
        match self.chance.below(10) {
            0..=3 => self.life(),
            4 => self.people(),
            _ => {
                let index = self.index(self.kinds.len());
                self.fault(self.kinds[index])
            }
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    fn life(&mut self) -> Act {
        let vm = vm(self.index(self.vms));
        Act::Step(match self.chance.below(5) {
            0 => Step::Load(vm, 0.0),
            1 | 2 => Step::Load(vm, self.chance.below(60) as f64 / 10.0),
            _ => Step::Use(vm, Bytes::from_mib(self.chance.below(600))),
        })
    }

    fn people(&mut self) -> Act {
        let index = self.index(self.vms);
        Act::Step(match self.chance.below(8) {
            0 => Step::Ordered(vm(index), Order::Freeze),
            1 | 2 => Step::Ordered(vm(index), Order::Follow),
            3 => {
                let room = units(1 + self.chance.below(self.room * 3 / 2));
                Step::Room(self.index(self.nodes), room)
            }
            _ => {
                let mut info = info(index);
                info.bounds.max = units(1 + self.chance.below(MOST_UNITS));
                info.priority = i32::try_from(self.chance.below(3)).unwrap_or(0);
                if self.chance.happens(15) {
                    info.mode = Mode::Observe;
                }
                Step::Told(info)
            }
        })
    }

    fn fault(&mut self, kind: Kind) -> Act {
        let index = self.index(self.vms);
        let vm = vm(index);
        let again = self.chance.happens(60);
        Act::Step(match kind {
            Kind::Life | Kind::People => return self.life(),
            Kind::Arrivals if again => return Act::Appears(index),
            Kind::Arrivals => Step::Dies(vm),
            Kind::Online => Step::ShortOfVcpus(vm, !again),
            Kind::Driver => Step::Driver(vm, self.driver()),
            Kind::Network => return Act::Network(self.network()),
            Kind::Agent => Step::AgentRestarts(vm),
            Kind::Host => Step::HostRestarts(self.index(self.nodes)),
            Kind::Informant if again => Step::InformantStarts(vm),
            Kind::Informant => Step::InformantDies(vm),
            Kind::Reboot => Step::Reboots(vm),
            Kind::Deaf => Step::Deaf(vm, !again),
            Kind::Stuck => Step::Stuck(vm, !again),
            Kind::Figures => Step::Mute(vm, self.muted()),
            Kind::Unparks => Step::Unparks(vm),
        })
    }

    fn network(&mut self) -> Faults {
        if self.chance.happens(40) {
            return Faults::default();
        }
        // Now and then a way is cut altogether.
        let (no_way, no_way_back) = (self.chance.happens(10), self.chance.happens(10));
        Faults {
            lose_request: if no_way { 100 } else { self.chance.below(40) },
            lose_answer: if no_way_back { 100 } else { self.chance.below(40) },
            repeat: self.chance.below(30),
            delay: Duration::from_millis(self.chance.below(1_500)),
        }
    }

    fn driver(&mut self) -> Driver {
        match self.chance.below(6) {
            0 => Driver::Refuses,
            1 => Driver::Idle,
            2 => Driver::Half,
            _ => Driver::Honest,
        }
    }

    fn muted(&mut self) -> Option<Muted> {
        match self.chance.below(7) {
            0 => Some(Muted::Silent),
            1 => Some(Muted::NoLoad),
            2 => Some(Muted::NoMemory),
            3 => Some(Muted::NotANumber),
            _ => None,
        }
    }

    /// Below `limit`, which is not zero.
    fn index(&mut self, limit: usize) -> usize {
        usize::try_from(self.chance.below(limit as u64)).unwrap_or(0)
    }
}
