//! Objects that the watch does not show are read, and labelled where they run here.

use super::{NodeAgent, Task, Turn};
use crate::cluster::call::{Answer, Call};
use std::time::Duration;
use windlass_agent_core::declared::is_run_by;
use windlass_protocol::vm_object::node_label;
use windlass_protocol::{Moment, NoSuccess, VmName};

/// An object that is not known: when it is looked for again, and how often it was.
#[derive(Debug)]
pub(super) struct Missing {
    next: Moment,
    looks: u32,
}

// === impl NodeAgent ===

impl NodeAgent {
    pub(super) fn label(&mut self, turn: &mut Turn<'_>) {
        if !self.is_listed() {
            return self.missing.clear();
        }
        let shown = &self.shown;
        let unknown = self.declared.unknown(|name| shown.contains_key(name));
        self.missing.retain(|known, _| unknown.contains(known));
        for it in unknown {
            let looks = self.missing.get(&it).map_or(0, |missing| missing.looks);
            if self.missing.get(&it).is_some_and(|missing| missing.next > turn.now) {
                continue;
            }
            let wait = Duration::from_millis((250 << looks.min(3)).min(2_000));
            self.missing
                .insert(it.clone(), Missing { next: turn.now.after(wait), looks: looks + 1 });
            let (object, pod) = it;
            turn.met.note("objects that an agent looked for");
            self.ask(turn, Call::ReadObject(object.clone()), Task::Look { object, pod });
        }
    }

    /// An object was read: it is labelled if this pod of this node runs its VM.
    pub(super) fn looked(
        &mut self,
        turn: &mut Turn<'_>,
        object: &VmName,
        pod: &str,
        answer: Result<Answer, NoSuccess>,
    ) {
        let Ok(Answer::Object(Some(shown))) = answer else { return };
        if is_run_by(&shown.machine, pod, &self.node) {
            turn.met.note("objects that an agent labelled");
            let (name, uid) = (object.clone(), shown.machine.uid.clone());
            let label = node_label(&self.node);
            self.ask(turn, Call::Label { name, uid, label }, Task::Label);
        }
    }
}
