//! What a runner starts with, what it shows while it runs, and why it ends.

use super::account::Booked;
use crate::callback::Calls;
use crate::node::{Shared, Told};
use crate::outage::{Outage, Word};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use windlass_agent_core::{Charge, Event, Failure};
use windlass_protocol::status::VmStatus;
use windlass_protocol::{
    AgentId, Capabilities, Decision, InformantVersion, Moment, Peer, Resources, Sequence, VmName,
};
use windlass_scaling::Sample;

/// What a runner starts with.
pub(crate) struct Start<A> {
    pub(crate) shared: Arc<Shared>,
    pub(crate) vm: VmName,
    pub(crate) told: watch::Receiver<Told<A>>,
    pub(crate) calls: Calls,
    /// The port at which its informant calls back; `None` while none is to be had.
    pub(crate) port: watch::Receiver<Option<u16>>,
    pub(crate) view: Arc<Mutex<View>>,
    pub(crate) stop: CancellationToken,
    pub(crate) booked: Arc<Mutex<Booked>>,
}

/// What people can read of a runner without waiting for it.
#[derive(Clone, Debug, Default)]
pub(crate) struct View {
    /// `None` while the VM is not there, or is not managed.
    pub(crate) status: Option<VmStatus>,
    /// The decision under way.
    pub(crate) open: Option<Decision>,
    /// The last size that is known, also of a VM that is only counted.
    pub(crate) upper: Option<Resources>,
    /// Its hypervisor was looked for, and is not there.
    pub(crate) absent: bool,
    /// What its hypervisor can do, while the VM is managed.
    pub(crate) can: Option<Capabilities>,
    /// Whether its hypervisor is there.
    pub(crate) present: bool,
    /// Whether it is only looked at and counted.
    pub(crate) counted: bool,
    /// What is billed of it.
    pub(crate) charge: Charge,
    /// Whether its informant is silent for longer than it may.
    pub(crate) silent: bool,
    pub(crate) errors: Errors,
    pub(crate) guest: Heard,
}

/// What was last heard of a guest.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Heard {
    /// When its informant last said anything.
    pub(crate) at: Option<Moment>,
    /// What is spoken with it, or was in the last session.
    pub(crate) version: Option<InformantVersion>,
    /// The session with its informant.
    pub(crate) session: Option<Session>,
    /// At which port its informant said that figures are read.
    pub(crate) metrics_port: Option<u16>,
    /// Its figures.
    pub(crate) sample: Option<Sample>,
}

/// A session, from the first request on, also before that is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Session {
    pub(crate) id: AgentId,
    /// The last number that was said in it.
    pub(crate) sequence: Sequence,
    /// Where the informant was told to call back.
    pub(crate) callback: Option<SocketAddr>,
}

/// A hypervisor that is silent for so long is no accident.
const SOON: Duration = Duration::from_secs(5);
/// The figures of a guest are there once it has booted.
const BOOTED: Duration = Duration::from_secs(60);

/// What became of the last request to a peer, if it failed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Errors {
    pub(crate) plugin: Option<String>,
    pub(crate) informant: Option<String>,
    hypervisor: Outage,
    metrics: Outage,
}

/// Why a runner ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The process stops.
    Stopped,
    /// The VM is gone and its file too.
    Removed,
}

// === impl Errors ===

impl Errors {
    /// Takes in an answer, or that there was none.
    pub(super) fn heard(&mut self, now: Moment, event: &Event) {
        let answered = !matches!(event, Event::Failed(_, Failure::NoAnswer));
        let failed = if let Event::Failed(peer, failure) = event {
            Some((*peer, Some(words(failure))))
        } else {
            None
        };
        let heard = failed.or(event.peer().map(|peer| (peer, None)));
        match heard {
            Some((Peer::Plugin, error)) => self.plugin = error,
            Some((Peer::Informant, error)) => self.informant = error,
            Some((Peer::Hypervisor, _)) => {
                say_of_hypervisor(self.hypervisor.heard(now, answered, SOON));
            }
            Some((Peer::Metrics, _)) => {
                say_of_metrics(self.metrics.heard(now, answered, BOOTED));
            }
            None => {}
        }
    }
}

fn say_of_hypervisor(word: Option<Word>) {
    match word {
        Some(Word::Silent(since)) => {
            warn!(for_s = since.as_secs(), "QEMU not answering; it is asked again");
        }
        Some(Word::Back) => info!("QEMU answers again"),
        None => {}
    }
}

fn say_of_metrics(word: Option<Word>) {
    match word {
        Some(Word::Silent(since)) => {
            warn!(for_s = since.as_secs(), "no metrics from the guest; they are asked for again");
        }
        Some(Word::Back) => info!("metrics from the guest again"),
        None => {}
    }
}

fn words(failure: &Failure) -> String {
    match failure {
        Failure::NoAnswer => "no answer, or none that is understood".to_owned(),
        Failure::Refused(status) => format!("refused with status {status}"),
        Failure::Version => "refused by version".to_owned(),
        Failure::Moving => "refused: the VM is about to be moved".to_owned(),
    }
}

// === impl Start ===

impl<A> Clone for Start<A> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
            vm: self.vm.clone(),
            told: self.told.clone(),
            calls: self.calls.clone(),
            port: self.port.clone(),
            view: self.view.clone(),
            stop: self.stop.clone(),
            booked: self.booked.clone(),
        }
    }
}
