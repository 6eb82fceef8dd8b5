//! The state of an agent as JSON, for a person who looks for a fault.
//!
//! It is read from what runners publish, so a VM that hangs does not keep it waiting.

use crate::node::Standing;
use crate::runner::View;
use serde_json::{Value, json};
use windlass_protocol::status::{SessionState, VmStatus};
use windlass_protocol::vm_file::VmFile;
use windlass_protocol::{
    Bytes, ComputeUnit, InformantVersion, MilliCpu, Moment, Resources, VmInfo, VmName, Waiting,
};
use windlass_scaling::Sample;

/// All VMs.
pub(crate) fn agent(frozen: bool, vms: Vec<Value>) -> Value {
    json!({ "frozen": frozen, "vms": vms })
}

/// One VM.
pub(crate) fn vm(
    name: &VmName,
    standing: Standing,
    port: Option<u16>,
    file: Option<&VmFile>,
    view: &View,
) -> Value {
    json!({
        "name": name,
        "standing": standing,
        "callback_port": port,
        "monitor": file.map(|file| &file.qmp),
        "informant": file.map(|file| file.informant),
        "told": file.map(|file| &file.info),
        "upper": view.upper,
        "status": view.status,
        "open": view.open,
    })
}

/// All VMs, as the reference's agent dumps them.
pub(crate) fn reference(stopped: bool, pods: Vec<Value>) -> Value {
    json!({
        "stopped": stopped,
        "buildInfo": {
            "gitInfo": concat!("windlass-v", env!("CARGO_PKG_VERSION")),
            "goVersion": "",
        },
        "pods": pods,
    })
}

/// What is shown of one VM, read at once and written later.
pub(crate) struct Pod {
    pub(crate) name: VmName,
    pub(crate) since: Moment,
    pub(crate) standing: Standing,
    pub(crate) port: Option<u16>,
    pub(crate) file: Option<VmFile>,
    pub(crate) view: View,
}

// === impl Pod ===

impl Pod {
    /// As the reference's agent dumps a pod. What Windlass does not keep is `null`; `windlass` has
    /// what the reference has no place for.
    pub(crate) fn reference(&self, unit: ComputeUnit, plugin: &str) -> Value {
        let info = self.file.as_ref().map(|file| vm_info(&file.info, self.view.upper));
        let runner = self.file.as_ref().zip(self.view.status.as_ref());
        json!({
            "podName": names(&self.name),
            "status": {
                "startTime": rfc3339(self.since),
                "endState": null,
                "previousEndStates": [],
                "lastSuccessfulInformantComm": self.view.guest.at.and_then(rfc3339),
                "vmInfo": info,
                "endpointID": "",
            },
            "runner": runner.map(|(file, status)| runner_of(file, status, &self.view, unit, plugin)),
            "windlass": vm(&self.name, self.standing, self.port, self.file.as_ref(), &self.view),
        })
    }
}

fn runner_of(
    file: &VmFile,
    status: &VmStatus,
    view: &View,
    unit: ComputeUnit,
    plugin: &str,
) -> Value {
    let slot = file.info.memory_slot;
    json!({
        "podIP": file.informant.ip().to_string(),
        "vm": vm_info(&file.info, status.upper),
        "lastMetrics": view.guest.sample.as_ref().map(loads),
        "scheduler": {
            "info": { "PodName": null, "UID": null, "IP": plugin },
            "registered": status.permit.is_some(),
            "fatalError": null,
        },
        "server": server(status.session, view.guest.version),
        "informant": null,
        "computeUnit": resources(unit.into(), slot),
        "lastApproved": status.permit.map(|permit| resources(permit, slot)),
        "lastSchedulerError": view.errors.plugin,
        "lastInformantError": view.errors.informant,
        "backgroundWorkerCount": null,
        "migrationStarted": status.waiting.contains(&Waiting::Move),
    })
}

fn loads(sample: &Sample) -> Value {
    json!({ "loadAvg1M": sample.loads.one_minute, "loadAvg5M": sample.loads.five_minutes })
}

/// A session that there is has been asked for its id: only then is it registered.
fn server(session: SessionState, version: Option<InformantVersion>) -> Option<Value> {
    let mode = match session {
        SessionState::Absent => return None,
        SessionState::Registered => "unconfirmed",
        SessionState::Active => "running",
        SessionState::Suspended => "suspended",
    };
    Some(json!({
        "desc": null,
        "seqNum": null,
        "receivedIDCheck": true,
        "madeContact": true,
        "protoVersion": version.map(InformantVersion::number),
        "mode": mode,
        "exitStatus": null,
    }))
}

fn vm_info(info: &VmInfo, uses: Option<Resources>) -> Value {
    let (min, max, uses) = (info.bounds.min, info.bounds.max, uses.unwrap_or_default());
    let slots = |mem: Bytes| mem.round_up(info.memory_slot).whole(info.memory_slot);
    json!({
        "name": info.name.name,
        "namespace": info.name.namespace,
        "cpu": { "min": cpu(min.cpu), "max": cpu(max.cpu), "use": cpu(uses.cpu) },
        "mem": {
            "min": slots(min.mem),
            "max": slots(max.mem),
            "use": slots(uses.mem),
            "slotSize": format!("{}Mi", info.memory_slot.mib()),
        },
        "scalingConfig": { "loadAverageFractionTarget": info.target.load_average },
        "alwaysMigrate": false,
        "scalingEnabled": true,
    })
}

fn resources(of: Resources, slot: Bytes) -> Value {
    json!({ "vCPUs": cpu(of.cpu), "mem": of.mem.whole(slot) })
}

fn names(vm: &VmName) -> Value {
    json!({ "namespace": vm.namespace, "name": vm.name })
}

/// As the reference writes it: a number if it is whole, else a text.
fn cpu(cpu: MilliCpu) -> Value {
    let milli = cpu.milli();
    if milli.is_multiple_of(1000) { (milli / 1000).into() } else { format!("{milli}m").into() }
}

fn rfc3339(moment: Moment) -> Option<String> {
    let millis = i64::try_from(moment.millis()).ok()?;
    jiff::Timestamp::from_millisecond(millis).ok().map(|time| time.to_string())
}
