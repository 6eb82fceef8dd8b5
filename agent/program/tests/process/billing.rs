//! What the whole agent bills, and what it bills over its own end.

use crate::LIST;
use crate::guest::Guest;
use crate::receiver::Receiver;
use crate::support::{Agent, Folder, Plugin, fail, vm_file};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use windlass_testkit::qmp::Machine;
use windlass_testkit::wait::until;

/// For how long there is no agent: longer than any other time between two looks.
const GAP: Duration = Duration::from_secs(4);

/// The event with the gap is among so many after the restart; events from before the kill may precede it.
const MANY: usize = 8;

/// So long after its start an agent bills by its looks, whatever they find.
const LOOKS_COUNT_AFTER: Duration = Duration::from_secs(30);

/// What the agent logs of each look at sizes.
const LOOK: &str = "looked at sizes";

/// A VM, and the agent that bills it. They end in this order: a machine is woken through its folder.
struct Node {
    agent: Agent,
    guest: Guest,
    machine: Machine,
    folder: Folder,
}

#[test]
fn what_a_vm_has_is_billed_also_while_its_agent_was_killed() {
    bills_its_absence(|_| {}, |node| node.agent.restart());
}

#[test]
fn a_vm_whose_monitor_is_not_reached_at_the_start_is_not_taken_to_be_gone() {
    let hold = |node: &mut Node| {
        node.machine.hold();
        let clients = node.machine.clients();
        node.agent.restart();
        until("the agent waits for the monitor", || node.machine.clients() > clients);
        node.is_looked_at();
    };
    bills_its_absence(hold, |node| node.machine.let_go());
}

#[test]
fn a_vm_on_which_its_agent_may_not_act_yet_at_the_start_is_not_taken_to_be_gone() {
    let hold = |node: &mut Node| {
        node.guest.hold();
        node.agent.restart();
        until("the agent waits for the informant's word", || {
            node.agent.pod("a")["runner"]["server"]["mode"] == "suspended"
        });
        node.is_looked_at();
    };
    bills_its_absence(hold, |node| node.guest.let_go());
}

#[test]
fn a_folder_that_cannot_be_read_at_the_start_has_not_lost_its_vms() {
    let paths = |node: &Node| ["vms.d", "away"].map(|name| node.folder.path(name));
    let hold = |node: &mut Node| {
        let [vms, away] = paths(node);
        std::fs::rename(&vms, &away).unwrap();
        node.agent.restart();
        until("the folder is missed", || node.agent.log().contains("cannot be read"));
        node.is_looked_at();
    };
    bills_its_absence(hold, |node| {
        let [vms, away] = paths(node);
        std::fs::rename(&away, &vms).unwrap();
    });
}

#[test]
fn an_agent_that_bills_and_has_no_name_takes_nothing() {
    let folder = Folder::new();
    let place = folder.path("state");
    let text = format!(
        "plugin = \"http://127.0.0.1:1\"\nstate_dir = {place:?}\n[billing]\nurl = \"https://x\"\n"
    );
    folder.write("agent.toml", &text);
    let (code, said) = fail(&["--config", folder.path("agent.toml").to_str().unwrap()]);
    for words in
        ["--node-name: is needed with billing", "billing.url = \"https://x\": must be http://"]
    {
        assert!(code == 65 && said.contains(words), "ended with {code}: {said}");
    }
    assert!(!place.exists(), "it took its state_dir first");
}

/// An agent bills a VM, is killed, and starts again: the time without it is billed once, and so is the
/// time for which `hold` then keeps it from finding the VM. From `find` on nothing keeps it. Both take
/// less than [`LOOKS_COUNT_AFTER`].
fn bills_its_absence(hold: impl FnOnce(&mut Node), find: impl FnOnce(&mut Node)) {
    let plugin = Plugin::start(LIST);
    let folder = Folder::new();
    let machine = Machine::start(folder.path("a.sock"), 0);
    let guest = Guest::start();
    let receiver = Receiver::start();
    folder.put("a", &vm_file(machine.path(), guest.address()));
    let begun = Instant::now();
    let agent = Agent::start_with(&folder, &plugin, &table(&receiver));
    let mut node = Node { agent, guest, machine, folder };
    until("it is billed", || active(&receiver).len() >= 2);
    let text = node.agent.metrics();
    for name in [
        "windlass_agent_billing_vms ",
        "windlass_agent_billing_vms_elsewhere ",
        "autoscaling_agent_billing_queue_size ",
        "autoscaling_agent_billing_vms_current{is_endpoint=\"true\",autoscaling_enabled=\"true\",phase=\"Running\"} 1",
        "autoscaling_billed_vms_unsuccessful_communication_with_informant_current ",
    ] {
        assert!(text.lines().any(|line| line.starts_with(name)), "{name} in\n{text}");
    }

    node.agent.kill();
    let killed = Instant::now();
    std::thread::sleep(GAP);
    let restarted = Instant::now();
    hold(&mut node);
    let held = restarted.elapsed();
    assert!(held < LOOKS_COUNT_AFTER, "it was held for {held:?}, in which looks begin to count");
    let (before, gap) = (active(&receiver).len(), killed.elapsed().as_secs());
    find(&mut node);
    let has_gap = |active: &BTreeMap<String, u64>| active.values().any(|value| *value >= gap);
    until("it is billed again", || {
        let active = active(&receiver);
        has_gap(&active) || active.len() >= before + MANY
    });
    let billed = active(&receiver);
    assert!(has_gap(&billed), "the gap of {gap} s is not billed: {billed:?}");
    until("it is billed on", || active(&receiver).len() >= billed.len() + 3);
    let (active, most) = (active(&receiver), begun.elapsed().as_secs());
    let sum = active.values().sum::<u64>();
    assert!(sum <= most, "{sum} s are billed of {most}: {active:?}");
}

// === impl Node ===

impl Node {
    /// Waits for looks at sizes: for two that begin after this.
    fn is_looked_at(&self) {
        let before = self.agent.logged(LOOK);
        // The first one may have begun before.
        until("sizes are looked at", || self.agent.logged(LOOK) >= before + 3);
    }
}

fn table(receiver: &Receiver) -> String {
    format!(
        "[billing]\nurl = \"http://{}\"\ncollect_every_seconds = 1\n\
         accumulate_every_seconds = 1\npush_every_seconds = 1\n",
        receiver.address()
    )
}

/// The seconds in which the VM `a` was there, by the key of the event that told of them.
fn active(receiver: &Receiver) -> BTreeMap<String, u64> {
    let mut active = BTreeMap::new();
    for request in receiver.heard() {
        let request: Value = serde_json::from_str(&request).unwrap();
        for event in request["events"].as_array().unwrap() {
            let is = |field: &str, value: &str| event[field] == value;
            if is("endpoint_id", "a") && is("metric", "active_time_seconds") {
                let key = event["idempotency_key"].as_str().unwrap().to_owned();
                active.insert(key, event["value"].as_u64().unwrap());
            }
        }
    }
    active
}
