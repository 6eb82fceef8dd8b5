//! The quotas of guests' cgroups, compared with the books, often: what a VM may use is the smaller of its
//! quota and its plugged vCPUs, and the books of the host that runs cover it in every look.
//!
//! Both are read without the guest, so a look takes milliseconds, however busy that is.

use crate::books::{Books, Keeper};
use crate::laws;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use windlass_lab::Guest;
use windlass_protocol::MilliCpu;

/// Between two looks.
const EVERY: Duration = Duration::from_millis(50);

/// More breaches than this are not kept.
const MOST: usize = 20;

/// Looks all the time.
pub(crate) struct Quotas {
    seen: Arc<Mutex<Covered>>,
    _tasks: JoinSet<()>,
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Covered {
    /// Looks in which one and the same host answered before and after.
    pub looks: u64,
    /// Quotas that the books did not cover.
    pub breaches: Vec<String>,
}

// === impl Quotas ===

impl Quotas {
    pub(crate) fn start(keeper: impl Keeper, guests: Vec<Arc<Guest>>) -> Self {
        let seen = Arc::new(Mutex::new(Covered::default()));
        let mut tasks = JoinSet::new();
        tasks.spawn(watch(keeper, guests, Arc::clone(&seen)));
        Self { seen, _tasks: tasks }
    }

    pub(crate) fn seen(&self) -> Covered {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn watch(keeper: impl Keeper, guests: Vec<Arc<Guest>>, seen: Arc<Mutex<Covered>>) {
    let start = Instant::now();
    let mut known: (u64, BTreeSet<String>) = Default::default();
    let mut before = keeper.look().await;
    loop {
        tokio::time::sleep(EVERY).await;
        let mut had = Vec::new();
        for guest in &guests {
            had.push((guest.name(), may_use(guest, before.as_ref()).await));
        }
        let after = keeper.look().await;
        if let (Some((life, earlier)), Some((same, later))) = (&before, &after)
            && life == same
        {
            if known.0 != *life {
                known = (*life, BTreeSet::new());
            }
            let at = start.elapsed().as_secs_f64();
            let breaches = had.iter().filter_map(|(name, cpu)| {
                let cpu = (*cpu)?;
                let booked = booked(earlier, name).max(booked(later, name));
                let counts = booked.is_some() || known.1.contains(*name);
                let beyond = counts && cpu > booked.unwrap_or_default();
                beyond.then(|| format!("{at:.2} s: {name} may use {cpu}, the books say {booked:?}"))
            });
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.looks += 1;
            let free = MOST.saturating_sub(seen.breaches.len());
            seen.breaches.extend(breaches.take(free));
            known.1.extend(later.vms.keys().cloned());
        }
        before = after;
    }
}

/// The smaller of quota and plugged vCPUs; `None` if that is not known, or QEMU is gone. QEMU is asked only
/// where the quota alone says too much.
async fn may_use(guest: &Guest, books: Option<&(u64, Books)>) -> Option<MilliCpu> {
    let quota = laws::quota(guest);
    let booked = books.and_then(|(_, books)| booked(books, guest.name())).unwrap_or_default();
    match quota {
        Some(quota) if quota <= booked => Some(quota),
        quota => {
            let plugged = MilliCpu::from_cores(guest.outside().await.ok()?.vcpus.into());
            Some(quota.map_or(plugged, |quota| plugged.min(quota)))
        }
    }
}

fn booked(books: &Books, name: &str) -> Option<MilliCpu> {
    books.vms.get(name).map(|reserved| reserved.cpu)
}
