//! When the headroom pod of a node may be written next.
//!
//! A write that fails, or that the kubelet does not carry out, has the next one of its node wait, longer each time. A resize was carried
//! out if the books plan another, or another end of the pod, after it: they plan none while it is not settled.

use crate::backoff::rest;
use crate::pods::change::{Change, Write};
use std::collections::BTreeMap;
use std::time::Duration;
use windlass_protocol::Moment;

/// After the first failure; twice as long after each further one, up to the longest.
const FIRST_REST: Duration = Duration::from_secs(1);
const LONGEST_REST: Duration = Duration::from_secs(60);

/// After a pod is made, until the watch shows it.
const SHOWN_WITHIN: Duration = Duration::from_secs(2);

/// As long after its wait a node's failures count.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(120);

/// What the next writes of headroom pods wait for.
#[derive(Clone, Debug)]
pub struct Pacing {
    nodes: BTreeMap<String, Paced>,
    seed: u64,
}

/// What is known of the writes of one node.
#[derive(Clone, Debug, Default)]
struct Paced {
    failures: u32,
    /// No write before that.
    until: Moment,
    /// The API server has taken a resize, and the kubelet may carry it out.
    is_resized: bool,
}

// === impl Pacing ===

impl Pacing {
    /// Nodes do not march in step, nor do processes with other seeds.
    pub const fn new(seed: u64) -> Self {
        Self { nodes: BTreeMap::new(), seed }
    }

    /// What may be written now of what is planned.
    pub fn due(&mut self, plan: Vec<Change>, now: Moment) -> Vec<Change> {
        self.nodes.retain(|_, paced| now < paced.until.after(FORGOTTEN_AFTER));
        plan.into_iter().filter(|change| self.is_due(change, now)).collect()
    }

    /// This was written, or the API server did not do it.
    pub fn written(&mut self, change: &Change, is_done: bool, now: Moment) {
        let seed = change
            .node
            .bytes()
            .fold(self.seed, |seed, byte| seed.wrapping_mul(31).wrapping_add(byte.into()));
        let paced = self.nodes.entry(change.node.clone()).or_default();
        match change.write {
            // The watch shows what comes of it.
            Write::Resize { gives_up: false, .. } if is_done => paced.is_resized = true,
            Write::Create { .. } if is_done => paced.until = now.after(SHOWN_WITHIN),
            Write::Delete { has_ended: false, .. } if is_done => {}
            // The kubelet has not carried out what was written, and may reject a next pod, too.
            Write::Resize { .. } | Write::Create { .. } | Write::Delete { .. } => {
                let failures = paced.failures.saturating_add(1);
                let until = now.after(rest(FIRST_REST, LONGEST_REST, failures, seed));
                *paced = Paced { failures, until, is_resized: false };
            }
        }
    }

    fn is_due(&mut self, change: &Change, now: Moment) -> bool {
        let Some(paced) = self.nodes.get_mut(&change.node) else { return true };
        let is_carried_out = match change.write {
            Write::Resize { gives_up, .. } => !gives_up,
            Write::Delete { has_ended, .. } => !has_ended,
            Write::Create { .. } => false,
        };
        if paced.is_resized && is_carried_out {
            *paced = Paced::default();
        }
        now >= paced.until
    }
}
