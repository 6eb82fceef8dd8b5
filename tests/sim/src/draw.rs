//! Schedules from seeds.

use crate::schedule::{Act, Kind, Schedule, Turn};
use crate::{limits, releases, stops};
use std::time::Duration;
use windlass_agent_core::Order;
use windlass_protocol::{Bytes, InformantVersion, Mode, Versions, VmName};
use windlass_world::script::{MOST_UNITS, info, units, vm};
use windlass_world::world::{BEGINNING, Cut, Driver, Lie, Muted, Part, Speaks, Unplug};
use windlass_world::{Chance, Faults, Step};

const FAULTS: [Kind; 23] = [
    Kind::Network,
    Kind::Link,
    Kind::Agent,
    Kind::Host,
    Kind::Informant,
    Kind::Crash,
    Kind::Pause,
    Kind::Slow,
    Kind::Clock,
    Kind::Reboot,
    Kind::Deaf,
    Kind::Unplug,
    Kind::SlowMemory,
    Kind::Rises,
    Kind::Lies,
    Kind::Figures,
    Kind::Unparks,
    Kind::Online,
    Kind::Driver,
    Kind::HostMemory,
    Kind::Arrivals,
    Kind::Moves,
    Kind::TwoAgents,
];
/// What agents speak, by the numbers of versions: ours, and the reference's releases.
const AGENTS: [[u32; 2]; 8] = [[1, 4], [1, 4], [1, 4], [1, 4], [1, 1], [1, 2], [1, 3], [4, 4]];
/// What informants speak, likewise, and what a person may limit ours to.
const INFORMANTS: [[u32; 2]; 8] = [[1, 4], [1, 4], [1, 4], [1, 1], [2, 2], [2, 3], [3, 3], [4, 4]];
/// In so many of a hundred, VMs keep for a while what their signals no longer call for.
const RESTING: u64 = 30;
/// At least so many kinds of fault in each.
const LEAST_KINDS: usize = 3;
/// At least so long; one in ten is longer.
const LENGTH: Duration = Duration::from_secs(125);
const LONG: Duration = Duration::from_secs(605);
/// Clocks are off by this many milliseconds at most, either way: a day.
const MOST_SKEW: u64 = 24 * 3600 * 1000;

/// The schedule of this seed.
pub fn draw(seed: u64) -> Schedule {
    let chance = Chance::new(seed ^ 0x5EED);
    let (kinds, unmet) = (Vec::new(), Vec::new());
    let mut draw = Draw { chance, nodes: 0, vms: 0, room: 0, kinds, unmet };
    draw.nodes = 2 + usize::from(draw.chance.happens(25));
    draw.vms = draw.nodes * 2 + draw.index(2);
    let trust = draw.chance.happens(50);
    draw.kinds = draw.pick_kinds();
    draw.unmet.clone_from(&draw.kinds);
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
    releases::mix(seed, draw.nodes, draw.vms, &mut turns);
    stops::mix(seed, draw.vms, &mut turns);
    let speaks = versions(seed, draw.vms, &mut turns);
    let (limits, parts) = limits::mix(seed, draw.vms, &mut turns);
    let listed = false;
    let rests = Chance::new(seed ^ 0x0E57).happens(RESTING);
    Schedule {
        seed,
        nodes: draw.nodes,
        room,
        vms: draw.vms,
        trust,
        listed,
        rests,
        limits,
        parts,
        speaks,
        turns,
    }
}

/// What everybody speaks at first; and turns in which that changes.
fn versions(seed: u64, vms: usize, turns: &mut Vec<Turn>) -> Vec<Speaks> {
    let mut chance = Chance::new(seed ^ 0x7E25_1015);
    let mut index = |limit: usize| usize::try_from(chance.below(limit as u64)).unwrap_or(0);
    let mut speaks = || Speaks {
        agent: range(AGENTS[index(AGENTS.len())]),
        informant: range(INFORMANTS[index(INFORMANTS.len())]),
    };
    let at_first = (0..vms).map(|_| speaks()).collect();
    let changes: Vec<_> = (0..vms).map(|vm| (vm, speaks())).collect();
    for (vm_index, speaks) in changes {
        let place = index_of(seed, vm_index, turns.len());
        let act = Act::Step(Step::Speaks(vm(vm_index), speaks));
        turns.insert(place, Turn { after: Duration::ZERO, act });
    }
    at_first
}

/// Somewhere among so many turns.
fn index_of(seed: u64, vm: usize, turns: usize) -> usize {
    let mut chance = Chance::new(seed ^ 0x7E25_1016 ^ (vm as u64) << 32);
    usize::try_from(chance.below(turns as u64 + 1)).unwrap_or(0)
}

fn range([min, max]: [u32; 2]) -> Versions<InformantVersion> {
    let [min, max] = [min, max].map(InformantVersion::from_number);
    Versions { min, max }
}

struct Draw {
    chance: Chance,
    nodes: usize,
    vms: usize,
    room: u64,
    kinds: Vec<Kind>,
    /// Kinds that were not in it yet.
    unmet: Vec<Kind>,
}

// === impl Draw ===

impl Draw {
    /// Some kinds of fault.
    fn pick_kinds(&mut self) -> Vec<Kind> {
        let mut left: Vec<Kind> = FAULTS.to_vec();
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
            // Each is in it once, and then whatever comes; half of the time things get well again.
            _ => match self.unmet.pop() {
                Some(kind) => self.fault(kind, false),
                None => {
                    let (index, well) = (self.index(self.kinds.len()), self.chance.happens(55));
                    self.fault(self.kinds[index], well)
                }
            },
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
        Act::Step(match self.chance.below(9) {
            0 => Step::Ordered(vm(index), Order::Freeze),
            1 | 2 => Step::Ordered(vm(index), Order::Follow),
            8 => {
                let size = units(1 + self.chance.below(MOST_UNITS));
                Step::Ordered(vm(index), Order::Release(self.chance.happens(70).then_some(size)))
            }
            3 => {
                let room = units(1 + self.chance.below(self.room * 3 / 2));
                Step::Room(self.index(self.nodes), room)
            }
            _ => {
                let mut info = info(index);
                let most = 1 + self.chance.below(MOST_UNITS);
                info.bounds.max = units(most);
                if self.chance.happens(30) {
                    info.bounds.min = units(1 + self.chance.below(most));
                }
                if self.chance.happens(10) {
                    let until = Duration::from_millis(self.chance.below(400_000));
                    info.paused_until = Some(BEGINNING.after(until));
                }
                info.priority = i32::try_from(self.chance.below(3)).unwrap_or(0);
                if self.chance.happens(15) {
                    info.mode = Mode::Observe;
                }
                Step::Told(info)
            }
        })
    }

    /// A fault, or its end.
    fn fault(&mut self, kind: Kind, well: bool) -> Act {
        let index = self.index(self.vms);
        let vm = vm(index);
        Act::Step(match kind {
            Kind::Life | Kind::People | Kind::Releases | Kind::Stop | Kind::Limit => {
                return self.life();
            }
            Kind::Arrivals if well => return Act::Appears(index),
            Kind::Arrivals => Step::Dies(vm),
            Kind::Online => Step::ShortOfVcpus(vm, !well),
            Kind::Driver => Step::Driver(vm, if well { Driver::Honest } else { self.driver() }),
            Kind::Network if well => return Act::Network(Faults::default()),
            Kind::Network => return Act::Network(self.network()),
            Kind::Agent => Step::AgentRestarts(vm),
            Kind::Host => Step::HostRestarts(self.index(self.nodes)),
            Kind::Informant if well => Step::InformantStarts(vm),
            Kind::Informant => Step::InformantDies(vm),
            Kind::Reboot => Step::Reboots(vm),
            Kind::Deaf if self.chance.happens(20) => Step::Reconnects(vm),
            Kind::Deaf => Step::Deaf(vm, !well),
            Kind::Link => Step::Link(vm, (!well).then(|| self.network())),
            Kind::Crash => {
                let effects = u32::try_from(1 + self.chance.below(12)).unwrap_or(1);
                Step::Crashes(self.part(vm), effects)
            }
            Kind::Pause => {
                let time = Duration::from_millis(self.chance.below(20_000));
                Step::Pauses(self.part(vm), time)
            }
            Kind::Slow => {
                let time = if well { 0 } else { 10 + self.chance.below(120) };
                Step::Slow(self.part(vm), Duration::from_millis(time))
            }
            Kind::Clock => {
                let off = i64::try_from(self.chance.below(2 * MOST_SKEW)).unwrap_or(0);
                let off = off - i64::try_from(MOST_SKEW).unwrap_or(0);
                Step::WallClock(self.part(vm), off)
            }
            Kind::Unplug => Step::Unplug(vm, if well { Unplug::Willing } else { self.unplug() }),
            Kind::SlowMemory => Step::SlowMemory(vm, !well),
            Kind::Rises => Step::Rises(vm, !well),
            Kind::Lies => Step::Lies(vm, (!well).then(|| self.lie())),
            Kind::HostMemory => {
                let left = Bytes::from_mib(self.chance.below(1_000));
                Step::HostMemory(self.index(self.nodes), (!well).then_some(left))
            }
            Kind::Moves => Step::Moves(vm, self.index(self.nodes)),
            Kind::Figures => Step::Mute(vm, (!well).then(|| self.muted())),
            Kind::Unparks => Step::Unparks(vm),
            Kind::TwoAgents if well => Step::OneAgentEnds(vm, self.chance.happens(50)),
            Kind::TwoAgents if self.chance.happens(50) => Step::SecondAgentStarts(vm),
            Kind::TwoAgents => {
                let cut = Cut { out: self.chance.happens(50), into: self.chance.happens(50) };
                Step::Cut(vm, self.chance.happens(50), cut)
            }
        })
    }

    fn network(&mut self) -> Faults {
        // Now and then a way is cut altogether.
        let (no_way, no_way_back) = (self.chance.happens(10), self.chance.happens(10));
        Faults {
            lose_request: if no_way { 100 } else { self.chance.below(40) },
            lose_answer: if no_way_back { 100 } else { self.chance.below(40) },
            repeat: self.chance.below(30),
            delay: Duration::from_millis(1 + self.chance.below(1_500)),
        }
    }

    fn driver(&mut self) -> Driver {
        match self.chance.below(6) {
            0 => Driver::Refuses,
            1 => Driver::Idle,
            2 => Driver::Half,
            3 => Driver::Twice,
            _ => Driver::Late,
        }
    }

    /// A process of this VM, or of a host.
    fn part(&mut self, vm: VmName) -> Part {
        match self.chance.below(3) {
            0 => Part::Agent(vm),
            1 => Part::Informant(vm),
            _ => Part::Host(self.index(self.nodes)),
        }
    }

    fn unplug(&mut self) -> Unplug {
        if self.chance.happens(50) { Unplug::Stuck } else { Unplug::Partial }
    }

    fn lie(&mut self) -> Lie {
        match self.chance.below(3) {
            0 => Lie::AgreesToAll,
            1 => Lie::Garbage,
            _ => Lie::Shouts,
        }
    }

    fn muted(&mut self) -> Muted {
        match self.chance.below(5) {
            0 => Muted::Silent,
            1 => Muted::NoLoad,
            2 => Muted::NoMemory,
            3 => Muted::NotANumber,
            _ => Muted::Absurd,
        }
    }

    /// Below `limit`, which is not zero.
    fn index(&mut self, limit: usize) -> usize {
        usize::try_from(self.chance.below(limit as u64)).unwrap_or(0)
    }
}
