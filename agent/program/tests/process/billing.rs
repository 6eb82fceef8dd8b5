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

#[test]
fn what_a_vm_has_is_billed_also_while_its_agent_was_killed() {
    bills_its_absence(|_, agent| agent.restart());
}

#[test]
fn a_folder_that_cannot_be_read_at_the_start_has_not_lost_its_vms() {
    bills_its_absence(|folder, agent| {
        let (vms, away) = (folder.path("vms.d"), folder.path("away"));
        std::fs::rename(&vms, &away).unwrap();
        agent.restart();
        until("the folder is missed", || agent.log().contains("cannot be read"));
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

/// An agent bills a VM, is killed, and starts again: the time without it is billed once.
fn bills_its_absence(restart: impl FnOnce(&Folder, &mut Agent)) {
    let plugin = Plugin::start(LIST);
    let folder = Folder::new();
    let machine = Machine::start(folder.path("a.sock"), 0);
    let guest = Guest::start();
    let receiver = Receiver::start();
    folder.put("a", &vm_file(machine.path(), guest.address()));
    let begun = Instant::now();
    let mut agent = Agent::start_with(&folder, &plugin, &table(&receiver));
    until("it is billed", || active(&receiver).len() >= 2);
    let text = agent.metrics();
    for name in [
        "windlass_agent_billing_vms ",
        "windlass_agent_billing_vms_elsewhere ",
        "autoscaling_agent_billing_queue_size ",
        "autoscaling_agent_billing_vms_current{is_endpoint=\"true\",autoscaling_enabled=\"true\",phase=\"Running\"} 1",
        "autoscaling_billed_vms_unsuccessful_communication_with_informant_current ",
    ] {
        assert!(text.lines().any(|line| line.starts_with(name)), "{name} in\n{text}");
    }

    agent.kill();
    std::thread::sleep(GAP);
    let before = active(&receiver).len();
    restart(&folder, &mut agent);
    until("it is billed again", || active(&receiver).len() >= before + 4);
    let (active, longest) = (active(&receiver), GAP.as_secs());
    assert!(active.values().any(|value| *value >= longest), "the gap is not billed: {active:?}");
    let (sum, most) = (active.values().sum::<u64>(), begun.elapsed().as_secs());
    assert!(sum <= most, "{sum} s are billed of {most}: {active:?}");
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
