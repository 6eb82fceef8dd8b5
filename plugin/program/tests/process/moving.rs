//! A VM that the list calls moving: its agent is told, and its size stays.

use super::{LISTS, Plugin, body, until};
use serde_json::{Value, json};

#[test]
fn a_vm_that_a_list_calls_moving_is_told_so_and_keeps_its_size() {
    let plugin = Plugin::start(LISTS);
    for vm in ["a", "b"] {
        assert_eq!(said(&plugin, vm, 1, 2), (200, false));
    }
    let moving = LISTS.replacen("name = \"a\"", "name = \"a\"\nmoving = true", 1);
    plugin.write(&moving);
    plugin.signal("HUP");
    until("the list is in force", || !migration(&plugin).is_null());
    let nameless = json!({ "migrationName": { "namespace": "default", "name": "" } });
    assert_eq!(migration(&plugin), nameless);
    let node = plugin.dump()["state"]["nodes"][0]["value"].clone();
    assert_eq!(node["vCPU"]["pressureAccountedFor"], 1, "what it has will be free");
    assert_eq!(node["memSlots"]["pressureAccountedFor"], 2);

    // Its agent asks for more, is told, and is refused from then on.
    assert_eq!(said(&plugin, "b", 1, 2), (200, false), "it stays");
    assert_eq!(said(&plugin, "a", 2, 2), (200, true));
    assert_eq!(plugin.booked("one")[0].1, 1, "nothing was added to it");
    let words = "cannot change resources: agent has already been informed that pod is migrating";
    let (status, text) = plugin.post(&asks("a", 2, 2));
    assert!(status == 400 && text.starts_with(words), "{status} {text}");
    assert_eq!(said(&plugin, "a", 1, 2), (200, true), "the first answer may have been lost");

    // Read again with the same in it, nothing is forgotten.
    plugin.write(&moving.replacen("cpu = 4\nmemory", "cpu = 5\nmemory", 1));
    plugin.signal("HUP");
    let total = || plugin.dump()["state"]["nodes"][0]["value"]["vCPU"]["total"].clone();
    until("the list is in force", || total() == 5);
    assert_eq!(plugin.post(&asks("a", 2, 2)).0, 400);

    // It stays after all.
    plugin.write(LISTS);
    plugin.signal("HUP");
    until("the list is in force", || migration(&plugin).is_null());
    assert_eq!(said(&plugin, "a", 2, 2), (200, false));
    assert_eq!(plugin.booked("one")[0].1, 2);
}

/// What the state says of the move of `a`.
fn migration(plugin: &Plugin) -> Value {
    plugin.dump()["state"]["nodes"][0]["value"]["pods"][0]["value"]["migrationState"].clone()
}

/// The status of an answer, and whether it says `migrate`.
fn said(plugin: &Plugin, vm: &str, cpu: u64, slots: u64) -> (u16, bool) {
    let (status, text) = plugin.post(&asks(vm, cpu, slots));
    let answer: Value = serde_json::from_str(&text).unwrap_or_default();
    (status, answer.get("migrate") == Some(&json!({})))
}

/// A request of v2.1, for vCPUs and slots of 128 MiB, by an agent that was permitted its VM's minimum last.
fn asks(vm: &str, cpu: u64, slots: u64) -> String {
    body(4, vm, (cpu, slots), Some(&json!({ "vCPUs": 1, "mem": 2 })))
}
