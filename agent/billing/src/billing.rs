//! Billing of one node, from the first look to the last request.

use crate::config::Config;
use crate::journal::OpenError;
use crate::metrics::Metrics;
use crate::sender::Sender;
use crate::usage_log::{SharedLog, UsageLog};
use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use tracing::debug;
use windlass_agent_billing_core::{Allocation, Source};
use windlass_kit::clock::Clock;
use windlass_kit::tasks::Tasks;
use windlass_protocol::Moment;

/// The source of what VMs have.
pub trait Sizes: Send + Sync + 'static {
    /// Every VM that is billed, with what it has now. A VM whose size is not known is left out: it
    /// is not billed for the time around this look. `None` if nothing is known of any: then this
    /// look has not taken place. Right after a start, while VMs are still being found, `None` is
    /// right too: then the time since the last look of the process before is billed. Must not wait.
    fn look(&self) -> Option<Vec<Allocation>>;
}

impl<F: Fn() -> Option<Vec<Allocation>> + Send + Sync + 'static> Sizes for F {
    fn look(&self) -> Option<Vec<Allocation>> {
        self()
    }
}

/// Billing of one node. Clones are one.
#[derive(Clone, Debug)]
pub struct Billing {
    config: Arc<Config>,
    log: SharedLog,
    metrics: Metrics,
}

// === impl Billing ===

impl Billing {
    /// Takes the usage log of a folder, or begins a new one. Waits for the disk.
    ///
    /// `source` is the node's name; a usage log keeps the one that it was begun with.
    ///
    /// # Errors
    /// Another process has the usage log, a later release wrote it, or the disk refuses.
    pub fn open(
        config: Config,
        folder: &Path,
        source: Source,
        now: Moment,
        metrics: Metrics,
    ) -> Result<Self, OpenError> {
        let log = UsageLog::open(folder, source, now, &config, metrics.clone())?;
        Ok(Self { config: Arc::new(config), log: SharedLog::new(log), metrics })
    }

    /// Looks and sends until the tasks are asked to end. Then what is whole becomes events, and there
    /// is one more attempt to send, of at most 5 s; what is left is sent after the next start.
    pub fn start(self, sizes: Arc<dyn Sizes>, clock: Clock, tasks: &Tasks) {
        let (stop, closed) = (tasks.stopping(), CancellationToken::new());
        self.send(tasks, closed.clone());
        tasks.kept("billing: look", move || {
            let (billing, sizes) = (self.clone(), sizes.clone());
            let (stop, closed) = (stop.clone(), closed.clone());
            async move {
                let looks = billing.look_again_and_again(sizes.as_ref(), clock);
                stop.run_until_cancelled(looks).await;
                billing.close(clock.now()).await;
                closed.cancel();
                Ok::<(), Infallible>(())
            }
        });
    }

    /// Sends what waits until `closed`, and once more then: for a program that calls [`Billing::look`].
    pub fn send(&self, tasks: &Tasks, closed: CancellationToken) {
        let billing = self.clone();
        tasks.kept("billing: send", move || {
            let sender =
                Sender::new(billing.log.clone(), billing.config.clone(), billing.metrics.clone());
            let closed = closed.clone();
            async move {
                sender.run(&closed).await;
                Ok::<(), Infallible>(())
            }
        });
    }

    /// This is what VMs have at `at`. It is on disk when this returns, if the disk takes it.
    pub async fn look(&self, at: Moment, vms: Vec<Allocation>) {
        self.log.with(move |log| log.look(at, vms)).await;
    }

    /// Ends every window, also those that are not long enough.
    pub async fn close(&self, at: Moment) {
        self.log.with(move |log| log.close(at)).await;
    }

    /// Events that wait for the receiver.
    pub async fn waiting(&self) -> usize {
        self.log.with(|log| log.waiting()).await
    }

    async fn look_again_and_again(&self, sizes: &dyn Sizes, clock: Clock) {
        loop {
            let at = clock.now();
            let vms = sizes.look();
            debug!(has_sizes = vms.is_some(), "looked at sizes");
            if let Some(vms) = vms {
                self.look(at, vms).await;
            }
            clock.sleep_until(at.after(self.config.collect_every)).await;
        }
    }
}
