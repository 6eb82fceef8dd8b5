//! What else has a say in the guest: nobody, but where the program is built with somebody.
//!
//! A cache that a program of the guest keeps fills whatever memory it may have. Before less
//! memory is agreed to it must have become smaller; once there is more it may grow. Who does
//! that implements [`MemoryCotenant`]; for `()`, which the plain informant is built with, nobody does,
//! and nothing of this is left in the program.

use crate::shared::Shared;
use anyhow::Result;
use std::future::Future;
use std::sync::Arc;
use windlass_informant_core::wire::figures::Page;
use windlass_informant_core::{Memory, Refusal};
use windlass_protocol::Moment;
use windlass_protocol::informant::{DownscaleResult, ResourceMessage};

/// What else has a say.
pub trait MemoryCotenant: Sized + Send + Sync + 'static {
    /// Begins to work beside the informant, which does not wait for it.
    ///
    /// # Errors
    /// It cannot begin.
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
