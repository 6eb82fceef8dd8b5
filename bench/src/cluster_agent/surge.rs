//! Load comes to all VMs of a node in the same moment, and the recorded ceilings are too low.

use super::{FEW, SETTLED, Scene, WATCHED};
use anyhow::{Result, ensure};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use windlass_control_plane::Way;
use windlass_control_plane::way::Kind;

/// After the last has grown, for whatever is asked for twice.
const AFTER: Duration = Duration::from_secs(10);
/// However busy the machine is.
const PATIENCE: Duration = Duration::from_secs(180);

/// How VMs grew that all had load at once.
#[derive(Clone, Debug)]
pub(crate) struct Surge {
    /// From the load of each until it had its size.
    pub(crate) took: Vec<Duration>,
    /// Sizes that they were given, all together.
    pub(crate) sizes: u64,
    /// Sessions that began meanwhile.
    pub(crate) sessions: u64,
    pub(crate) agent: Asked,
    pub(crate) plugin: Asked,
}

/// Requests of a program to the API server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    /// While nothing had to be done, in [`WATCHED`].
    pub(crate) at_rest: u64,
    /// From the load on.
    pub(crate) all: u64,
    /// Those of them that write.
    pub(crate) writes: u64,
}

/// The way of a program, and what it has asked at some moments.
struct Counted<'a> {
    way: &'a Way,
    before: BTreeMap<Kind, u64>,
}

pub(super) async fn surge(scene: &Scene<'_>, way: &Way) -> Result<Surge> {
    let (mut program, _) = scene.agent(FEW, Some(way)).await?;
    tokio::time::sleep(SETTLED).await;
    let mut ways = [way, &scene.installed.way].map(Counted::new);
    tokio::time::sleep(WATCHED).await;
    let at_rest = ways.each_mut().map(|way| way.since().0);
    let (registered, begun) = (scene.crowd.registered(), scene.crowd.load());
    while scene.crowd.grown().len() < FEW {
        program.check()?;
        let grown = scene.crowd.grown().len();
        ensure!(begun.elapsed() < PATIENCE, "{grown} of {FEW} grew\n{}", program.log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    tokio::time::sleep(AFTER).await;
    program.check()?;
    let [agent, plugin] = ways.each_mut().map(|way| way.since());
    let asked = |(all, writes), at_rest| Asked { at_rest, all, writes };
    Ok(Surge {
        took: scene.crowd.grown().into_iter().map(|at: Instant| at - begun).collect(),
        sizes: scene.crowd.resized(),
        sessions: scene.crowd.registered() - registered,
        agent: asked(agent, at_rest[0]),
        plugin: asked(plugin, at_rest[1]),
    })
}

// === impl Counted ===

impl<'a> Counted<'a> {
    fn new(way: &'a Way) -> Self {
        Self { way, before: way.asked() }
    }

    /// Requests since the last count, and how many of them write an object.
    fn since(&mut self) -> (u64, u64) {
        let now = self.way.asked();
        let since = |kind: &Kind| now[kind] - self.before.get(kind).copied().unwrap_or(0);
        let writes = |kind: &&Kind| matches!(kind, Kind::Ceiling | Kind::Patch | Kind::Binding);
        let counts = (now.keys().map(since).sum(), now.keys().filter(writes).map(since).sum());
        self.before = now;
        counts
    }
}
