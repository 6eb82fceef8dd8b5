//! What configures `windlass-agent` and `windlass-plugin`: their own files, and the reference's.
//!
//! What is taken keeps to the limits that docs/agent.md and docs/plugin.md name, and is taken
//! again; what is not is refused by field, in few words.

use crate::operator_texts::are_short;
use std::ops::RangeInclusive;
use std::time::Duration;
use windlass_agent_config::config::{AgentConfig, CommandLine};
use windlass_kit::problem::Problem;
use windlass_plugin_config::config::{PluginConfig, Rule};
use windlass_plugin_config::lists::Lists;
use windlass_protocol::{Resources, VmInfo};

/// The first byte of inputs that are of here: this one and the four after it.
pub(crate) const FIRST: u8 = 251;

pub(crate) fn play(file: u8, text: &str) {
    match file {
        0 => agent(AgentConfig::from_toml(text, &CommandLine::default())),
        1 => agent(AgentConfig::from_json(text, &given())),
        2 => match PluginConfig::from_toml(text, None) {
            Ok((config, lists)) => {
                plugin(&config);
                books(&lists);
            }
            Err(problems) => are_short(&problems),
        },
        3 => match PluginConfig::from_json(text, None) {
            Ok(config) => plugin(&config),
            Err(problems) => are_short(&problems),
        },
        _ => match Lists::from_text(text, VmInfo::DEFAULT_MEMORY_SLOT) {
            Ok(lists) => books(&lists),
            Err(problems) => are_short(&problems),
        },
    }
}

/// The reference's file does not say where the plugin is.
fn given() -> CommandLine {
    let plugin = "http://127.0.0.1:10299".parse().ok();
    assert!(plugin.is_some(), "the address is one");
    CommandLine { plugin, ..CommandLine::default() }
}

fn agent(read: Result<AgentConfig, Vec<Problem>>) {
    let config = match read {
        Ok(config) => config,
        Err(problems) => return are_short(&problems),
    };
    assert!(config.basics.state_dir != config.basics.vms_dir);
    assert!(*config.basics.callback_ports.start() > 0 && !config.basics.callback_ports.is_empty());
    let (times, periods) = (config.times, config.periods);
    // Leases count on both.
    is_within(times.size, millis(100)..=millis(2_000));
    is_within(periods.health, millis(1_000)..=millis(5_000));
    is_within(periods.metrics, millis(1_000)..=millis(10_000));
    for wait in [periods.register_retry, periods.session_retry, periods.session_gap] {
        is_within(wait, millis(100)..=millis(300_000));
    }
    if let Some((_, limit)) = config.basics.dump_state {
        is_within(limit, millis(100)..=millis(60_000));
    }
}

fn plugin(config: &PluginConfig) {
    assert!(!config.slot.is_zero());
    let rules = config.rules.named.iter().map(|(_, rule)| rule).chain([&config.rules.usual]);
    for Rule { watermark: (cpu, mem), .. } in rules {
        assert!((0.0..=1.0).contains(cpu) && (0.0..=1.0).contains(mem), "{cpu}, {mem}");
    }
    assert!(config.needs_restart(config).is_empty());
}

fn books(lists: &Lists) {
    assert!(!lists.nodes.is_empty() && lists.nodes.values().all(|room| *room != Resources::ZERO));
    for (name, vm) in &lists.vms {
        assert!(lists.nodes.contains_key(&*vm.node), "{name} is on {}", vm.node);
        assert!(vm.bounds.max.covers(vm.bounds.min), "{name}");
        assert!(!vm.record().memory_slot.is_zero());
    }
}

#[track_caller]
fn is_within(time: Duration, range: RangeInclusive<Duration>) {
    assert!(range.contains(&time), "{time:?} of {range:?}");
}

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
