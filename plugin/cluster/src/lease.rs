//! Holds the Lease by which one plugin leads and the others stand by.
//!
//! It decides nothing: [`windlass_plugin_core::lease`] does. Here are the requests, each with a deadline, and what follows from
//! them for the process: an epoch begins with a rebuild of the books, and a process whose lease was lost ends. A process
//! that is told to end stops answering, lets its requests to the API server end, and releases the lease then.

use crate::books::ClusterBooks;
use crate::metrics::Leases;
use k8s_openapi::api::coordination::v1::{Lease as Object, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use kube::api::PostParams;
use kube::{Api, Client};
use std::time::Duration;
use thiserror::Error;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use windlass_kit::clock::since_boot;
use windlass_kit::watchdog::Pulse;
use windlass_kit_kubernetes::connect::within;
use windlass_plugin_core::lease::{Act, Event, Lease, Record, Write};
use windlass_protocol::timing::API_SERVER_ANSWERS;
use windlass_protocol::timing::{LEADER_LEASE, LONGEST_ACT};

/// Requests of two plugins do not march in step.
const SPREAD: Duration = Duration::from_millis(100);

/// Between two looks at whether the requests of a leader that ends have ended.
const LOOKS: Duration = Duration::from_millis(10);

/// The lease was lost: the plugin ends, and starts anew.
#[derive(Debug, Error)]
pub enum LostLease {
    /// Another process holds it.
    #[error(
        "another plugin leads: {0} holds the lease in epoch {1}, so the plugin ends, to start anew as a standby"
    )]
    Another(String, u32),
    /// It was released, made anew or deleted by somebody else.
    #[error(
        "the lease was deleted or changed by something that is no plugin, so the plugin ends, to start anew as a standby"
    )]
    Gone,
}

/// The Lease, and who asks for it.
pub struct Election {
    leases: Api<Object>,
    name: String,
    lease: Lease,
    /// The object that was read or written last: what others wrote into it is kept.
    last: Option<Object>,
    /// Whether a failure was logged that is not over.
    has_failed: bool,
}

// === impl Election ===

impl Election {
    /// In the Lease of this namespace and name. `process` names this process to people; what makes it unique is added.
    pub fn new(client: Client, namespace: &str, name: &str, process: &str) -> Self {
        let identity = format!("{process}_{:016x}", fastrand::u64(..));
        info!(lease = name, namespace, identity, "stands by for the lease");
        Self {
            leases: Api::namespaced(client, namespace),
            name: name.to_owned(),
            lease: Lease::new(identity),
            last: None,
            has_failed: false,
        }
    }

    /// Leads whenever it can, until told to stop.
    ///
    /// # Errors
    /// The lease was lost.
    pub async fn run(
        mut self,
        books: ClusterBooks,
        counts: Leases,
        pulse: Pulse,
        stop: CancellationToken,
    ) -> Result<(), LostLease> {
        let leadership = books.leadership();
        let mut leads = false;
        while !stop.is_cancelled() {
            pulse.turn("the lease");
            match self.lease.plan(since_boot()) {
                Act::Wait(until) => {
                    let wait = until.since(since_boot()) + SPREAD.mul_f64(fastrand::f64());
                    tokio::select! {
                        biased;
                        () = stop.cancelled() => {}
                        () = sleep(wait) => {}
                    }
                }
                Act::Lost(record) => {
                    leadership.resign();
                    let held = record.filter(|record| !record.holder.is_empty());
                    return Err(held.map_or(
                        LostLease::Gone,
                        |Record { holder, transitions, .. }| {
                            LostLease::Another(holder, transitions)
                        },
                    ));
                }
                Act::Left => return Ok(()),
                Act::Read => self.perform(None, &counts).await,
                Act::Write(write) => self.perform(Some(write), &counts).await,
            }
            if let Some((epoch, until)) = self.lease.term() {
                if !leads {
                    leads = true;
                    info!(epoch, "leads; the pods are listed anew");
                    books.begin_epoch();
                }
                leadership.lead(epoch, until);
            }
        }
        self.leave(&books, &counts, &pulse).await;
        Ok(())
    }

    /// Stops answering, and releases the lease once nothing that was sent can be on its way without its sender, and no
    /// agent uses what it was answered last.
    async fn leave(&mut self, books: &ClusterBooks, counts: &Leases, pulse: &Pulse) {
        let leadership = books.leadership();
        let began = since_boot();
        leadership.resign();
        while leadership.acts() {
            pulse.turn("requests to the API server that are under way");
            if since_boot().since(began) > API_SERVER_ANSWERS {
                warn!("the lease is not released: requests to the API server are under way");
                return;
            }
            sleep(LOOKS).await;
        }
        self.lease.observe(began, Event::Leaves);
        let began = since_boot();
        while since_boot().since(began) < LONGEST_ACT.saturating_mul(2) {
            pulse.turn("the release of the lease");
            match self.lease.plan(since_boot()) {
                Act::Wait(until) => sleep(until.since(since_boot())).await,
                Act::Left | Act::Lost(_) => return info!("the lease is not held any more"),
                Act::Read => self.perform(None, counts).await,
                Act::Write(write) => self.perform(Some(write), counts).await,
            }
        }
    }

    /// Writes the lease, or reads it, and notes what came of it.
    async fn perform(&mut self, write: Option<Write>, counts: &Leases) {
        let answered = match write {
            Some(write) => {
                self.lease.observe(since_boot(), Event::Sent(write.clone()));
                let object = self.object(&write);
                let params = PostParams::default();
                match write.over {
                    Some(_) => {
                        within(LONGEST_ACT, self.leases.replace(&self.name, &params, &object)).await
                    }
                    None => within(LONGEST_ACT, self.leases.create(&params, &object)).await,
                }
                .map(|object| (Some(object), true))
            }
            None => within(LONGEST_ACT, self.leases.get_opt(&self.name))
                .await
                .map(|object| (object, false)),
        };
        let event = match answered {
            Ok((object, is_write)) => {
                self.last = object;
                match (self.last.as_ref().map(record), is_write) {
                    (Some(record), true) => Event::Written(record),
                    (record, _) => Event::Read(record),
                }
            }
            Err(failed) => {
                counts.failed();
                if !std::mem::replace(&mut self.has_failed, true) {
                    warn!(why = %failed, "a request for the lease failed; it is tried again");
                }
                Event::Failed
            }
        };
        if event != Event::Failed && std::mem::take(&mut self.has_failed) {
            info!("the lease can be read and written again");
        }
        self.lease.observe(since_boot(), event);
    }

    /// What is written: the object that was read, with another spec.
    fn object(&self, write: &Write) -> Object {
        let Write { holder, transitions, over } = write;
        let mut object = match over {
            Some(_) => self.last.clone().unwrap_or_default(),
            None => Object::default(),
        };
        let spec = object.spec.take().unwrap_or_default();
        let (now, is_new) = (Some(MicroTime(Timestamp::now())), spec.holder_identity.as_ref());
        let acquired = if is_new == Some(holder) { spec.acquire_time } else { now.clone() };
        let seconds = i32::try_from(LEADER_LEASE.as_secs()).ok();
        let (revision, uid) =
            over.as_ref().map(|record| (record.revision.clone(), record.uid.clone())).unzip();
        Object {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                resource_version: revision,
                uid,
                ..object.metadata
            },
            spec: Some(LeaseSpec {
                holder_identity: Some(holder.clone()),
                lease_transitions: i32::try_from(*transitions).ok(),
                lease_duration_seconds: seconds,
                acquire_time: acquired,
                renew_time: now,
                ..spec
            }),
        }
    }
}

/// What an object says.
fn record(object: &Object) -> Record {
    let Object { metadata, spec } = object;
    let spec = spec.clone().unwrap_or_default();
    let transitions = spec.lease_transitions.and_then(|many| u32::try_from(many).ok());
    Record {
        holder: spec.holder_identity.unwrap_or_default(),
        transitions: transitions.unwrap_or_default(),
        renewed: spec.renew_time.map(|time| time.0.to_string()).unwrap_or_default(),
        uid: metadata.uid.clone().unwrap_or_default(),
        revision: metadata.resource_version.clone().unwrap_or_default(),
    }
}
