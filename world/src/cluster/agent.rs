//! The agent of one VM, as far as it asks for permits, and what its hypervisor has.
//!
//! It gives back before it asks for less, and grows within an answer that is no older than
//! [`LONGEST_ACT`] by its own clock. Before version 2.1 of the plugin's protocol it names no last permit.

use std::time::Duration;
use windlass_plugin_core::Ask;
use windlass_protocol::timing::LONGEST_ACT;
use windlass_protocol::{Moment, Resources, VmName};

/// An agent with its VM.
#[derive(Clone, Debug)]
pub(crate) struct Agent {
    pub(crate) pod: VmName,
    /// The object of its VM, where that is another than the pod: the agent of the node has it act.
    pub(crate) object: Option<VmName>,
    pub(crate) node: String,
    /// Its clock shows `rate` milliseconds for a thousand.
    pub(crate) rate: u64,
    pub(crate) names_last: bool,
    /// It has named none at some time.
    pub(crate) was_old: bool,
    /// What its hypervisor has.
    pub(crate) size: Resources,
    /// What it may use by the plugin's last answer; `None`: no answer has come since the agent started.
    pub(crate) permit: Option<Resources>,
    /// What the VM is to have: no less than its minimum.
    pub(crate) goal: Resources,
    least: Resources,
    /// The request that is under way, and since when.
    asked: Option<(u64, Moment)>,
    number: u64,
    /// Counts the alarms that were set: the last one rings.
    pub(crate) alarm: u64,
    pub(crate) silent_until: Moment,
}

// === impl Agent ===

impl Agent {
    /// Of a VM that starts with this size, and never has less than `least`.
    pub(crate) fn of(
        pod: VmName,
        node: String,
        (size, least): (Resources, Resources),
        rate: u64,
    ) -> Self {
        Self {
            pod,
            object: None,
            node,
            rate,
            names_last: true,
            was_old: false,
            size,
            permit: None,
            goal: size,
            least,
            asked: None,
            number: 0,
            alarm: 0,
            silent_until: Moment::default(),
        }
    }

    /// Its signals call for this.
    pub(crate) fn want(&mut self, goal: Resources) {
        self.goal = goal.max(self.least);
    }

    /// What the VM may have, whatever comes.
    pub(crate) fn most(&self) -> Resources {
        self.size.max(self.permit.unwrap_or_default())
    }

    /// It gives back what it does not want, and asks. An agent that was told nothing says first what its VM has.
    pub(crate) fn ask(&mut self, now: Moment) -> (u64, Ask) {
        let wanted = if self.permit.is_none() { self.size } else { self.goal };
        self.size = self.size.min(wanted);
        self.ask_for(now, wanted)
    }

    /// It asks for what its VM has by its object, or is to have.
    pub(crate) fn ask_for(&mut self, now: Moment, wanted: Resources) -> (u64, Ask) {
        let last = self.permit;
        // What it offers to give back is its own no more.
        self.permit = self.permit.map(|permit| permit.min(wanted));
        self.number += 1;
        self.asked = Some((self.number, now));
        let last_permit = last.filter(|_| self.names_last);
        let names_permits = self.names_last;
        (self.number, Ask { last_permit, names_permits, ..Ask::from(wanted) })
    }

    /// Milliseconds until it gives a request up.
    pub(crate) fn gives_up_after(&self) -> u64 {
        u64::try_from(LONGEST_ACT.as_millis()).unwrap_or(u64::MAX) * 1000 / self.rate
    }

    /// Whether it waits for an answer.
    pub(crate) fn waits(&self, now: Moment) -> bool {
        let limit = Duration::from_millis(self.gives_up_after());
        self.asked.is_some_and(|(_, at)| now.since(at) < limit)
    }

    /// An answer comes; whether it counts.
    pub(crate) fn hears(&mut self, now: Moment, number: u64) -> bool {
        let waits = |(asked, at): (u64, Moment)| {
            asked == number && now.since(at) < Duration::from_millis(self.gives_up_after())
        };
        let counts = self.asked.is_some_and(waits);
        if counts {
            self.asked = None;
        }
        counts
    }

    /// It was permitted this, and grows within it.
    pub(crate) fn use_permit(&mut self, permit: Resources) {
        self.permit = Some(permit);
        self.size = self.size.max(self.goal.min(permit));
    }

    /// It starts anew, and knows of no permit. What its VM has, it has.
    pub(crate) fn restart(&mut self) {
        (self.permit, self.asked) = (None, None);
    }
}
