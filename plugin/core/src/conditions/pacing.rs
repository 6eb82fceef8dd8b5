//! Which conditions are written, and when: only what changed, what has lasted, and at most one per VM and minute.
//!
//! What a pod shows is what the watch shows: a write that was lost is made again, and one of an earlier plugin is corrected. A VM that
//! follows its load and whose pod shows nothing needs no condition, so that a plugin that starts writes nothing of healthy VMs.

use std::collections::BTreeMap;
use std::time::Duration;
use windlass_protocol::vm_view::{Condition, Scaling};
use windlass_protocol::{Moment, VmName};

/// A reason is written once it has lasted this long: a VM that waits a moment for room is no news.
pub(crate) const LASTS: Duration = Duration::from_secs(15);
/// Between two writes of one VM.
pub(crate) const BETWEEN: Duration = Duration::from_secs(60);

/// A VM, as it is looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// Its pod.
    pub pod: VmName,
    /// The uid of that.
    pub uid: String,
    /// Its object.
    pub object: VmName,
    /// The uid of that, if it is another than the pod, and known.
    pub object_uid: Option<String>,
    /// The reason that the pod shows.
    pub shown: Option<Box<str>>,
    /// What is so.
    pub condition: Condition,
}

/// A condition that is to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    /// Of which VM, and what.
    pub look: Look,
    /// Since when it is so.
    pub since: Moment,
}

/// What was written lately, and what has not lasted yet.
#[derive(Clone, Debug, Default)]
pub struct Pacing {
    vms: BTreeMap<VmName, Pace>,
}

#[derive(Clone, Debug)]
struct Pace {
    uid: String,
    /// What the pod does not show, and since when that is so.
    differs: Option<(Scaling, Moment)>,
    written: Option<Moment>,
}

// === impl Pacing ===

impl Pacing {
    /// The conditions that are to be written of these VMs, which are all, at most so many. They count as written.
    pub fn due(&mut self, now: Moment, looks: Vec<Look>, most: usize) -> Vec<Due> {
        let (mut due, mut next) = (Vec::new(), BTreeMap::new());
        for look in looks {
            let last = self.vms.remove(&look.pod).filter(|pace| pace.uid == look.uid);
            let mut pace = last.unwrap_or_else(|| Pace {
                uid: look.uid.clone(),
                differs: None,
                written: None,
            });
            pace.written = pace.written.filter(|at| now.since(*at) < BETWEEN);
            let reason = look.condition.reason;
            let same = pace.differs.filter(|(before, _)| *before == reason);
            pace.differs = look.differs().then(|| same.unwrap_or((reason, now)));
            let lasting = pace.differs.filter(|(_, since)| now.since(*since) >= LASTS);
            let pod = look.pod.clone();
            if let (Some((_, since)), None, true) = (lasting, pace.written, due.len() < most) {
                pace.written = Some(now);
                due.push(Due { look, since });
            }
            if pace.differs.is_some() || pace.written.is_some() {
                next.insert(pod, pace);
            }
        }
        self.vms = next;
        due
    }

    /// How many VMs are remembered.
    pub fn len(&self) -> usize {
        self.vms.len()
    }

    /// Whether no VM is.
    pub fn is_empty(&self) -> bool {
        self.vms.is_empty()
    }
}

// === impl Look ===

impl Look {
    /// Whether the pod shows something else.
    fn differs(&self) -> bool {
        let reason = self.condition.reason;
        match self.shown.as_deref() {
            Some(shown) => Scaling::spelled(shown) != Some(reason),
            None => reason != Scaling::Following,
        }
    }
}
