//! A program of the guest that keeps a cache: the cotenant of the guest's memory.
//!
//! Such a cache fills all the memory that it may have. The cotenant makes it smaller before the
//! informant agrees to less memory, and lets it grow once there is more. A cotenant implements
//! [`MemoryCotenant`]. The plain informant is built with `()`, which has no cache: nothing of this is
//! left in that program.

use crate::shared::Shared;
use anyhow::Result;
use std::future::Future;
use std::sync::Arc;
use windlass_informant_core::wire::figures::Page;
use windlass_informant_core::{Memory, Refusal};
use windlass_protocol::Moment;
use windlass_protocol::informant::{DownscaleResult, ResourceMessage};

/// The cotenant of the guest's memory.
pub trait MemoryCotenant: Sized + Send + Sync + 'static {
    /// Begins to work beside the informant, which does not wait for it.
    fn start(shared: &Arc<Shared<Self>>) -> Result<()>;

    /// What of memory the informant is to decide on.
    fn sampled(&self, now: Moment, memory: Memory) -> Memory;

    /// What of memory agents and people are to see.
    fn shown(&self, now: Moment, memory: Memory) -> Memory;

    /// Whether the guest can live with this; vCPUs are parked by then ([`Shared::follow`]). An
    /// agent waits 2 s for all of it; it may hang up, and this is dropped then.
    ///
    /// # Errors
    /// The agent is not the one that counts.
    fn downscale(
        shared: &Shared<Self>,
        message: &ResourceMessage,
    ) -> impl Future<Output = Result<DownscaleResult, Refusal>> + Send;

    /// The guest has this, and may use it.
    ///
    /// # Errors
    /// The agent is not the one that counts.
    fn upscale(shared: &Shared<Self>, message: &ResourceMessage) -> Result<(), Refusal>;

    /// Its lines of `/metrics`.
    fn metrics(&self, now: Moment, page: &mut Page);
}

impl MemoryCotenant for () {
    fn start(_: &Arc<Shared>) -> Result<()> {
        Ok(())
    }

    fn sampled(&self, _: Moment, memory: Memory) -> Memory {
        memory
    }

    fn shown(&self, _: Moment, memory: Memory) -> Memory {
        memory
    }

    async fn downscale(
        shared: &Shared,
        message: &ResourceMessage,
    ) -> Result<DownscaleResult, Refusal> {
        // Memory may have been added since the last sample: what the VM has is read now.
        shared.sample();
        let result = shared.core().downscale(shared.clock.now(), message)?;
        shared.follow().await;
        Ok(result)
    }

    fn upscale(shared: &Shared, message: &ResourceMessage) -> Result<(), Refusal> {
        shared.core().upscale(shared.clock.now(), message)
    }

    fn metrics(&self, _: Moment, _: &mut Page) {}
}
