//! What goes wrong in a cluster: parts that do nothing, programs that are killed, ways that are cut, nodes that are cordoned.

use super::{Cluster, HOME, parts};
use crate::relay::Relay;
use anyhow::{Context, Result};
use windlass_control_plane::Space;

/// A part that may be away.
#[derive(Clone, Copy, Debug)]
pub enum Part {
    /// The plugin.
    Plugin,
    /// All agents.
    Agents,
    /// The API server.
    ApiServer,
}

/// The ways of the programs of Windlass to the API server. All others reach it past these.
pub(super) struct Ways {
    pub(super) plugin: Relay,
    pub(super) agents: Relay,
}

// === impl Cluster ===

impl Cluster {
    /// Has a part do nothing until it goes on.
    ///
    /// # Errors
    /// It has ended.
    pub fn halt(&self, part: Part) -> Result<()> {
        self.signal(part, "STOP")
    }

    /// Has a part go on.
    ///
    /// # Errors
    /// It has ended.
    pub fn go_on(&self, part: Part) -> Result<()> {
        self.signal(part, "CONT")
    }

    fn signal(&self, part: Part, signal: &str) -> Result<()> {
        let of_served = format!("-{signal}");
        match part {
            Part::Plugin => self.plugin.signal(&of_served),
            Part::Agents => self.agents.values().try_for_each(|agent| agent.signal(&of_served)),
            Part::ApiServer => {
                self.plane.api_server().signal(signal);
                Ok(())
            }
        }
    }

    /// Cuts the way between a part and the API server, or makes it whole. While it is cut, what is sent is lost, either way,
    /// and no connection ends; those that were open are ended once the way is whole. That of the API server is the way of all.
    pub fn cut(&self, part: Part, is_cut: bool) {
        let Ways { plugin, agents } = &self.ways;
        match part {
            Part::Plugin => plugin.cut(is_cut),
            Part::Agents => agents.cut(is_cut),
            Part::ApiServer => [plugin, agents].map(|way| way.cut(is_cut)).into_iter().collect(),
        }
    }

    /// Kills the agent of a node as a crash would.
    ///
    /// # Errors
    /// It does not run.
    pub fn kill_agent(&mut self, node: &str) -> Result<()> {
        self.agents.remove(node).context("the agent of the node runs")?.kill()
    }

    /// Starts the agent of a node, which was killed.
    ///
    /// # Errors
    /// It does not start.
    pub async fn start_agent(&mut self, node: &str) -> Result<()> {
        let home = Space::named(self.plane, HOME).await;
        let (whole, way) = (self.whole(node), self.ways.agents.at());
        let started = parts::agent(self.plane, way, &home, &self.folder, &self.plugin, &whole);
        self.agents.insert(node.to_owned(), started.await?);
        Ok(())
    }

    /// Kills the agent of a node as a crash would, and starts it again.
    ///
    /// # Errors
    /// It does not start.
    pub async fn restart_agent(&mut self, node: &str) -> Result<()> {
        self.kill_agent(node)?;
        self.start_agent(node).await
    }

    /// Has no pod placed on a node any more, as an operator does who is about to drain it; or takes that back.
    pub async fn cordon(&self, node: &str, is_cordoned: bool) {
        let order = if is_cordoned { "cordon" } else { "uncordon" };
        self.plane.kubectl(&[order, &self.whole(node)]).await;
    }
}
