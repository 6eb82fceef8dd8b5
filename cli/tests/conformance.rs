//! The conformance kit against our agent, with its own driver and over HTTP, in every version
//! that it speaks.
#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "conformance/agent.rs"]
mod agent;
#[path = "conformance/command.rs"]
mod command;
#[path = "conformance/variants.rs"]
mod variants;

use std::sync::Arc;
use windlass_conformance::agent::{Options, run};
use windlass_conformance::versions::{INFORMANT, PLUGIN, Version};
use windlass_protocol::{InformantVersion, PluginVersion};

#[test]
fn the_agent_keeps_to_its_protocols_in_every_version() {
    let report = run(&options(Arc::new(agent::Library)), &mut |outcome| eprintln!("{outcome}"));
    assert!(report.holds(), "{report}");
}

pub(crate) fn options(start: Arc<dyn windlass_conformance::agent::Start>) -> Options {
    Options {
        start,
        informant: informant(),
        plugin: plugin(),
        only: Vec::new(),
        skip_ours: false,
        logs: None,
        at_once: 8,
    }
}

fn informant() -> Vec<Version> {
    let ours = InformantVersion::SPOKEN;
    let spoken = |version: &Version| ours.contains(InformantVersion::from_number(version.number));
    INFORMANT.into_iter().filter(spoken).collect()
}

fn plugin() -> Vec<Version> {
    let ours = PluginVersion::SPOKEN;
    let spoken = |version: &Version| ours.contains(PluginVersion::from_number(version.number));
    PLUGIN.into_iter().filter(spoken).collect()
}
