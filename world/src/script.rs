//! Histories that chance writes: what may happen to a small node, as data.
//!
//! A property test draws a list of [`Move`]s, a world carries them out, and a failing list is
//! shrunk to the few that matter.

use crate::world::{Driver, Grouping, Muted, Part, Unplug};
use crate::{Faults, GuestSpec, Setup, Step, World};
use std::time::Duration;
use windlass_agent_core::Order;
use windlass_protocol::{
    Bounds, Bytes, ComputeUnit, LoadWindow, MilliCpu, Mode, Policy, Resources, RunState, ScaleDown,
    Target, VmInfo, VmName,
};

/// One thing that happens to VM number `vm`, or to all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Move {
    /// Time goes by, in milliseconds.
    Wait(u64),
    /// That many runnable tasks, in tenths.
    Load(usize, u64),
    /// That many MiB in use, as far as they fit.
    Use(usize, u64),
    /// The agent is killed and starts again.
    AgentRestarts(usize),
    /// The host's process is killed and starts again.
    HostRestarts,
    /// The informant is killed.
    InformantDies(usize),
    /// An informant starts, if there is none.
    InformantStarts(usize),
    /// The guest restarts.
    Reboots(usize),
    /// The monitor stops answering, or answers again.
    Deaf(usize, bool),
    /// The guest gives no memory back, or does again.
    Stuck(usize, bool),
    /// Metrics go missing in some way, or come back.
    Mute(usize, Option<Muted>),
    /// The network gets this unkind, in percent lost, repeated, and milliseconds of delay.
    Network(u64, u64, u64),
    /// The maximum of a VM becomes this many compute units.
    Maximum(usize, u64),
    /// A person freezes the host, or thaws it.
    Freeze(bool),
    /// The node may promise this many compute units.
    Room(u64),
}

/// The compute unit of these worlds: one vCPU and 256 MiB.
pub const UNIT: Resources = Resources::new(MilliCpu::from_cores(1), Bytes::from_mib(256));
/// The most compute units that a VM of these worlds can have.
pub const MOST_UNITS: u64 = 4;

/// VM number `index` of these worlds.
pub fn vm(index: usize) -> VmName {
    VmName::on_host(format!("vm{index}"))
}

/// This many compute units.
pub fn units(count: u64) -> Resources {
    Resources::new(UNIT.cpu.saturating_mul(count), UNIT.mem.saturating_mul(count))
}

/// What VM number `index` of these worlds should be; higher numbers go first.
pub fn info(index: usize) -> VmInfo {
    VmInfo {
        name: vm(index),
        bounds: Bounds { min: units(1), max: units(MOST_UNITS) },
        target: Target::default(),
        policy: Policy::LoadAverage,
        load_window: LoadWindow::FiveSeconds,
        priority: i32::try_from(index).unwrap_or(i32::MAX),
        mode: Mode::Act,
        memory_slot: VmInfo::DEFAULT_MEMORY_SLOT,
        paused_until: None,
        scale_down: ScaleDown::AT_ONCE,
        cpu_limit: None,
    }
}

/// A node of `room` compute units with this many VMs, each started with one.
pub fn world(vms: usize, room: u64, trust_guest_parking: bool, seed: u64) -> World {
    let unit = ComputeUnit::try_from(UNIT).expect("it has both axes");
    let mut world = World::new(Setup {
        nodes: 1,
        room: units(room),
        unit,
        trust_guest_parking,
        listed: false,
        seed,
    });
    for index in 0..vms {
        world.add(info(index), spec(index));
    }
    world
}

/// How VM number `index` of these worlds is started: with one compute unit. Every second one has
/// a hypervisor that takes vCPUs out.
pub fn spec(index: usize) -> GuestSpec {
    GuestSpec {
        boot: UNIT.mem,
        addable: UNIT.mem.saturating_mul(MOST_UNITS - 1),
        vcpus: 1,
        max_vcpus: u32::try_from(MOST_UNITS).unwrap_or(u32::MAX),
        removal: index % 2 == 1,
        limits: false,
    }
}

/// Carries out one move.
pub fn play(world: &mut World, step: Move) {
    match step {
        Move::Wait(millis) => world.run(Duration::from_millis(millis)),
        Move::Load(index, tenths) => {
            #[expect(clippy::cast_precision_loss, reason = "small numbers")]
            world.step(Step::Load(vm(index), tenths as f64 / 10.0));
        }
        Move::Use(index, mib) => {
            let used = Bytes::from_mib(mib);
            if world.fits(&vm(index), used) {
                world.step(Step::Use(vm(index), used));
            }
        }
        Move::AgentRestarts(index) => world.step(Step::AgentRestarts(vm(index))),
        Move::HostRestarts => world.step(Step::HostRestarts(0)),
        Move::InformantDies(index) => world.step(Step::InformantDies(vm(index))),
        Move::InformantStarts(index) => world.step(Step::InformantStarts(vm(index))),
        Move::Reboots(index) => world.step(Step::Reboots(vm(index))),
        Move::Deaf(index, deaf) => world.step(Step::Deaf(vm(index), deaf)),
        Move::Stuck(index, stuck) => {
            let unplug = if stuck { Unplug::Stuck } else { Unplug::Willing };
            world.step(Step::Unplug(vm(index), unplug));
        }
        Move::Mute(index, muted) => world.step(Step::Mute(vm(index), muted)),
        Move::Network(lose, repeat, delay) => {
            world.faults = Faults {
                lose_request: lose,
                lose_answer: lose,
                repeat,
                delay: Duration::from_millis(delay),
            };
        }
        Move::Maximum(index, count) => {
            let mut info = info(index);
            info.bounds.max = units(count.clamp(1, MOST_UNITS));
            world.step(Step::Told(info));
        }
        Move::Freeze(frozen) => {
            let order = if frozen { Order::Freeze } else { Order::Follow };
            let names: Vec<_> = world.names().cloned().collect();
            for name in names {
                world.step(Step::Ordered(name, order));
            }
        }
        Move::Room(count) => world.step(Step::Room(0, units(count))),
    }
}

/// Everything that was made worse is made good again; loads and sizes stay as they are.
pub fn be_kind(world: &mut World) {
    play(world, Move::Network(0, 0, 0));
    play(world, Move::Freeze(false));
    for node in 0..world.nodes() {
        world.step(Step::HostMemory(node, None));
        world.step(Step::Slow(Part::Host(node), Duration::ZERO));
        world.step(Step::Crashes(Part::Host(node), 0));
    }
    let names: Vec<_> = world.names().cloned().collect();
    for name in names {
        world.step(Step::OneAgentEnds(name.clone(), false));
        world.speaks_all(&name);
        world.step(Step::Link(name.clone(), None));
        world.step(Step::MoveIsDue(name.clone(), false));
        world.step(Step::Deaf(name.clone(), false));
        world.step(Step::Stands(name.clone(), RunState::Running, Duration::ZERO));
        world.step(Step::Unplug(name.clone(), Unplug::Willing));
        world.step(Step::SlowMemory(name.clone(), false));
        world.step(Step::Rises(name.clone(), false));
        world.step(Step::Lies(name.clone(), None));
        world.step(Step::ShortOfVcpus(name.clone(), false));
        world.step(Step::Driver(name.clone(), Driver::Honest));
        world.step(Step::Group(name.clone(), Grouping::Refuses(false)));
        world.step(Step::Mute(name.clone(), None));
        for part in [Part::Agent(name.clone()), Part::Informant(name.clone())] {
            world.step(Step::Slow(part.clone(), Duration::ZERO));
            world.step(Step::Crashes(part, 0));
        }
        world.step(Step::AgentStarts(name.clone()));
        world.step(Step::InformantStarts(name));
    }
}
