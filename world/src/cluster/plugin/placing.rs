//! Filter, bind, what settles a lost binding, and what fences those of an earlier leader.

use super::{Plugin, Task, Turn, pod_of};
use crate::cluster::call::{Answer, Call};
use windlass_plugin_core::ceilings::FirstCeiling;
use windlass_plugin_core::pods::{Outcome, Placement, Settled};
use windlass_plugin_core::rebuild::Inherited;
use windlass_plugin_core::settling::SETTLE_EVERY;
use windlass_protocol::NoSuccess;
use windlass_protocol::VmName;
use windlass_protocol::pod::Pod;

// === impl Plugin ===

impl Plugin {
    /// The nodes that have room for a pod, the best first; `None`: it does not answer.
    pub(crate) fn filter(
        &mut self,
        turn: &Turn<'_>,
        pod: &Pod,
        nodes: &[String],
    ) -> Option<Vec<String>> {
        self.serves(turn.now).ok()?;
        let fit = nodes.iter().filter(|node| self.books.fits(pod, node).is_ok());
        let mut fit: Vec<String> = fit.cloned().collect();
        fit.sort_by_key(|node| std::cmp::Reverse(self.books.score(pod, node)));
        if fit.is_empty() {
            self.books.refused(pod);
        }
        Some(fit)
    }

    /// The scheduler asks for a pod to be bound. Its answer is of no interest: the scheduler looks at the pod.
    pub(crate) fn bind(&mut self, turn: &mut Turn<'_>, pod: VmName, uid: String, node: String) {
        if self.serves(turn.now).is_ok() && self.busy.insert(pod.clone()) {
            let call = Call::Read(pod.clone());
            self.ask(turn, call, Task::BindRead { pod, uid, node });
        }
    }

    pub(super) fn bind_read(
        &mut self,
        turn: &mut Turn<'_>,
        (name, uid, node): (VmName, String, String),
        answer: Result<Answer, NoSuccess>,
    ) {
        let read = pod_of(answer).ok().flatten().filter(|pod| pod.uid == uid);
        let placed = read.and_then(|pod| {
            let epoch = self.serves(turn.now).ok();
            let placement = self.books.place(&pod, &node).ok()?;
            let first = epoch.and_then(|epoch| self.books.first_ceiling(&pod, epoch.into()));
            Some((placement, first))
        });
        let Some((placement, first)) = placed else {
            self.busy.remove(&name);
            return;
        };
        if self.epoch(turn.now).is_none() {
            self.books.settle(&name, &uid, Outcome::Refused);
            self.busy.remove(&name);
            return;
        }
        let Placement { pod, uid, revision, node, .. } = placement.clone();
        let ceiling = first.map(|first| first.recorded);
        let call = Call::Bind { pod, uid, revision, node, ceiling };
        self.ask(turn, call, Task::Bind { placement, first });
    }

    pub(super) fn bound(
        &mut self,
        placement: &Placement,
        first: Option<FirstCeiling>,
        answer: Result<Answer, NoSuccess>,
    ) {
        let Placement { pod, uid, .. } = placement;
        self.busy.remove(pod);
        match answer {
            Ok(_) => {
                self.books.settle(pod, uid, Outcome::Bound);
                if let Some(first) = first {
                    self.books.bound_with(pod, uid, first);
                }
            }
            Err(why) if why.is_refusal() => drop(self.books.settle(pod, uid, Outcome::Refused)),
            // The room stays reserved until the pod was read.
            Err(_) => {}
        }
    }

    /// Looks at placements that were open at the last look, too.
    pub(super) fn settle_all(&mut self, turn: &mut Turn<'_>) {
        if turn.now < self.next_settling || self.epoch(turn.now).is_none() {
            return;
        }
        self.next_settling = turn.now.after(SETTLE_EVERY);
        let open = self.books.placements();
        let open = open.map(|(name, uid, _)| (name.clone(), uid.to_owned())).collect();
        for (pod, uid) in self.settling.look(open) {
            if self.busy.insert(pod.clone()) {
                self.settling.reads((pod.clone(), uid.clone()));
                let call = Call::Read(pod.clone());
                self.ask(turn, call, Task::SettleRead { pod, uid });
            }
        }
    }

    pub(super) fn settle_read(
        &mut self,
        turn: &mut Turn<'_>,
        (pod, uid): (VmName, String),
        answer: Result<Answer, NoSuccess>,
    ) {
        let settled = pod_of(answer).map(|read| {
            let read = read.map(|pod| Box::new(Pod::clone(&pod)));
            self.books.settle(&pod, &uid, Outcome::Read(read))
        });
        match settled {
            Ok(Settled::Open) if self.epoch(turn.now).is_some() => {
                turn.met.note("pods that were changed to settle a binding");
                let call = Call::Annotate { pod: pod.clone(), uid };
                return self.ask(turn, call, Task::SettleTouch { pod });
            }
            Ok(Settled::Released(_)) => turn.met.note("placements that ended by a read"),
            Ok(Settled::Open | Settled::Bound | Settled::Unknown) | Err(_) => {}
        }
        self.busy.remove(&pod);
    }

    /// Changes each pod that may still be bound by an earlier leader.
    pub(super) fn take_over(&mut self, turn: &mut Turn<'_>) {
        if self.epoch(turn.now).is_none() {
            return;
        }
        let too_old = self.rebuild.take_too_old(turn.now);
        turn.met.note_if("earlier bindings that were waited for", !too_old.is_empty());
        too_old.iter().for_each(|(name, uid)| self.books.inherited_is_too_old(name, uid));
        let under_way: Vec<Inherited> =
            self.asked.values().filter_map(|asked| asked.task.taken_over().cloned()).collect();
        let left = self.rebuild.left().into_iter().filter(|pod| !under_way.contains(pod));
        for (pod, uid) in left.collect::<Vec<_>>() {
            let call = Call::Annotate { pod: pod.clone(), uid: uid.clone() };
            self.ask(turn, call, Task::TakeOver((pod, uid)));
        }
    }

    pub(super) fn taken_over(&mut self, pod: &Inherited, answer: Result<Answer, NoSuccess>) {
        match pod_of(answer) {
            Ok(shown) => {
                if let Some(shown) = shown.filter(|pod| pod.node.is_some()) {
                    self.books.pod_read(Pod::clone(&shown));
                }
                self.rebuild.inherit(pod);
            }
            Err(NoSuccess::Gone) => self.rebuild.inherit(pod),
            Err(
                NoSuccess::Conflict | NoSuccess::Invalid | NoSuccess::Refused | NoSuccess::Unknown,
            ) => {}
        }
    }
}
