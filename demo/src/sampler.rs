//! Looks at guests and host while the script is played, and writes down what it sees.
//!
//! Hypervisor, guest and host are asked each by a task of its own, so that a guest that is
//! slow to answer hides nothing else. An answer that does not come is no reading.

use super::recording::{Books, Inside, Ours, Reading, Recording};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::sleep;
use windlass_cli::client::Client;
use windlass_kit::clock::Clock;
use windlass_lab::{Guest, Outside};
use windlass_protocol::status::{HostStatus, VmStatus};
use windlass_protocol::{Bytes, MemorySeen, MilliCpu, RunState, Seen};

/// Between two looks at a hypervisor, or at the host.
const OFTEN: Duration = Duration::from_millis(250);

/// Between two looks inside a guest, which cost it something.
const SELDOM: Duration = Duration::from_millis(600);

/// A recording that grows.
#[derive(Clone)]
pub(crate) struct Shared(Arc<Mutex<Recording>>);

// === impl Shared ===

impl Shared {
    /// Around what there is so far.
    pub(crate) fn new(recording: Recording) -> Self {
        Self(Arc::new(Mutex::new(recording)))
    }

    /// What there is; not to be held while waiting.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Recording> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts to look; the tasks end when the set is dropped.
pub(crate) fn start(
    shared: &Shared,
    guests: &[Arc<Guest>],
    client: &Client,
    clock: Clock,
) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    for (index, guest) in guests.iter().enumerate() {
        let (outer, inner) = (Arc::clone(guest), Arc::clone(guest));
        let (by_monitor, by_program) = (shared.clone(), shared.clone());
        tasks.spawn(async move {
            again(OFTEN, async || {
                if let Some(reading) = read(clock, async || outer.outside().await.ok()).await {
                    by_monitor.lock().vms[index].outside.push(reading.map(seen));
                }
            })
            .await;
        });
        tasks.spawn(async move {
            again(SELDOM, async || {
                let figures =
                    async || inner.inside().await.ok().and_then(|figures| inside(&figures));
                if let Some(reading) = read(clock, figures).await {
                    by_program.lock().vms[index].inside.push(reading);
                }
            })
            .await;
        });
    }
    let (shared, client) = (shared.clone(), client.clone());
    tasks.spawn(async move {
        again(OFTEN, async || {
            let state = async || client.get::<HostStatus>("/v1/state").await.ok();
            if let Some(reading) = read(clock, state).await {
                write_down(&mut shared.lock(), &reading);
            }
        })
        .await;
    });
    tasks
}

async fn again<F: Future<Output = ()>>(every: Duration, mut look: impl FnMut() -> F) {
    loop {
        look().await;
        sleep(every).await;
    }
}

async fn read<T, F>(clock: Clock, look: impl FnOnce() -> F) -> Option<Reading<T>>
where
    F: Future<Output = Option<T>>,
{
    let from = clock.now();
    let value = look().await?;
    Some(Reading { from, to: clock.now(), value })
}

fn seen(outside: Outside) -> Seen {
    let device = outside.virtio_mem.map_or((0, 0), |device| (device.requested, device.size));
    let bytes = |count: u64| Bytes::from_bytes(count.saturating_add(outside.dimms));
    Seen {
        plugged: MilliCpu::from_cores(u64::from(outside.vcpus)),
        limit: None,
        found_limit: None,
        memory: MemorySeen {
            boot: Bytes::from_bytes(outside.boot),
            requested: bytes(device.0),
            size: bytes(device.1),
        },
        state: RunState::Running,
    }
}

/// `None` unless all figures are there: half a picture is none.
fn inside(figures: &windlass_lab::Inside) -> Option<Inside> {
    Some(Inside {
        online: MilliCpu::from_cores(u64::from(figures.cpus_online?)),
        total: Bytes::from_bytes(figures.mem_total?),
        available: Bytes::from_bytes(figures.mem_available?),
        held: Bytes::from_bytes(figures.held),
        workers: u64::from(figures.workers),
        oom_kills: figures.oom_kills?.max(figures.holders_killed),
    })
}

fn write_down(recording: &mut Recording, reading: &Reading<HostStatus>) {
    let state = &reading.value;
    if let Some(node) = &state.node {
        let books = Books { room: node.room, reserved: node.reserved };
        recording.books.push(reading.with(books));
    }
    for vm in &mut recording.vms {
        let Some(status) = state.vms.iter().find(|status| status.name == vm.name) else { continue };
        vm.ours.push(reading.with(ours(status, state)));
    }
}

fn ours(status: &VmStatus, state: &HostStatus) -> Ours {
    let booked =
        state.node.as_ref().and_then(|node| node.vms.iter().find(|vm| vm.name == status.name));
    Ours {
        load: status.signals.load,
        goal: status.goal,
        permit: status.permit,
        reserved: booked.map(|booked| booked.reserved),
        consent: status.consent,
        waiting: status.waiting.clone(),
    }
}

// === impl Reading ===

impl<T> Reading<T> {
    fn map<U>(self, of: impl FnOnce(T) -> U) -> Reading<U> {
        Reading { from: self.from, to: self.to, value: of(self.value) }
    }

    fn with<U>(&self, value: U) -> Reading<U> {
        Reading { from: self.from, to: self.to, value }
    }
}
