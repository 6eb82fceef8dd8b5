//! The listener at which a VM's informant calls back.
//!
//! It listens once the VM is declared, and tries again until it can. A VM without one has no session, so
//! no memory is taken from it; it still grows.

use crate::callback::{self, Server};
use crate::lock::lock;
use crate::ports::NoPort;
use crate::runner::Start;
use std::io;
use std::net;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tracing::{info, warn};
use windlass_agent_core::Lifecycle;
use windlass_kit::backoff::Backoff;
use windlass_kit::server::serve;

/// The call-back server of one VM.
#[derive(Clone)]
pub(super) struct CallbackListener {
    /// What the runner of the VM starts with.
    pub(super) start: Start,
    /// Where it listens, while it does.
    pub(super) port: watch::Sender<Option<u16>>,
}

// === impl CallbackListener ===

impl CallbackListener {
    /// Listens, if that can be done.
    pub(super) fn listen(&self) -> Result<net::TcpListener, NoPort> {
        let Start { shared, vm, .. } = &self.start;
        lock(&shared.ports).listen(shared.config.callback_listen, vm)
    }

    /// Serves once the VM is declared, by `listener` or one of its own, until it is to stop.
    pub(super) async fn serve(self, listener: Option<net::TcpListener>) -> Result<(), io::Error> {
        let Start { shared, calls, stop, .. } = &self.start;
        let opened = match listener {
            Some(listener) => Some(listener),
            None => stop.run_until_cancelled(self.listen_when_managed()).await.flatten(),
        };
        let Some(listener) = opened else { return Ok(()) };
        let port = listener.local_addr()?.port();
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        self.port.send_replace(Some(port));
        let metrics = &shared.metrics;
        let server = Server { calls: calls.clone(), metrics: metrics.clone() };
        let served = serve(listener, server, callback::limits(metrics), stop.clone()).await;
        // One that is to stop has still to name where it was heard when it takes leave.
        if served.is_err() {
            self.port.send_replace(None);
        }
        served
    }

    /// Tries until it can; `None` if the VM is forgotten.
    async fn listen_when_managed(&self) -> Option<net::TcpListener> {
        let Start { shared, vm, told, .. } = &self.start;
        let (mut told, mut failures) = (told.clone(), 0);
        loop {
            // One that is no longer managed needs no port that another could have.
            told.wait_for(|told| told.desired.lifecycle == Lifecycle::Managed).await.ok()?;
            match self.listen() {
                Ok(listener) => {
                    info!(%vm, "its informant can call back");
                    return Some(listener);
                }
                Err(error) if failures == 0 => {
                    let because = error.because();
                    warn!(%vm, %error, because, "no session until it can call back");
                }
                Err(_) => {}
            }
            failures += 1;
            tokio::time::sleep(Backoff::USUAL.wait(failures, shared.seed())).await;
        }
    }
}
