//! The conformance kit against the program, in every version, with no case left out.

use super::Plugin;
use windlass_conformance::case::Choice;
use windlass_conformance::plugin::{Options, Vm, run};
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

#[test]
fn the_program_keeps_to_its_protocol_in_every_version() {
    let plugin = Plugin::start(LISTS);
    let ours = PluginVersion::SPOKEN;
    let versions: Vec<_> = PLUGIN
        .into_iter()
        .filter(|version| ours.contains(PluginVersion::from_number(version.number)))
        .collect();
    assert_eq!(versions.len(), PluginVersion::known().count());
    let options = Options {
        target: plugin.permits.parse().unwrap(),
        vm: Vm::named("a"),
        other: Vm::named("other"),
        moving: Some(Vm::named("moved")),
        slot: VmInfo::DEFAULT_MEMORY_SLOT.bytes(),
        choice: Choice { versions, ..Choice::default() },
    };
    let report = run(&options, &mut |_| {});
    assert!(report.holds(), "{report}");
    assert!(report.left_out.is_empty(), "{report}");
}
