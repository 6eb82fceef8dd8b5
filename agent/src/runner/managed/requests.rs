//! The requests that a plan asks for: each action is sent to its peer, and comes back as one event.

use super::Managed;
use crate::runner::hypervisor::{Hypervisor, Wanted};
use crate::{address, informant, scrape};
use std::net::SocketAddr;
use tracing::warn;
use windlass_agent_core::{Action, Event};
use windlass_protocol::Peer;

// === impl Managed ===

impl Managed {
    pub(super) fn start(&mut self, action: Action, hypervisor: &mut Hypervisor) {
        let (peer, times) = (action.peer(), self.shared.config.times);
        match action {
            Action::Look => hypervisor.start(Wanted::Look),
            Action::Resize(resize) => hypervisor.start(Wanted::Resize(resize)),
            Action::Measure => {
                let from = address::metrics(&self.vm.guest, self.scaler.metrics_port());
                let (from, clock) = (self.connections.to(from), self.shared.clock);
                self.in_flight.start(peer, scrape::read(from, clock, times.metrics));
            }
            Action::AskPlugin(asking) => {
                self.sizes.asks(self.scaler.upper(), asking.resources);
                let (shared, info) = (self.shared.clone(), self.vm.info.clone());
                let now = self.shared.clock.now();
                let (sample, told) =
                    (self.scaler.fresh_reading(now).copied(), self.scaler.told(now));
                self.in_flight.start(peer, async move {
                    shared.plugin.ask(&info, &asking, sample.as_ref(), told, times.permit).await
                });
            }
            Action::Register(_) => {
                self.announced = self.callback();
                self.ask_informant(action, self.announced);
            }
            Action::Unregister(_) => {
                let callback = self.callback();
                self.ask_informant(action, callback);
            }
            Action::CheckHealth(_) => self.ask_informant(action, None),
            Action::Downscale(_, _, said) | Action::Upscale(_, _, said) => {
                self.sizes.says(said);
                self.ask_informant(action, None);
            }
        }
    }

    fn ask_informant(&mut self, action: Action, callback: Option<SocketAddr>) {
        let shared = self.shared.clone();
        let at = self.connections.to(self.vm.guest.informant);
        let times = self.shared.config.times;
        self.in_flight.start(action.peer(), async move {
            let answered =
                informant::ask(&at, action, callback, times, &shared.metrics.reference).await;
            answered.unwrap_or_else(|failure| Event::Failed(Peer::Informant, failure))
        });
    }

    /// Where the informant calls back, if it can.
    fn callback(&mut self) -> Option<SocketAddr> {
        let port = (*self.port.borrow())?;
        let found = address::callback(&self.vm.guest, port);
        let lost = found.is_err();
        if let Err(error) = &found
            && !self.unreachable
        {
            warn!(%error, "no local address leads to the informant");
        }
        self.unreachable = lost;
        found.ok()
    }
}
