//! What the parts of the program share: the core, the clock, the counts.
//!
//! The core is behind a mutex that is never held across a wait. A task that tells the core something
//! wakes the runner, which carries out the plan. A task that waits for the core's state to change is
//! woken when the runner has told the core something.

use crate::clock::Clock;
use crate::memory_cotenant::MemoryCotenant;
use crate::metrics::Counts;
use crate::sampler::Sampler;
use crate::tree::Tree;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use windlass_informant_core::{Event, Informant, Load};
use windlass_protocol::Moment;
use windlass_protocol::timing::FOLLOWS_WITHIN;

/// One informant at work, with what else has a say in the guest: nothing, if not said.
#[derive(Debug)]
pub struct Shared<B = ()> {
    core: Mutex<Informant>,
    load: Mutex<Load>,
    sampler: Mutex<Sampler>,
    /// The plan may have changed.
    pub(crate) woken: Notify,
    /// The core may have got somewhere.
    moved: Notify,
    /// What was counted.
    pub counts: Counts,
    /// The kernel's files.
    pub tree: Tree,
    /// The time.
    pub clock: Clock,
    /// What else has a say.
    pub cotenant: B,
}

impl<B: MemoryCotenant> Shared<B> {
    /// An informant on this tree.
    pub fn new(core: Informant, tree: Tree, cotenant: B) -> Self {
        Self {
            core: Mutex::new(core),
            load: Mutex::default(),
            sampler: Mutex::default(),
            woken: Notify::new(),
            moved: Notify::new(),
            counts: Counts::default(),
            tree,
            clock: Clock::start(),
            cotenant,
        }
    }

    /// The core, for as short as possible.
    pub fn core(&self) -> MutexGuard<'_, Informant> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Load over short windows.
    pub fn load(&self) -> MutexGuard<'_, Load> {
        self.load.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads load and memory, and tells the core.
    pub fn sample(&self) {
        let memory = self.sampler.lock().unwrap_or_else(PoisonError::into_inner).sample(self);
        if let Some(memory) = memory {
            self.counts.samples.add();
            let memory = self.cotenant.sampled(self.clock.now(), memory);
            self.observe(Event::Sampled(memory));
        }
    }

    /// Tells the core what happened.
    pub fn observe(&self, event: Event) {
        let now = self.clock.now();
        self.core().observe(now, event);
        self.woken.notify_one();
        self.moved.notify_waiters();
    }

    /// Waits until `there` finds in the core what it looks for, or until `limit` has passed.
    pub async fn until<T>(
        &self,
        limit: Duration,
        mut there: impl FnMut(&Informant, Moment) -> Option<T>,
    ) -> Option<T> {
        self.woken.notify_one();
        let wait = async {
            loop {
                let moved = self.moved.notified();
                let found = there(&self.core(), self.clock.now());
                if let Some(found) = found {
                    return found;
                }
                moved.await;
            }
        };
        tokio::time::timeout(limit, wait).await.ok()
    }

    /// Waits until the guest has followed, or cannot.
    pub async fn follow(&self) {
        self.until(FOLLOWS_WITHIN, |core, now| core.settled(now).then_some(())).await;
    }
}
