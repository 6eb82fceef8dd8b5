//! The state of an agent as JSON, for a person who looks for a fault.
//!
//! It is read from what runners publish, so a VM that hangs does not keep it waiting.

use crate::view::{GuestSnapshot, View};
use serde_json::{Value, json};
use std::net::IpAddr;
use windlass_agent_core::{Lifecycle, Vm};
use windlass_protocol::informant::{AgentDesc, InformantDesc};
use windlass_protocol::status::{SessionState, VmStatus};
use windlass_protocol::{
    Bytes, InformantVersion, MilliCpu, Moment, Resources, Sequence, UnitChoice, VmInfo, VmName,
    Waiting,
};

/// All VMs.
pub(crate) fn agent(frozen: bool, vms: &[Pod]) -> Value {
    json!({ "frozen": frozen, "vms": vms.iter().map(Pod::own).collect::<Vec<_>>() })
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
    pub(crate) lifecycle: Lifecycle,
    pub(crate) port: Option<u16>,
    pub(crate) vm: Option<Vm>,
    pub(crate) place: String,
    pub(crate) view: View,
}

// === impl Pod ===

impl Pod {
    /// The VM, with what is declared of it and the place at which its hypervisor is.
    pub(crate) fn own(&self) -> Value {
        let Self { vm, view, .. } = self;
        json!({
            "name": self.name,
            "standing": self.lifecycle,
            "callback_port": self.port,
            "monitor": vm.as_ref().map(|_| &self.place),
            "informant": vm.as_ref().map(|vm| vm.guest.informant),
            "told": vm.as_ref().map(|vm| vm.info.as_ref()),
            "upper": view.upper,
            "status": view.status,
            "open": view.open,
        })
    }

    /// As the reference's agent dumps a pod. What Windlass does not keep is `null`; `windlass` has
    /// what the reference has no place for.
    pub(crate) fn reference(&self, unit: UnitChoice, plugin: IpAddr) -> Value {
        let info = self.vm.as_ref().map(|vm| vm_info(&vm.info, self.view.upper));
        let runner = self.vm.as_ref().zip(self.view.status.as_ref());
        json!({
            "podName": { "namespace": self.name.namespace, "name": self.name.name },
            "status": {
                "startTime": rfc3339(self.since),
                "endState": null,
                "previousEndStates": [],
                "lastSuccessfulInformantComm": self.view.guest.at.and_then(rfc3339),
                "vmInfo": info,
                "endpointID": self.name.name,
            },
            "runner": runner.map(|(vm, status)| runner_of(vm, status, &self.view, unit, plugin)),
            "windlass": self.own(),
        })
    }
}

fn runner_of(
    declared: &Vm,
    status: &VmStatus,
    view: &View,
    unit: UnitChoice,
    plugin: IpAddr,
) -> Value {
    let slot = declared.info.memory_slot;
    json!({
        "podIP": declared.guest.informant.ip().to_string(),
        "vm": vm_info(&declared.info, status.upper),
        "lastMetrics": view.guest.sample.map(|sample| json!({
            "loadAvg1M": sample.loads.one_minute,
            "loadAvg5M": sample.loads.five_minutes,
        })),
        "scheduler": {
            "info": { "PodName": null, "UID": null, "IP": plugin },
            "registered": status.permit.is_some(),
            "fatalError": null,
        },
        "server": server(status.session, &view.guest),
        "informant": informant(&view.guest),
        "computeUnit": resources(unit.of(&declared.info, None).into(), slot),
        "lastApproved": status.permit.map(|permit| resources(permit, slot)),
        "lastSchedulerError": view.errors.plugin,
        "lastInformantError": view.errors.informant,
        "backgroundWorkerCount": null,
        "migrationStarted": status.waiting.contains(&Waiting::Move),
    })
}

/// A session of which `/register` was answered: its informant had asked it for its id before.
fn server(state: SessionState, guest: &GuestSnapshot) -> Option<Value> {
    let session = guest.session?;
    let numbered = session.sequence > Sequence::ZERO;
    let (mode, registered) = match state {
        SessionState::Absent => ("unconfirmed", false),
        SessionState::Registered | SessionState::Suspended => ("suspended", true),
        SessionState::Active => ("running", true),
    };
    let serve_addr = session.callback.map(|at| at.to_string()).unwrap_or_default();
    let (agent_id, versions) = (session.id, InformantVersion::SPOKEN);
    Some(json!({
        "desc": value(&AgentDesc { agent_id, serve_addr, versions }.encode()),
        "seqNum": session.sequence.number(),
        "receivedIDCheck": registered || numbered,
        "madeContact": registered,
        "protoVersion": guest.version.filter(|_| registered).map(InformantVersion::number),
        "mode": mode,
        "exitStatus": null,
    }))
}

/// What the informant said of itself when it was last registered with.
fn informant(guest: &GuestSnapshot) -> Option<Value> {
    let (version, metrics_port) = (guest.version?, guest.metrics_port);
    metrics_port.and_then(|_| value(&InformantDesc { version, metrics_port }.encode()))
}

/// A body of the wire as a value.
fn value(body: &[u8]) -> Option<Value> {
    serde_json::from_slice(body).ok()
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

/// As the reference writes it: a number if it is whole, else a text.
fn cpu(cpu: MilliCpu) -> Value {
    let milli = cpu.milli();
    if milli.is_multiple_of(1000) { (milli / 1000).into() } else { format!("{milli}m").into() }
}

fn rfc3339(moment: Moment) -> Option<String> {
    let millis = i64::try_from(moment.millis()).ok()?;
    jiff::Timestamp::from_millisecond(millis).ok().map(|time| time.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::Session;
    use windlass_protocol::AgentId;

    const ID: AgentId = AgentId::from_u128(7);

    #[test]
    fn vcpus_are_a_number_where_they_are_whole() {
        for (milli, shown) in [(2000, json!(2)), (1500, json!("1500m")), (0, json!(0))] {
            assert_eq!(cpu(MilliCpu::from_milli(milli)), shown);
        }
    }

    #[test]
    fn a_session_is_shown_as_the_reference_shows_its_server() {
        let session = |number| Session {
            id: ID,
            sequence: Sequence::from_number(number),
            callback: Some(([10, 0, 0, 1], 10310).into()),
        };
        let guest = GuestSnapshot {
            version: Some(InformantVersion::V1_2),
            metrics_port: Some(9100),
            session: Some(session(12)),
            ..GuestSnapshot::default()
        };
        assert_eq!(
            server(SessionState::Active, &guest),
            Some(json!({
                "desc": {
                    "agentID": "00000000-0000-0000-0000-000000000007",
                    "agentServeAddr": "10.0.0.1:10310",
                    "minProtoVersion": 1,
                    "maxProtoVersion": 4,
                },
                "seqNum": 12,
                "receivedIDCheck": true,
                "madeContact": true,
                "protoVersion": 3,
                "mode": "running",
                "exitStatus": null,
            }))
        );
        let metrics = json!({ "prometheus": { "port": 9100 } });
        let told = json!({ "protoVersion": 3, "metricsMethod": metrics });
        assert_eq!(informant(&guest), Some(told));
        for state in [SessionState::Registered, SessionState::Suspended] {
            assert_eq!(server(state, &guest).unwrap()["mode"], "suspended");
        }
        // While `/register` is under way.
        for (number, called) in [(0, false), (1, true)] {
            let guest = GuestSnapshot { session: Some(session(number)), ..guest };
            let shown = server(SessionState::Absent, &guest).unwrap();
            assert_eq!(
                (&shown["mode"], &shown["madeContact"]),
                (&json!("unconfirmed"), &json!(false))
            );
            assert_eq!(
                (&shown["receivedIDCheck"], &shown["protoVersion"]),
                (&json!(called), &json!(null))
            );
        }
        assert_eq!(server(SessionState::Absent, &GuestSnapshot::default()), None);
        assert_eq!(informant(&GuestSnapshot::default()), None);
    }
}
