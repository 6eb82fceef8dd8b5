//! How far the books are rebuilt, for all parts of the process.
//!
//! It decides nothing: [`windlass_plugin_core::rebuild`] does. Every answer looks here, so what it says is published, and a
//! look takes no lock.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use windlass_plugin_core::rebuild::{Inherited, Rebuild as Core};
use windlass_protocol::Moment;
use windlass_protocol::pod::Pod;

pub use windlass_plugin_core::rebuild::NotYet;

/// What is published.
const SERVES: u8 = 0;
const TAKING_OVER: u8 = 1;
const NOT_REBUILT: u8 = 2;

/// What was listed, and what is left to do.
#[derive(Debug)]
pub(crate) struct Rebuild {
    core: Mutex<Core>,
    published: AtomicU8,
    /// How many epochs have begun.
    begun: watch::Sender<u64>,
}

// === impl Rebuild ===

impl Rebuild {
    /// Of nothing yet. `objects`: those of VMs are followed, too.
    pub(crate) fn following(objects: bool) -> Self {
        let mut core = Core::default();
        if objects {
            core.follow_objects();
        }
        let begun = watch::Sender::new(core.begun());
        Self { core: Mutex::new(core), published: AtomicU8::new(NOT_REBUILT), begun }
    }

    /// Another epoch begins: what was listed before does not count.
    pub(crate) fn begin(&self) {
        let begun = self.change(|core| {
            core.begin();
            core.begun()
        });
        self.begun.send_replace(begun);
    }

    /// Tells when everything is to be listed anew, and for which epoch.
    pub(crate) fn lists(&self) -> watch::Receiver<u64> {
        self.begun.subscribe()
    }

    /// How many epochs have begun.
    pub(crate) fn begun(&self) -> u64 {
        *self.begun.borrow()
    }

    /// The nodes were listed; the list began in this epoch.
    pub(crate) fn nodes_listed(&self, epoch: u64) {
        self.change(|core| core.nodes_listed(epoch));
    }

    /// The objects of VMs were listed; the list began in this epoch.
    pub(crate) fn objects_listed(&self, epoch: u64) {
        self.change(|core| core.objects_listed(epoch));
    }

    /// Whether no list of this epoch, or a later one, was noted yet.
    pub(crate) fn is_first(&self, epoch: u64) -> bool {
        self.core().is_first(epoch)
    }

    /// These are the pods; the list began in this epoch. What it says was noted before.
    pub(crate) fn pods_listed(&self, now: Moment, epoch: u64, inherited: BTreeSet<Inherited>) {
        self.change(|core| core.pods_listed(now, epoch, inherited));
    }

    /// The pods that a list shows unbound, and that an earlier leader may have sent a binding for.
    pub(crate) fn unbound(pods: &[Pod]) -> BTreeSet<Inherited> {
        Core::unbound(pods)
    }

    /// The pods that may still be bound by an earlier leader; none before the list of this epoch.
    pub(crate) fn left(&self) -> Vec<Inherited> {
        self.core().left()
    }

    /// Takes those whose earlier bindings are too old to take effect.
    pub(crate) fn take_too_old(&self, now: Moment) -> Vec<Inherited> {
        self.change(|core| core.take_too_old(now))
    }

    /// No earlier binding can take effect on this pod any more.
    pub(crate) fn inherit(&self, pod: &Inherited) {
        self.change(|core| core.inherit(pod));
    }

    /// Whether all nodes, and since the epoch began all pods, were listed.
    pub(crate) fn is_rebuilt(&self) -> bool {
        self.published.load(Ordering::Acquire) != NOT_REBUILT
    }

    /// Whether a process that leads may answer.
    ///
    /// # Errors
    /// Why it may not.
    pub(crate) fn serves(&self) -> Result<(), NotYet> {
        match self.published.load(Ordering::Acquire) {
            SERVES => Ok(()),
            TAKING_OVER => Err(NotYet::TakingOver),
            _ => Err(NotYet::NotRebuilt),
        }
    }

    /// Changes what is known, and publishes what follows while no other change comes in between.
    fn change<T>(&self, change: impl FnOnce(&mut Core) -> T) -> T {
        let mut core = self.core();
        let changed = change(&mut core);
        let published = match core.serves() {
            Ok(()) => SERVES,
            Err(NotYet::TakingOver) => TAKING_OVER,
            Err(NotYet::NotLeading | NotYet::NotRebuilt) => NOT_REBUILT,
        };
        self.published.store(published, Ordering::Release);
        changed
    }

    fn core(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
