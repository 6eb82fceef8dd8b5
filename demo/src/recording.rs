//! What one run of the demo saw, as plain data.
//!
//! Three kinds of figures stand side by side and are never mixed: what the hypervisor told
//! the lab's own monitor, what the load program read inside the guest, and what Windlass
//! says of itself. Each is a [`Reading`] with the window of time in which it was taken: a
//! figure was true at some moment between `from` and `to`, and [`crate::laws`] claims
//! no more than that.

use super::script::Player;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use windlass_protocol::{
    Bounds, Bytes, Decision, MilliCpu, Moment, Resources, Seen, VmName, Waiting,
};

/// A whole run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Recording {
    /// When the script began.
    pub(crate) began: Moment,
    /// What the pretend node can reserve.
    pub(crate) room: Resources,
    /// The step that sizes move in.
    pub(crate) unit: Resources,
    /// The VMs, in the order of the script.
    pub(crate) vms: Vec<Track>,
    /// The steps of the script, as they were played.
    pub(crate) acts: Vec<Act>,
    /// The sum of what the books have reserved.
    pub(crate) books: Vec<Reading<Books>>,
    /// The last answer of `windlass explain` for one VM.
    pub(crate) explained: Option<Explained>,
}

/// All that was seen of one VM.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Track {
    /// Its name.
    pub(crate) name: VmName,
    /// What it plays in the script.
    pub(crate) role: String,
    /// Where the node has too little room, a VM of higher priority gets it first.
    pub(crate) priority: i32,
    /// Its bounds.
    pub(crate) bounds: Bounds,
    /// By the lab's own monitor.
    pub(crate) outside: Vec<Reading<Seen>>,
    /// By the load program inside the guest.
    pub(crate) inside: Vec<Reading<Inside>>,
    /// By Windlass.
    pub(crate) ours: Vec<Reading<Ours>>,
    /// What Windlass decided, oldest first.
    pub(crate) decisions: Vec<Decision>,
}

// === impl Track ===

impl Track {
    /// Of a player, before anything was seen.
    pub(crate) fn of(player: &Player) -> Self {
        Self {
            name: VmName::on_host(player.name),
            role: player.role.to_owned(),
            priority: player.priority,
            bounds: player.bounds,
            outside: Vec::new(),
            inside: Vec::new(),
            ours: Vec::new(),
            decisions: Vec::new(),
        }
    }
}

/// A figure, and when it was taken.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Reading<T> {
    /// When it was asked for.
    pub(crate) from: Moment,
    /// When the answer was there.
    pub(crate) to: Moment,
    /// The answer.
    pub(crate) value: T,
}

/// What the load program reads in `/proc`, and what it holds itself.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Inside {
    /// vCPUs that the guest uses.
    pub(crate) online: MilliCpu,
    /// Memory that the guest's kernel manages.
    pub(crate) total: Bytes,
    /// Memory that could be had without swapping.
    pub(crate) available: Bytes,
    /// Memory that the load program holds.
    pub(crate) held: Bytes,
    /// Processes that spin.
    pub(crate) workers: u64,
    /// How often the guest's kernel killed for want of memory.
    pub(crate) oom_kills: u64,
}

/// What Windlass says of a VM.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ours {
    /// Load over the VM's window, as the informant gave it.
    pub(crate) load: Option<f64>,
    /// What the signals call for.
    pub(crate) goal: Option<Resources>,
    /// What the plugin allows.
    pub(crate) permit: Option<Resources>,
    /// What the books hold for it.
    pub(crate) reserved: Option<Resources>,
    /// What the guest is content with for now.
    pub(crate) consent: Option<Resources>,
    /// What it waits for.
    pub(crate) waiting: Vec<Waiting>,
}

/// The books as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Books {
    /// What may be reserved.
    pub(crate) room: Resources,
    /// What is reserved.
    pub(crate) reserved: Resources,
}

/// A step of the script, as it was played.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Act {
    /// One word.
    pub(crate) name: String,
    /// What the watcher should see.
    pub(crate) says: String,
    /// When it began.
    pub(crate) began: Moment,
    /// When every VM was where it should be; `None` if that never came.
    pub(crate) reached: Option<Moment>,
    /// How long it was given.
    pub(crate) within: Duration,
    /// Each VM: where it should be, and where it was at the end.
    pub(crate) ends: Vec<End>,
}

/// Where a VM should be at the end of a step, and where it was.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct End {
    /// Which VM.
    pub(crate) vm: VmName,
    /// Where it should be.
    pub(crate) should: Resources,
    /// What it wanted, where that is more.
    pub(crate) wanted: Option<Resources>,
    /// What it had, by figures from outside; `None` if they were missing.
    pub(crate) had: Option<Resources>,
}

/// The words of `windlass explain` for one VM.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Explained {
    /// Which VM.
    pub(crate) vm: VmName,
    /// The text as it is printed.
    pub(crate) text: String,
}

// === impl Recording ===

impl Recording {
    /// The last moment of which anything is known.
    pub(crate) fn ended(&self) -> Moment {
        let tracks = self.vms.iter().flat_map(|vm| {
            [last(&vm.outside), last(&vm.inside), last(&vm.ours)].into_iter().flatten()
        });
        let acts = self.acts.iter().map(|act| act.reached.unwrap_or(act.began));
        tracks.chain(acts).max().unwrap_or(self.began)
    }

    /// What was known at this moment.
    pub(crate) fn until(&self, at: Moment) -> Self {
        let mut known = self.clone();
        known.acts.retain(|act| act.began <= at);
        for act in &mut known.acts {
            act.reached = act.reached.filter(|reached| *reached <= at);
        }
        known.books.retain(|reading| reading.to <= at);
        for vm in &mut known.vms {
            vm.outside.retain(|reading| reading.to <= at);
            vm.inside.retain(|reading| reading.to <= at);
            vm.ours.retain(|reading| reading.to <= at);
            vm.decisions.retain(|decision| decision.at <= at);
        }
        known
    }

    /// Seconds from the beginning of the script to `at`; negative before it.
    pub(crate) fn seconds(&self, at: Moment) -> f64 {
        at.since(self.began).as_secs_f64() - self.began.since(at).as_secs_f64()
    }

    /// The VM of this name.
    pub(crate) fn vm(&self, name: &VmName) -> Option<&Track> {
        self.vms.iter().find(|vm| vm.name == *name)
    }
}

// === impl Inside ===

impl Inside {
    /// Memory in use.
    pub(crate) fn used(&self) -> Bytes {
        self.total.saturating_sub(self.available)
    }
}

// === impl Act ===

impl Act {
    /// When it was over, given when the next one began or the recording ended.
    pub(crate) fn over(&self, next: Moment) -> Moment {
        self.reached.unwrap_or(next)
    }
}

fn last<T>(readings: &[Reading<T>]) -> Option<Moment> {
    readings.last().map(|reading| reading.to)
}
