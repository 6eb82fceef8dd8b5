//! One agent and plugins that speak other versions: what it states, and what it makes of what
//! they say.
#![expect(clippy::unwrap_used, reason = "tests")]

#[expect(dead_code, reason = "each test of one scaler needs a part of it")]
#[path = "support/vm.rs"]
mod vm;

use vm::{BEGAN, Vm, capabilities, cu, seen, settings};
use windlass_agent_core::{Action, Asking, Event, Failure, Settings};
use windlass_protocol::{
    Bounds, Bytes, Capabilities, LoadWindow, Mode, Peer, PluginVersion, Resources, ShrinkCpu,
    Versions, VmInfo, Waiting,
};

#[test]
fn a_request_that_is_refused_by_version_is_said_in_the_next_lower_one() {
    let mut vm = Vm::that_speaks(PluginVersion::SPOKEN);
    for version in [PluginVersion::V5_0, PluginVersion::V4_0, PluginVersion::V3_0] {
        assert_eq!(vm.asks().unwrap().version, version);
        vm.fails(Failure::Version);
    }
    // At once, and what is taken is remembered.
    assert_eq!(vm.asks().unwrap().version, PluginVersion::V2_1);
    vm.permitted(cu(1));
    vm.wait(6_000);
    assert_eq!(vm.asks().unwrap().version, PluginVersion::V2_1);
    vm.fails(Failure::Refused(404));
    vm.wait(6_000);
    assert_eq!(vm.asks().unwrap().version, PluginVersion::V2_1);
}

#[test]
fn the_highest_version_is_tried_again_now_and_then() {
    let mut vm = Vm::that_speaks(PluginVersion::SPOKEN);
    let mut stated = Vec::new();
    for _ in 0..30 {
        let Some(asking) = vm.asks() else {
            vm.wait(1_000);
            continue;
        };
        stated.push((vm.now.since(BEGAN).as_secs(), asking.version.to_string()));
        // It speaks v4.0 at most, and all from the 70th second on.
        if asking.version > PluginVersion::V4_0 && vm.now.since(BEGAN).as_secs() < 70 {
            vm.fails(Failure::Version);
        } else {
            vm.permitted(asking.resources);
            vm.wait(10_000);
        }
    }
    let tried = stated.iter().filter(|(_, version)| version == "v5.0").map(|(at, _)| *at);
    let tried: Vec<_> = tried.take(4).collect();
    assert_eq!(tried[0], 0);
    assert!((60..70).contains(&tried[1]), "{stated:?}");
    assert!((120..130).contains(&tried[2]), "{stated:?}");
    assert!(tried[3] < 145, "it was taken: {stated:?}");
}

#[test]
fn the_highest_version_is_tried_soon_after_a_silence() {
    let mut vm = Vm::that_speaks(PluginVersion::SPOKEN);
    vm.asks().unwrap();
    vm.fails(Failure::Version);
    vm.asks().unwrap();
    vm.permitted(cu(1));
    vm.wait(6_000);
    assert_eq!(vm.asks().unwrap().version, PluginVersion::V4_0);
    vm.fails(Failure::NoAnswer);
    vm.wait(6_000);
    assert_eq!(vm.asks().unwrap().version, PluginVersion::V5_0, "it may be another by now");
    vm.fails(Failure::Version);
    let asking = vm.asks().unwrap();
    assert_eq!(asking.version, PluginVersion::V4_0, "it is not, and a trial costs one request");
    assert_eq!(asking.last_permit, Some(cu(1)), "and no permit");
}

#[test]
fn a_plugin_that_speaks_none_of_them_is_left_alone_for_a_while() {
    let ours = Versions { min: PluginVersion::V2_1, max: PluginVersion::V3_0 };
    let mut vm = Vm::that_speaks(ours);
    assert_eq!(vm.asks().unwrap().version, PluginVersion::V3_0);
    vm.fails(Failure::Version);
    assert_eq!(vm.asks().unwrap().version, PluginVersion::V2_1);
    vm.fails(Failure::Version);
    assert_eq!(vm.asks(), None);
    vm.wait(1_500);
    assert_eq!(vm.asks().unwrap().version, PluginVersion::V3_0);
}

#[test]
fn a_request_names_what_was_last_permitted() {
    let mut vm = Vm::that_speaks(PluginVersion::SPOKEN);
    assert_eq!(vm.asks().unwrap().last_permit, None);
    vm.permitted(cu(1));
    vm.wait(6_000);
    assert_eq!(vm.asks().unwrap().last_permit, Some(cu(1)));
    vm.fails(Failure::NoAnswer);
    vm.wait(6_000);
    assert_eq!(vm.asks().unwrap().last_permit, Some(cu(1)));
    vm.fails(Failure::NoAnswer);
    vm.tell(Event::Told(VmInfo { mode: Mode::Observe, ..info() }.into()));
    vm.tell(Event::Told(info().into()));
    vm.wait(6_000);
    assert_eq!(vm.asks().unwrap().last_permit, None, "nobody asked meanwhile");
}

/// Books that have just begun take what is said without a last permit for what was promised.
#[test]
fn an_agent_that_was_permitted_nothing_says_first_what_there_is() {
    let mut vm = Vm::that_speaks(PluginVersion::SPOKEN);
    vm.tell(Event::Told(VmInfo { bounds: Bounds { min: cu(3), max: cu(4) }, ..info() }.into()));
    for _ in 0..3 {
        let asking = vm.asks().unwrap();
        assert_eq!((asking.resources, asking.last_permit), (cu(1), None));
        vm.fails(Failure::NoAnswer);
        vm.wait(10_000);
    }
    vm.asks().unwrap();
    vm.permitted(cu(1));
    vm.wait(250);
    let asking = vm.asks().unwrap();
    assert_eq!((asking.resources, asking.last_permit), (cu(3), Some(cu(1))), "and soon the rest");
}

#[test]
fn a_vm_that_is_about_to_be_moved_keeps_its_size() {
    let mut vm = Vm::that_speaks(PluginVersion::SPOKEN);
    vm.wants_three();
    vm.tell(Event::MustStay(cu(3)));
    assert_eq!(vm.resizes(), 0, "though it was permitted");
    assert!(vm.scaler.status(vm.now).waiting.contains(&Waiting::Move));
    // It says the same size again and again, for anything else is refused.
    for _ in 0..10 {
        vm.wait(6_000);
        assert_eq!(vm.asks().unwrap().resources, cu(3));
        vm.fails(Failure::Moving);
        assert_eq!(vm.resizes(), 0);
    }
    // The move comes to nothing.
    vm.wait(6_000);
    vm.asks().unwrap();
    vm.permitted(cu(3));
    vm.wait(31_000);
    assert!(vm.resizes() > 0);
}

impl Vm {
    /// It was seen to have one unit, and has a session; its agent has these versions.
    fn that_speaks(plugin_versions: Versions<PluginVersion>) -> Self {
        let can =
            Capabilities { memory_step: Bytes::from_mib(2), ..capabilities(ShrinkCpu::Parking) };
        let settings = Settings { plugin_versions, ..settings() };
        let mut vm = Self::that_can(can, settings, info(), seen(1));
        vm.registers();
        vm.looks();
        vm
    }

    /// What the plugin is asked, and how, if it is asked now; it is under way then.
    fn asks(&mut self) -> Option<Asking> {
        let actions = self.scaler.plan(self.now).actions;
        let asking = actions.into_iter().find_map(|action| {
            let Action::AskPlugin(asking) = action else { return None };
            Some(asking)
        })?;
        self.tell(Event::Sent(Action::AskPlugin(asking)));
        Some(asking)
    }

    /// It has asked for three units.
    fn wants_three(&mut self) {
        self.asks().unwrap();
        self.permitted(cu(1));
        self.tell(Event::Told(
            VmInfo { bounds: Bounds { min: cu(3), max: cu(4) }, ..info() }.into(),
        ));
        self.wait(250);
        assert_eq!(self.asks().unwrap().resources, cu(3));
    }

    fn permitted(&mut self, permit: Resources) {
        self.tell(Event::Permitted(permit));
    }

    fn fails(&mut self, failure: Failure) {
        self.tell(Event::Failed(Peer::Plugin, failure));
    }

    /// How much of the hypervisor is asked for now.
    fn resizes(&mut self) -> usize {
        self.looks();
        let actions = self.scaler.plan(self.now).actions;
        actions.iter().filter(|action| matches!(action, Action::Resize(_))).count()
    }
}

fn info() -> VmInfo {
    VmInfo { load_window: LoadWindow::OneMinute, ..vm::info() }
}
