//! The plugin in a cluster: the books of the API server's nodes, for agents and for the scheduler.
//!
//! The parts are those of `windlass-plugin-cluster`; here they are put together. A configuration is read once:
//! SIGHUP changes nothing.

use crate::ports::{Ports, Services};
use crate::served::Served;
use serde_json::Value;
use std::convert::Infallible;
use tokio_util::sync::CancellationToken;
use tracing::warn;
use windlass_kit::clock::Clock;
use windlass_kit::program::Failure;
use windlass_kit::signal::Hangups;
use windlass_kit::watchdog::{self, Pulse};
use windlass_kit_kubernetes::{Followed, Following, connect};
use windlass_plugin::Endpoint;
use windlass_plugin_cluster::audit::{self, Auditing};
use windlass_plugin_cluster::books::Terms;
use windlass_plugin_cluster::certificates::{self, Certificates};
use windlass_plugin_cluster::conditions::{self, Conditions};
use windlass_plugin_cluster::headroom::{self, Headroom};
use windlass_plugin_cluster::metrics::Counts;
use windlass_plugin_cluster::migrations::{self, Migrating};
use windlass_plugin_cluster::resizes::{self, Resizes};
use windlass_plugin_cluster::role::OwnPod;
use windlass_plugin_cluster::watch;
use windlass_plugin_cluster::{
    AgentsOnly, Binder, Callers, ClusterBooks, Election, Epoch, Extender, Fresh, Leadership,
    Operators, Patches, SchedulerOnly, Tokens, ceilings, retries, role, settler, takeover,
};
use windlass_plugin_config::config::PluginConfig;
use windlass_plugin_config::kubernetes::{Kubernetes, TlsSource};
use windlass_plugin_core::pods::audit::AUDIT_EVERY;

/// What a plugin is called that is not told in which pod it runs.
const UNNAMED: &str = "windlass-plugin";

/// Starts all parts.
///
/// # Errors
/// The API server's address or credentials cannot be read, or an address cannot be had.
pub(crate) async fn start(
    config: &PluginConfig,
    kubernetes: &Kubernetes,
    clock: Clock,
    hangups: Hangups,
    served: Served<'_>,
) -> Result<(), Failure> {
    let Served { counts, tasks, watchdog, readiness, registry, dump, said, pod } = served;
    let client = connect(kubernetes.kubeconfig.as_deref());
    let client = client.await.map_err(|error| Failure::Invalid(error.to_string()))?;

    let terms = Terms {
        unit: config.rules.usual.unit,
        reserve: kubernetes.reserve,
        pools: kubernetes.pools.clone(),
    };
    let leadership = match kubernetes.lease {
        Some(_) => Leadership::standby(),
        None => Leadership::sole(Epoch(1)),
    };
    let (books, counted) = (ClusterBooks::new(terms, clock, leadership), Counts::default());
    let ports = Ports::open(kubernetes, &counted.reloads, said).await?;
    counted.register(&books, registry);
    let stop = tasks.stopping();
    let stops = books.stops().clone();
    tasks.vital("stops", stops.run(watchdog.watch("stops"), stop.clone()));
    if let Some(dump) = dump {
        let books = books.clone();
        let gather = move |stopped| gather(&books, stopped);
        said.push_str(&dump.serve(counts.clone(), stop.clone(), gather));
    }
    let binder = Binder::new(client.clone(), books.clone(), counted.bindings.clone());
    let following = |of: &'static str, followed: &Followed| {
        readiness.wait_for(of);
        Following {
            client: client.clone(),
            watches: counted.watches.clone(),
            readiness: readiness.clone(),
            followed: followed.clone(),
            pulse: watchdog.watch(of),
            stop: stop.clone(),
        }
    };
    let auditing = |of: &'static str, followed: &Followed| Auditing {
        client: client.clone(),
        audits: counted.audits.clone(),
        followed: followed.clone(),
        every: AUDIT_EVERY,
        page: audit::PAGE,
        pulse: watchdog.watch(of),
        stop: stop.clone(),
    };
    let followed = Followed::default();
    tasks.vital("nodes", watch::nodes(books.clone(), following("nodes", &followed)));
    tasks.vital(
        "audit of nodes",
        audit::nodes(books.clone(), auditing("audit of nodes", &followed)),
    );
    let followed = Followed::default();
    tasks.vital("pods", watch::pods(books.clone(), following("pods", &followed)));
    tasks.vital("audit of pods", audit::pods(books.clone(), auditing("audit of pods", &followed)));
    if kubernetes.pools.follows_objects {
        let followed = Followed::default();
        tasks.vital("objects", watch::objects(books.clone(), following("objects", &followed)));
        let auditing = auditing("audit of objects", &followed);
        tasks.vital("audit of objects", audit::objects(books.clone(), auditing));
    }
    let namespace = &kubernetes.pools.namespace;
    if let Some(lease) = &kubernetes.lease {
        let election =
            Election::new(client.clone(), namespace, &lease.name, pod.unwrap_or(UNNAMED));
        let (pulse, counts) = (watchdog.watch("lease"), counted.leases.clone());
        tasks.vital("lease", election.run(books.clone(), counts, pulse, stop.clone()));
        if let Some(pod) = pod {
            let (namespace, label) = (namespace.clone(), lease.label.clone());
            let own = OwnPod { client: client.clone(), namespace, name: pod.to_owned(), label };
            let pulse = watchdog.watch("role");
            tasks.vital("role", role::run(own, books.clone(), pulse, stop.clone()));
        }
    }
    let pulse = watchdog.watch("placements");
    tasks.vital("placements", settler::run(books.clone(), binder.clone(), pulse, stop.clone()));
    let pulse = watchdog.watch("takeover");
    tasks.vital("takeover", takeover::run(books.clone(), binder.clone(), pulse, stop.clone()));
    let pulse = watchdog.watch("refused pods");
    tasks.vital("refused pods", retries::run(books.clone(), binder.clone(), pulse, stop.clone()));
    let headroom = Headroom {
        client: client.clone(),
        namespace: kubernetes.pools.namespace.clone(),
        counts: counted.headroom.clone(),
        pulse: watchdog.watch("headroom pods"),
        stop: stop.clone(),
    };
    tasks.vital("headroom pods", headroom::run(books.clone(), headroom));
    let resizes = Resizes {
        client: client.clone(),
        counts: counted.resizes.clone(),
        pulse: watchdog.watch("resizes"),
        stop: stop.clone(),
    };
    tasks.vital("resizes", resizes::run(books.clone(), resizes));
    let conditions = Conditions {
        client: client.clone(),
        are_written: kubernetes.conditions,
        counts: counted.conditions.clone(),
        pulse: watchdog.watch("conditions"),
        stop: stop.clone(),
    };
    tasks.vital("conditions", conditions::run(books.clone(), conditions));
    let (patches, counting) = (Patches::new(client.clone()), counted.ceilings.clone());
    let pulse = watchdog.watch("ceilings");
    let recording = ceilings::run(books.clone(), patches, counting, pulse, stop.clone());
    tasks.vital("ceilings", recording);
    // Where nobody moves the cluster need not have NeonVM's objects.
    if kubernetes.pools.move_vms() {
        // The plugin is ready without them.
        let following = Following {
            client: client.clone(),
            watches: counted.watches.clone(),
            readiness: readiness.clone(),
            followed: Followed::default(),
            pulse: watchdog.watch("migrations"),
            stop: stop.clone(),
        };
        tasks.vital("migrations", watch::migrations(books.clone(), following));
        let migrating = Migrating {
            client: client.clone(),
            counts: counted.migrations.clone(),
            pulse: watchdog.watch("moves"),
            stop: stop.clone(),
        };
        tasks.vital("moves", migrations::run(books.clone(), migrating));
    }
    if kubernetes.tls == Some(TlsSource::Own) {
        let scheduler = (!kubernetes.plain_extender).then(|| kubernetes.scheduler.clone());
        let certificates = Certificates {
            client: client.clone(),
            namespace: namespace.clone(),
            terms: certificates::terms(namespace, scheduler),
            leadership: books.leadership().clone(),
            ports: ports.with_tls(),
            counts: counted.certificates.clone(),
            clock,
            every: certificates::EVERY,
            readiness: readiness.clone(),
            pulse: watchdog.watch("certificates"),
            stop: stop.clone(),
        };
        tasks.vital("certificates", certificates::run(certificates));
    }
    let extender = Extender::new(books.clone(), binder, counted.calls.clone());
    let callers = Callers::new(counted.denials.clone());
    let tokens = Tokens::new(client.clone(), clock);
    let operators = Operators::new(client, clock, books.clone(), tokens.clone());
    let agents = AgentsOnly::new(books.clone(), tokens, &kubernetes.agent, callers.clone());
    let agents = agents.beside(operators);
    let scheduler = SchedulerOnly::new(extender.clone(), &kubernetes.scheduler, callers);
    let agents = Fresh::new(agents, books.clone());
    let anybody = Fresh::new(Endpoint(books.clone()), books);
    let services = Services { agents, anybody, scheduler, beside: extender };
    ports.serve(services, &counts, tasks, watchdog);
    tasks.vital("hangups", ignored(hangups, watchdog.watch("hangups"), stop));
    Ok(())
}

fn gather(books: &ClusterBooks, stopped: bool) -> Value {
    let state = serde_json::to_value(books.dump()).unwrap_or(Value::Null);
    serde_json::json!({
        "stopped": stopped,
        "buildInfo": { "gitInfo": concat!("windlass-v", env!("CARGO_PKG_VERSION")), "goVersion": "" },
        "windlass": state,
    })
}

async fn ignored(
    mut hangups: Hangups,
    pulse: Pulse,
    stop: CancellationToken,
) -> Result<(), Infallible> {
    loop {
        pulse.turn("SIGHUP");
        tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(()),
            () = hangups.next() => warn!("SIGHUP changes nothing in a cluster: there are no lists"),
            () = tokio::time::sleep(watchdog::TURN) => {}
        }
    }
}
