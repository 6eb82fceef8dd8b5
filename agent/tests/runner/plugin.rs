//! A plugin that keeps simple books, and can be told to misbehave; and the ledger beside it.

use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use windlass_agent::{Asked, Ledger, NodeEvent, Permits};
use windlass_protocol::plugin::{PermitResponse, RawRequest};
use windlass_protocol::{ComputeUnit, PluginVersion, Resources, VmInfo, VmName};

/// A plugin of a node with room for everybody, and what was told to whoever keeps the books.
#[derive(Clone, Default)]
pub(crate) struct Plugin(Arc<Mutex<PluginState>>);

/// How the plugin treats a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Answers {
    #[default]
    Works,
    Stalls,
    Refuses(u16),
    Lies(&'static str),
    /// Permits no more than this.
    AtMost(Resources),
    /// Takes this version, and no other.
    Takes(PluginVersion),
    /// Is not there.
    Fails,
    /// Breaks whoever asks, in the middle of the runner.
    Panics,
}

#[derive(Default)]
struct PluginState {
    answers: Answers,
    /// What was asked for, and what was told, in order.
    record: Vec<Record>,
    /// The unit that was last named for each VM.
    units: BTreeMap<VmName, Resources>,
    /// The load over one minute that was last said of each VM.
    loads: BTreeMap<VmName, Option<f32>>,
}

/// One thing that the plugin or the ledger heard.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Record {
    Asked(VmName, Resources),
    Told(NodeEvent),
}

// === impl Plugin ===

impl Plugin {
    pub(crate) fn set(&self, answers: Answers) {
        self.0.lock().unwrap().answers = answers;
    }

    pub(crate) fn record(&self) -> Vec<Record> {
        self.0.lock().unwrap().record.clone()
    }

    /// The unit that was last named for this VM.
    pub(crate) fn unit(&self, vm: &VmName) -> Option<Resources> {
        self.0.lock().unwrap().units.get(vm).copied()
    }

    /// The load over one minute that was last said of this VM.
    pub(crate) fn load(&self, vm: &VmName) -> Option<f32> {
        self.0.lock().unwrap().loads.get(vm).copied().flatten()
    }

    /// What was told about this VM.
    pub(crate) fn told(&self, vm: &VmName) -> Vec<NodeEvent> {
        let about = |record| match record {
            Record::Told(event) if subject(&event) == vm => Some(event),
            Record::Told(_) | Record::Asked(..) => None,
        };
        self.record().into_iter().filter_map(about).collect()
    }

    /// What was asked for this VM.
    pub(crate) fn asked(&self, vm: &VmName) -> Vec<Resources> {
        let by = |record| match record {
            Record::Asked(who, wanted) if who == *vm => Some(wanted),
            Record::Asked(..) | Record::Told(_) => None,
        };
        self.record().into_iter().filter_map(by).collect()
    }
}

impl Permits for Plugin {
    fn ask(&self, body: Bytes) -> Asked<'_> {
        let slot = VmInfo::DEFAULT_MEMORY_SLOT;
        let request = RawRequest::decode(&body).unwrap().with_slot(slot).unwrap();
        let (version, vm, wanted) = (request.version, request.vm, request.resources);
        let unit = ComputeUnit::try_from(request.unit.unwrap_or(wanted)).unwrap();
        let answers = {
            let mut state = self.0.lock().unwrap();
            state.units.insert(vm.clone(), unit.into());
            state.loads.insert(vm.clone(), request.metrics.map(|metrics| metrics.load_1m));
            state.record.push(Record::Asked(vm, wanted));
            state.answers
        };
        let permit = move |permit| {
            let response = PermitResponse { permit, migrate: false };
            Ok((200, Bytes::from(response.encode(version, slot, unit).unwrap())))
        };
        Box::pin(async move {
            match answers {
                Answers::Works => permit(wanted),
                Answers::AtMost(most) => permit(wanted.min(most)),
                Answers::Stalls => std::future::pending().await,
                Answers::Refuses(status) => Ok((status, Bytes::from_static(b"no"))),
                Answers::Lies(text) => Ok((200, Bytes::from_static(text.as_bytes()))),
                Answers::Panics => panic!("on purpose"),
                Answers::Takes(known) if known == version => permit(wanted),
                Answers::Takes(_) => {
                    Ok((400, Bytes::from_static(b"Protocol version mismatch: need another")))
                }
                Answers::Fails => Err("not there".to_owned()),
            }
        })
    }

    fn place(&self) -> String {
        "here".to_owned()
    }
}

impl Ledger for Plugin {
    fn note(&self, event: NodeEvent) {
        self.0.lock().unwrap().record.push(Record::Told(event));
    }
}

/// Which VM an event is about.
fn subject(event: &NodeEvent) -> &VmName {
    match event {
        NodeEvent::Entered { info, .. } | NodeEvent::Updated { info } => &info.name,
        NodeEvent::Witnessed { vm, .. }
        | NodeEvent::Counted { vm, .. }
        | NodeEvent::Left { vm } => vm,
    }
}
