//! The ports of a plugin in a cluster: who is let in at each, and with or without TLS.

use crate::served::limits;
use std::time::Duration;
use tokio::net::TcpListener;
use windlass_kit::program::{Failure, listen};
use windlass_kit::server::{Counts, Limits, Reloads, Tls, TlsFiles, TlsListener, serve};
use windlass_kit::tasks::Tasks;
use windlass_kit::watchdog::Watchdog;
use windlass_plugin::Endpoint;
use windlass_plugin_cluster::certificates::Port;
use windlass_plugin_cluster::{AgentsOnly, ClusterBooks, Extender, Fresh, SchedulerOnly};
use windlass_plugin_config::kubernetes::{Kubernetes, TlsPaths, TlsSource};

/// The longest body of the scheduler's: a pod of 1.5 MiB, the API server's limit, and the names of 5,000 nodes.
const BODY: usize = 4 << 20;

/// A bind waits for two answers of the API server, of three seconds at most each.
const ANSWER: Duration = Duration::from_secs(10);

/// The listeners, before anything answers there.
pub(crate) struct Ports {
    permits: Option<(TcpListener, Tls)>,
    plain_permits: Option<TcpListener>,
    extender: (TcpListener, Option<Tls>),
}

/// What answers at each port.
pub(crate) struct Services {
    pub(crate) agents: Fresh<AgentsOnly>,
    pub(crate) anybody: Fresh<Endpoint<ClusterBooks>>,
    pub(crate) scheduler: SchedulerOnly<Extender>,
    /// For a scheduler on the same machine, which the port without TLS is for.
    pub(crate) beside: Extender,
}

// === impl Ports ===

impl Ports {
    /// Reads certificates and listens, and says where.
    ///
    /// # Errors
    /// A file cannot be used, or an address cannot be had.
    pub(crate) async fn open(
        kubernetes: &Kubernetes,
        reloads: &Reloads,
        said: &mut String,
    ) -> Result<Self, Failure> {
        let Kubernetes { tls, permits, plain_permits, extender, plain_extender, .. } = kubernetes;
        let show = |asks_clients: bool| {
            tls.as_ref().map(|source| show(source, asks_clients, reloads)).transpose()
        };
        let permits = match (show(false)?, permits) {
            (Some(tls), Some(at)) => {
                let (listener, at) = listen("kubernetes.permits", *at).await?;
                said.push_str(&format!("permits https://{at}\n"));
                Some((listener, tls))
            }
            (_, _) => None,
        };
        let plain_permits = match plain_permits {
            Some(at) => {
                let (listener, at) = listen("kubernetes.plain_permits", *at).await?;
                said.push_str(&format!("plain permits http://{at}\n"));
                Some(listener)
            }
            None => None,
        };
        let tls = if *plain_extender { None } else { show(true)? };
        let (extender, at) = listen("kubernetes.extender", *extender).await?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        said.push_str(&format!("extender {scheme}://{at}\n"));
        Ok(Self { permits, plain_permits, extender: (extender, tls) })
    }

    /// The ports that have TLS.
    pub(crate) fn with_tls(&self) -> Vec<Port> {
        let permits = self.permits.as_ref().map(|(_, tls)| (tls, false));
        let extender = self.extender.1.as_ref().map(|tls| (tls, true));
        let all = permits.into_iter().chain(extender);
        all.map(|(tls, asks_clients)| Port { tls: tls.clone(), asks_clients }).collect()
    }

    /// Has everything answer.
    pub(crate) fn serve(
        self,
        services: Services,
        counts: &Counts,
        tasks: &Tasks,
        watchdog: &Watchdog,
    ) {
        let Services { agents, anybody, scheduler, beside } = services;
        let stop = || tasks.stopping();
        let limits = || limits(counts.clone());
        if let Some((listener, tls)) = self.permits {
            let listener = TlsListener::new(listener, tls.clone());
            tasks.vital("permits", serve(listener, agents, limits(), stop()));
            let pulse = watchdog.watch("the certificate of permits");
            tasks.vital("the certificate of permits", tls.follow(pulse, stop()));
        }
        if let Some(listener) = self.plain_permits {
            tasks.vital("plain permits", serve(listener, anybody, limits(), stop()));
        }
        let of_scheduler = Limits { body_size: BODY, request_time: ANSWER, ..limits() };
        match self.extender {
            (listener, Some(tls)) => {
                let listener = TlsListener::new(listener, tls.clone());
                tasks.vital("extender", serve(listener, scheduler, of_scheduler, stop()));
                let pulse = watchdog.watch("the certificate of the extender");
                tasks.vital("the certificate of the extender", tls.follow(pulse, stop()));
            }
            (listener, None) => {
                tasks.vital("extender", serve(listener, beside, of_scheduler, stop()));
            }
        }
    }
}

fn show(source: &TlsSource, asks_clients: bool, reloads: &Reloads) -> Result<Tls, Failure> {
    let TlsPaths { certificate, key, client_ca } = match source {
        TlsSource::Own => return Ok(Tls::awaiting(reloads.clone())),
        TlsSource::Files(paths) => paths.clone(),
    };
    let files = TlsFiles { certificate, key, client_ca: client_ca.filter(|_| asks_clients) };
    Tls::load(files, reloads.clone()).map_err(|error| {
        Failure::Invalid(format!("kubernetes.tls.{}: {error}", error.file.as_str()))
    })
}
