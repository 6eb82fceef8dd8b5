//! The demo's script, played in the world, and what `windlass explain` says of it: byte for
//! byte. From this text alone a reader must be able to answer why a VM grew, why less than it
//! wanted, who got the room, why memory stayed, and what it waits for.
#![expect(clippy::unwrap_used, reason = "tests")]

use expect_test::expect_file;
use std::time::Duration;
use windlass_cli::explain::{Explained, page, summary};
use windlass_demo::reasons;
use windlass_demo::script::{Because, End, Load, Player, SCRIPT, Step as Act};
use windlass_protocol::{
    Bytes, ComputeUnit, CpuLimit, Mode, Policy, ScaleDown, VmInfo, VmName, Waiting,
};
use windlass_world::{GuestSpec, Setup, Step, World};

#[test]
fn the_script_of_the_demo_is_explained() {
    let world = played(|_, _| {});
    assert_eq!(world.violations(), &[]);
    for player in SCRIPT.players {
        let vm = VmName::on_host(player.name);
        let text = page(&explained(&world, &vm));
        match player.name {
            "web" => expect_file!["golden/web.txt"].assert_eq(&text),
            "batch" => expect_file!["golden/batch.txt"].assert_eq(&text),
            "cache" => expect_file!["golden/cache.txt"].assert_eq(&text),
            other => panic!("nothing is expected of {other}"),
        }
    }
}

/// What an operator reads first: at the end of each step, of the VM that the step is about.
#[test]
fn the_script_of_the_demo_is_summed_up() {
    let mut pages = Vec::new();
    played(|step, world| {
        let vm = match step {
            "rise" => "batch",
            "contention" | "refusal" | "fall" => "web",
            "burst" => "cache",
            _ => return,
        };
        let text = summary(&explained(world, &VmName::on_host(vm)));
        pages.push(format!("At the end of the step {step:?}:\n{text}"));
    });
    expect_file!["golden/summaries.txt"].assert_eq(&pages.join("\n"));
}

#[test]
fn the_reasons_of_the_script_stand_in_their_order() {
    let world = played(|_, _| {});
    let names: Vec<&str> = SCRIPT.players.iter().map(|player| player.name).collect();
    let list =
        reasons::list(names.iter().map(|name| (*name, world.decisions(&VmName::on_host(*name)))));
    expect_file!["../src/reasons.txt"].assert_eq(&list);
}

/// While it waits for room, and while its guest refuses.
#[test]
fn what_it_waits_for_is_explained_while_it_waits() {
    let mut pages = Vec::new();
    played(|step, world| {
        if matches!(step, "contention" | "refusal") {
            let text = page(&explained(world, &VmName::on_host("web")));
            let now = text.find("Now, ").unwrap();
            pages.push(format!("At the end of the step {step:?}:\n{}", &text[now..]));
        }
    });
    expect_file!["golden/web-waits.txt"].assert_eq(&pages.join("\n"));
}

/// Looks at the end of each step.
fn played(mut look: impl FnMut(&str, &World)) -> World {
    let mut world = World::new(Setup {
        nodes: 1,
        room: SCRIPT.room,
        unit: ComputeUnit::try_from(SCRIPT.unit).unwrap(),
        trust_guest_parking: true,
        listed: false,
        seed: 1,
    });
    for player in SCRIPT.players {
        world.add(info(player), spec(player));
    }
    for act in SCRIPT.steps {
        play(&mut world, act);
        look(act.name, &world);
    }
    world
}

fn play(world: &mut World, act: &Act) {
    let began = world.now();
    for (name, load) in act.loads {
        let vm = VmName::on_host(*name);
        match load {
            #[expect(clippy::cast_precision_loss, reason = "a few processes")]
            Load::Spin(count) => world.step(Step::Load(vm, *count as f64)),
            Load::Free => world.step(Step::Use(vm, Bytes::ZERO)),
            Load::Take { total, chunk, every } => {
                for taken in 1..=total.bytes().div_ceil(chunk.bytes()) {
                    let used = chunk.saturating_mul(taken).min(*total);
                    world.step(Step::Use(vm.clone(), used));
                    world.run(*every);
                }
            }
        }
    }
    let deadline = began.after(act.within);
    let mut steady_since = None;
    while world.now() < deadline {
        world.run(Duration::from_millis(250));
        let there = act.ends.iter().all(|end| is_there(world, end));
        steady_since = there.then(|| steady_since.unwrap_or(world.now()));
        if steady_since.is_some_and(|since| world.now().since(since) >= act.steady) {
            return;
        }
    }
    let statuses: Vec<_> = world.host().vms;
    panic!("{}: not everybody got where the script says: {statuses:#?}", act.name);
}

fn is_there(world: &World, end: &End) -> bool {
    let vm = VmName::on_host(end.vm);
    let Some(status) = world.status(&vm) else { return false };
    let has = world.has(&vm) == end.has && world.uses(&vm) == end.has;
    has && match end.because {
        Because::Goal => status.goal == Some(end.has),
        Because::Room(wants) => status
            .waiting
            .iter()
            .any(|why| matches!(why, Waiting::Room { wanted, .. } if *wanted == wants)),
        Because::Refusal => status.waiting.iter().any(|why| matches!(why, Waiting::Refused { .. })),
    }
}

fn explained(world: &World, vm: &VmName) -> Explained {
    Explained {
        at: world.now(),
        vm: vm.clone(),
        decisions: world.decisions(vm).to_vec(),
        open: world.open_decision(vm).cloned(),
        notes: world.notes(vm),
        ordered: Vec::new(),
        status: world.status(vm),
        state: None,
        monitor: None,
        node: Some(world.books()),
        problems: Vec::new(),
        parked: Vec::new(),
        returning: Vec::new(),
        cpu_limit: Some(CpuLimit::Trust),
    }
}

fn info(player: &Player) -> VmInfo {
    VmInfo {
        name: VmName::on_host(player.name),
        bounds: player.bounds,
        target: player.target,
        policy: Policy::LoadAverage,
        load_window: SCRIPT.window,
        priority: player.priority,
        mode: Mode::Act,
        memory_slot: VmInfo::DEFAULT_MEMORY_SLOT,
        paused_until: None,
        scale_down: ScaleDown::AT_ONCE,
        cpu_limit: None,
    }
}

fn spec(player: &Player) -> GuestSpec {
    let bounds = player.bounds;
    let vcpus = |cpu: windlass_protocol::MilliCpu| u32::try_from(cpu.cores_up()).unwrap();
    GuestSpec {
        boot: bounds.min.mem,
        addable: bounds.max.mem.saturating_sub(bounds.min.mem),
        vcpus: vcpus(bounds.min.cpu),
        max_vcpus: vcpus(bounds.max.cpu),
        removal: false,
        limits: false,
    }
}
