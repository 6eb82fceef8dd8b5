//! The conformance kit against the program, in every version.

use super::{Plugin, body};
use serde_json::{Value, json};
use windlass_conformance::case::Choice;
use windlass_conformance::plugin::{Options, Vm, catalogue, run};
use windlass_conformance::versions::PLUGIN;
use windlass_protocol::{PluginVersion, VmInfo};

/// What the kit asks for: two VMs that may have parts of a vCPU, and one of one vCPU and eight
/// slots that is about to be moved, on a node with room for five more vCPUs and 40 more slots.
const LISTS: &str = "\
[compute_unit]\ncpu = 0.25\nmemory = \"128MiB\"\n\
[[node]]\nname = \"n\"\ncpu = 6\nmemory = \"6GiB\"\n\
[[vm]]\nname = \"a\"\nnode = \"n\"\n\
min = { cpu = 0.25, memory = \"128MiB\" }\nmax = { cpu = 4, memory = \"4GiB\" }\n\
[[vm]]\nname = \"other\"\nnode = \"n\"\n\
min = { cpu = 0.25, memory = \"128MiB\" }\nmax = { cpu = 4, memory = \"4GiB\" }\n\
[[vm]]\nname = \"moved\"\nnode = \"n\"\nmoving = true\n\
min = { cpu = 1, memory = \"1GiB\" }\nmax = { cpu = 1, memory = \"1GiB\" }\n";

/// In these cases one VM gets what another gave back, of which the program is sure after a while.
const WAIT: [&str; 2] = ["a-node-is-given-out-once", "nothing-may-be-asked-for"];

#[test]
fn the_program_keeps_to_its_protocol_in_every_version() {
    let ours = PluginVersion::SPOKEN;
    let versions: Vec<_> = PLUGIN
        .into_iter()
        .filter(|version| ours.contains(PluginVersion::from_number(version.number)))
        .collect();
    assert_eq!(versions.len(), PluginVersion::known().count());
    let all = catalogue().len();
    let mut only: Vec<_> = catalogue().into_iter().map(|case| case.name.to_owned()).collect();
    only.retain(|name| !WAIT.contains(&name.as_str()));
    assert_eq!(only.len() + WAIT.len(), all);
    holds(Choice { versions, only, ..Choice::default() });
}

#[test]
fn what_a_vm_gave_back_is_given_to_another() {
    let versions = PLUGIN[PLUGIN.len() - 1..].to_vec();
    let only = WAIT.map(str::to_owned).to_vec();
    holds(Choice { versions, only, ..Choice::default() });
}

fn holds(choice: Choice) {
    let plugin = Plugin::start(LISTS);
    let options = Options {
        target: plugin.permits.parse().unwrap(),
        vm: Vm::named("a"),
        other: Vm::named("other"),
        moving: Some(Vm::named("moved")),
        slot: VmInfo::DEFAULT_MEMORY_SLOT.bytes(),
        frees_late: true,
        choice,
    };
    let report = run(&options, &mut |_| {});
    assert!(report.holds(), "{report}");
    assert!(report.left_out.is_empty(), "{report}");
}

/// Those of every version.
const METRICS: &str = r#"{"loadAvg1M":0.5,"loadAvg5M":0.25,"memoryUsageBytes":1}"#;

#[test]
fn a_node_of_a_list_is_given_out_once_and_again_when_it_is_known_to_be_given_back() {
    for version in 1..=5 {
        let plugin = Plugin::start(LISTS);
        let names_last = version >= 4;
        let ask = |vm: &str, cpu: u64, slots: u64, last: Option<(u64, u64)>| {
            let last = last.map(|(cpu, slots)| json!({ "vCPUs": cpu, "mem": slots }));
            let last = last.filter(|_| names_last);
            let body = body(version, vm, (cpu, slots), last.as_ref()).replace("null", METRICS);
            let (status, answer) = plugin.post(&body);
            assert_eq!(status, 200, "{answer}");
            let permit = &serde_json::from_str::<Value>(&answer).unwrap()["permit"];
            (permit["vCPUs"].as_u64().unwrap(), permit["mem"].as_u64().unwrap())
        };
        // Both count with their maximum: 4 vCPUs and 32 slots, on a node with 5 and 40 for both.
        assert_eq!(ask("other", 1, 8, None), (1, 8), "{version}");
        assert_eq!(ask("other", 0, 0, Some((1, 8))), (0, 0), "nothing may be asked for");
        assert_eq!(ask("a", 4, 32, None), (4, 32));
        let kept = if names_last { (1, 8) } else { (4, 32) };
        assert_eq!(ask("other", 4, 32, Some((0, 0))), kept, "{version}: all that is left");
        assert_eq!(ask("a", 1, 16, Some((4, 32))), (1, 16), "{version}");
        assert_eq!(ask("other", 4, 32, Some(kept)), kept, "{version}: a may not have heard");
        assert_eq!(ask("a", 1, 16, Some((1, 16))), (1, 16), "{version}");
        let freed = if names_last { (4, 24) } else { kept };
        assert_eq!(ask("other", 4, 32, Some(kept)), freed, "{version}");
    }
}
