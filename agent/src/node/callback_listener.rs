//! The listener at which a VM's informant calls back.
//!
//! It listens once the VM is declared, and tries again until it can. A VM without one has no session, so
//! no memory is taken from it; it still grows.

use crate::callback::{self, Calls, Server};
use crate::desired_state::DesiredState;
use crate::ports::NoPort;
use crate::shared::{Shared, lock};
use std::io;
use std::net;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use windlass_agent_core::Lifecycle;
use windlass_kit::backoff::Backoff;
use windlass_kit::server::serve;
use windlass_protocol::VmName;

/// The call-back server of one VM.
#[derive(Clone)]
pub(super) struct CallbackListener {
    pub(super) shared: Arc<Shared>,
    pub(super) vm: VmName,
    pub(super) calls: Calls,
    /// Where it listens, while it does.
    pub(super) port: watch::Sender<Option<u16>>,
    pub(super) stop: CancellationToken,
}

// === impl CallbackListener ===

impl CallbackListener {
    /// Listens, if that can be done.
    pub(super) fn listen(&self) -> Result<net::TcpListener, NoPort> {
        lock(&self.shared.ports).listen(self.shared.config.callback_listen, &self.vm)
    }

    /// Serves once the VM is declared, by `listener` or one of its own, until it is to stop.
    pub(super) async fn serve(
        self,
        told: watch::Receiver<DesiredState>,
        listener: Option<net::TcpListener>,
    ) -> Result<(), io::Error> {
        let opened = match listener {
            Some(listener) => Some(listener),
            None => self.stop.run_until_cancelled(self.listen_when_managed(told)).await.flatten(),
        };
        let Some(listener) = opened else { return Ok(()) };
        let port = listener.local_addr()?.port();
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        self.port.send_replace(Some(port));
        let metrics = &self.shared.metrics;
        let server = Server { calls: self.calls.clone(), metrics: metrics.clone() };
        let served = serve(listener, server, callback::limits(metrics), self.stop.clone()).await;
        // One that is to stop has still to name where it was heard when it takes leave.
        if served.is_err() {
            self.port.send_replace(None);
        }
        served
    }

    /// Tries until it can; `None` if the VM is forgotten.
    async fn listen_when_managed(
        &self,
        mut told: watch::Receiver<DesiredState>,
    ) -> Option<net::TcpListener> {
        let mut failures = 0;
        loop {
            // One that is no longer managed needs no port that another could have.
            told.wait_for(|told| told.desired.lifecycle == Lifecycle::Managed).await.ok()?;
            match self.listen() {
                Ok(listener) => {
                    info!(vm = %self.vm, "its informant can call back");
                    return Some(listener);
                }
                Err(error) if failures == 0 => {
                    let because = error.because();
                    warn!(vm = %self.vm, %error, because, "no session until it can call back");
                }
                Err(_) => {}
            }
            failures += 1;
            tokio::time::sleep(Backoff::USUAL.wait(failures, self.shared.seed())).await;
        }
    }
}
