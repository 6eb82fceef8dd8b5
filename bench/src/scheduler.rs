//! How many pods per second a stock kube-scheduler binds in a real control plane: alone, with an extender that does as little
//! as one can, and with the plugin.
//!
//! Pods are there before their scheduler is started, so that none waits for its creation: the clock runs from the first
//! binding that the watch shows to the last. Both extenders are asked in the same verbs for each pod, filter, prioritize and
//! bind, and bind by the API server. No kubelet runs: what is measured ends with the binding.

mod trivial;

use crate::cluster_plugin::{Api, ClusterPlugin, Shows};
use crate::print;
use crate::program;
use anyhow::{Context, Result, ensure};
use futures_util::{StreamExt, TryStreamExt, stream};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::runtime::{WatchStreamExt, watcher};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::{Duration, Instant};
use trivial::Trivial;
use windlass_control_plane::space::node_of;
use windlass_control_plane::{ControlPlane, Identity, Scheduler, Space};

pub(crate) const NODES: usize = 1_000;
/// Pods of a turn.
pub(crate) const PODS: usize = 300;
/// How often each has its turn.
pub(crate) const TURNS: usize = 5;
/// Objects that are made at a time.
const AT_ONCE: usize = 16;
/// However busy the machine is.
const PATIENCE: Duration = Duration::from_secs(120);

/// What the scheduler asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum With {
    Nothing,
    Trivial,
    Plugin,
}

/// What came of the turns of all three.
#[derive(Clone, Debug, Default)]
pub(crate) struct Came {
    /// Pods per second, by turn.
    pub(crate) rates: BTreeMap<With, Vec<f64>>,
    /// Microseconds of a core that the plugin took for each pod, from its start to the last binding.
    pub(crate) cpu: Vec<f64>,
}

/// Schedules pods, and prints what came of it.
pub(crate) async fn run() -> Result<()> {
    print::scheduler_head()?;
    let plane = ControlPlane::start().await;
    let space = Space::new(&plane).await;
    let nodes = stream::iter(0..NODES).map(|index| {
        let space = &space;
        async move { space.node(&format!("n{index:04}"), "64", "256Gi").await }
    });
    nodes.buffer_unordered(AT_ONCE).collect::<Vec<_>>().await;
    let mut came = Came::default();
    // The first turn of each warms up.
    for turn in 0..=TURNS {
        for with in With::ALL {
            let (rate, cpu) = one(&plane, &space, with, turn).await?;
            if turn > 0 {
                came.rates.entry(with).or_default().push(rate);
                came.cpu.extend(cpu);
            }
        }
    }
    print::scheduler(&came)
}

/// One turn: pods per second, and what the plugin took for each.
async fn one(
    plane: &ControlPlane,
    space: &Space<'_>,
    with: With,
    turn: usize,
) -> Result<(f64, Option<f64>)> {
    let name = format!("{}-{turn}", with.as_str());
    create(space, &name).await?;
    let (mut plugin, mut trivial) = (None, None);
    let extenders = match with {
        With::Nothing => Vec::new(),
        With::Trivial => {
            let started = Trivial::start(space.client().clone()).await?;
            vec![extender(trivial.insert(started).address)]
        }
        With::Plugin => {
            let api = Api::File(plane.kubeconfig(Identity::Admin));
            vec![extender(
                plugin.insert(ClusterPlugin::start(&[], &api, Shows::Nothing).await?).extender,
            )]
        }
    };
    let before = plugin.as_ref().map(|it| program::cpu(it.program.pid())).transpose()?;
    // The watch has begun before the scheduler has.
    let (scheduler, bound) = tokio::join!(
        Scheduler::start_without_limits(plane, &name, &extenders),
        tokio::time::timeout(PATIENCE, bound(space))
    );
    let (first, last) = bound.with_context(|| format!("{name}: not all pods are bound"))??;
    let cpu = match (&plugin, before) {
        (Some(plugin), Some(before)) => {
            let spent = program::cpu(plugin.program.pid())?.saturating_sub(before);
            Some(spent.as_secs_f64() * 1e6 / of(PODS))
        }
        (_, _) => None,
    };
    drop(scheduler);
    clear(space).await?;
    Ok((of(PODS - 1) / (last - first).as_secs_f64(), cpu))
}

/// Makes the pods of a turn: VMs, which wait for this scheduler.
async fn create(space: &Space<'_>, scheduler: &str) -> Result<()> {
    let pods = space.pods();
    let made = stream::iter(0..PODS).map(|index| {
        let (pods, pod) = (pods.clone(), pod(index, scheduler));
        async move {
            let pod = serde_json::from_value(pod)?;
            pods.create(&PostParams::default(), &pod).await?;
            anyhow::Ok(())
        }
    });
    made.buffer_unordered(AT_ONCE).try_collect().await
}

fn pod(index: usize, scheduler: &str) -> Value {
    let bounds = r#"{"min":{"cpu":"250m","mem":"512Mi"},"max":{"cpu":4,"mem":"8Gi"}}"#;
    let requests = json!({"cpu": "250m", "memory": "512Mi"});
    json!({
        "metadata": {
            "name": format!("{scheduler}-{index}"), "labels": {"windlass.dev/enabled": "true"},
            "annotations": {"windlass.dev/bounds": bounds},
        },
        "spec": {
            "schedulerName": scheduler, "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "vm", "image": "none", "resources": {"requests": requests}}],
        },
    })
}

/// An extender of a `KubeSchedulerConfiguration`, as `deploy/scheduler` has it.
fn extender(at: SocketAddr) -> Value {
    json!({
        "urlPrefix": format!("http://{at}"), "filterVerb": "filter", "prioritizeVerb": "prioritize",
        "bindVerb": "bind", "weight": 1, "nodeCacheCapable": true, "httpTimeout": "8s",
    })
}

/// When the watch showed the first pod on a node, and the last.
async fn bound(space: &Space<'_>) -> Result<(Instant, Instant)> {
    let pods = watcher(space.pods(), watcher::Config::default());
    let mut pods = pin!(pods.default_backoff().applied_objects());
    let mut seen = BTreeMap::new();
    while seen.len() < PODS {
        let pod = pods.next().await.context("the watch has ended")?;
        // A watch that breaks begins anew.
        let Ok(pod) = pod else { continue };
        if node_of(&pod).is_some() {
            seen.entry(pod.metadata.name).or_insert_with(Instant::now);
        }
    }
    let (first, last) = (seen.values().min(), seen.values().max());
    let (first, last) = first.zip(last).context("no pods")?;
    ensure!(first < last, "all pods were bound at once");
    Ok((*first, *last))
}

/// Deletes the pods of a turn, and waits until they are gone.
async fn clear(space: &Space<'_>) -> Result<()> {
    let (pods, begun) = (space.pods(), Instant::now());
    pods.delete_collection(&DeleteParams::default().grace_period(0), &ListParams::default())
        .await?;
    while !pods.list_metadata(&ListParams::default().limit(1)).await?.items.is_empty() {
        ensure!(begun.elapsed() < PATIENCE, "pods are not deleted");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
const fn of(pods: usize) -> f64 {
    pods as f64
}

// === impl With ===

impl With {
    pub(crate) const ALL: [Self; 3] = [Self::Nothing, Self::Trivial, Self::Plugin];

    /// As names of schedulers begin, and as a table says it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Nothing => "alone",
            Self::Trivial => "trivial",
            Self::Plugin => "windlass",
        }
    }
}
