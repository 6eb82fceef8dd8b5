//! What the books of a node say at one moment, whoever keeps them.

use crate::vm::UNIT_MIB;
use serde_json::Value;
use std::collections::BTreeMap;
use std::future::Future;
use windlass_protocol::status::{HostStatus, SessionState};
use windlass_protocol::{Bytes, MilliCpu, Mode, Resources};

/// Slots of memory in a compute unit.
const SLOTS: u64 = 2;

/// What the books say.
#[derive(Clone, Debug, PartialEq)]
pub struct Books {
    /// What each VM has in them.
    pub vms: BTreeMap<String, Resources>,
    /// All that is promised.
    pub reserved: Resources,
    /// Whether every VM in them was seen, and its informant heard: until then the most that it may
    /// have counts.
    pub settled: bool,
}

/// Who keeps books.
pub(crate) trait Keeper: Send + 'static {
    /// What they say, and which life of the process says it; `None` without an answer.
    fn look(&self) -> impl Future<Output = Option<(u64, Books)>> + Send;
}

// === impl Books ===

impl Books {
    /// Those of a plugin that has one node, from the state that it dumps.
    pub(crate) fn of_plugin(dump: &Value) -> Option<Self> {
        let node = &dump["state"]["nodes"][0]["value"];
        let pods = node["pods"].as_array()?;
        let vms = pods
            .iter()
            .map(|pod| {
                let name = pod["key"]["name"].as_str()?.to_owned();
                Some((name, reserved(&pod["value"])?))
            })
            .collect::<Option<_>>()?;
        Some(Self { vms, reserved: reserved(node)?, settled: true })
    }
}

impl From<&HostStatus> for Books {
    fn from(state: &HostStatus) -> Self {
        let vms = state.node.iter().flat_map(|node| &node.vms);
        Self {
            vms: vms.map(|booked| (booked.name.name.clone(), booked.reserved)).collect(),
            reserved: state.node.as_ref().map_or(Resources::ZERO, |node| node.reserved),
            settled: is_settled(state),
        }
    }
}

/// Parked vCPUs count until the informant of a VM that is acted on was heard.
fn is_settled(state: &HostStatus) -> bool {
    state.node.iter().flat_map(|node| &node.vms).all(|booked| {
        let vm = state.vms.iter().find(|vm| vm.name == booked.name);
        vm.is_some_and(|vm| {
            let heard = match vm.mode {
                Mode::Act => vm.session == SessionState::Active,
                Mode::Observe => true,
            };
            vm.seen.is_some() && heard
        })
    })
}

/// What is reserved, in the reference's words: vCPUs, and slots of memory.
fn reserved(of: &Value) -> Option<Resources> {
    let cpu = &of["vCPU"]["reserved"];
    let milli = cpu.as_str().and_then(|text| text.strip_suffix('m')?.parse().ok());
    let cpu = cpu.as_u64().map(MilliCpu::from_cores).or(milli.map(MilliCpu::from_milli))?;
    let slots = of["memSlots"]["reserved"].as_u64()?;
    Some(Resources { cpu, mem: Bytes::from_mib(slots * u64::from(UNIT_MIB) / SLOTS) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_books_of_a_plugin_are_in_vcpus_and_slots() {
        let has = |cpu: Value, slots: u64| json!({"vCPU": {"reserved": cpu}, "memSlots": {"reserved": slots}});
        let mut node = has(json!("1500m"), 4);
        node["pods"] = json!([{"key": {"name": "a"}, "value": has(json!(1), 2)}]);
        let dump = json!({"state": {"nodes": [{"value": node}]}});
        let books = Books::of_plugin(&dump).unwrap();
        let size =
            |milli, mib| Resources { cpu: MilliCpu::from_milli(milli), mem: Bytes::from_mib(mib) };
        assert_eq!(books.reserved, size(1500, 512));
        assert_eq!(books.vms["a"], size(1000, 256));
        assert_eq!(Books::of_plugin(&json!({})), None);
    }
}
