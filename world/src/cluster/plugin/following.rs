//! Lists and watches of nodes and pods, and the audit of what they told.

use super::{Plugin, StreamState, Task, Turn};
use crate::cluster::call::{Answer, Call, Kind, Told};
use crate::cluster::plugin::{Held, Out};
use crate::cluster::vm_objects::Shown;
use std::rc::Rc;
use std::time::Duration;
use windlass_plugin_core::Rebuild;
use windlass_plugin_core::pods::Migration;
use windlass_plugin_core::pods::audit::{AUDIT_EVERY, Page};
use windlass_protocol::NoSuccess;
use windlass_protocol::pod::Pod;
use windlass_protocol::timing::API_SERVER_BEGINS;
use windlass_protocol::{Moment, VmName};

/// After so many failures in a row everything is listed anew.
const LISTED_AFTER: u32 = 5;
/// Events that may come again. None of before a list does: a watch and its lists come in order.
const MOST_TOLD: usize = 4;

// === impl Plugin ===

impl Plugin {
    pub(super) fn follow(&mut self, turn: &mut Turn<'_>) {
        for kind in self.kinds.iter().copied() {
            let stream = &mut self.streams[kind.at()];
            let is_due = matches!(stream.state, StreamState::Rests(until) if until <= turn.now);
            if !is_due {
                continue;
            }
            stream.state = StreamState::Asks;
            let (from, number) = (stream.at, stream.number);
            if stream.wants_list {
                let task = Task::List { kind, epoch: self.rebuild.begun(), number };
                self.ask_within(turn, API_SERVER_BEGINS, Call::List(kind), task);
            } else {
                self.ask(turn, Call::Watch { from }, Task::Watch { kind, number });
            }
        }
        if turn.now >= self.next_audit {
            self.next_audit = turn.now.after(AUDIT_EVERY);
            for kind in Kind::ALL {
                if !self.streams[kind.at()].wants_list && kind != Kind::Migrations {
                    self.ask(turn, Call::List(kind), Task::Audit(kind));
                }
            }
        }
    }

    /// The connection of a watch is lost.
    pub(crate) fn cut(&mut self, clock: Moment, kind: Kind) {
        let stream = &mut self.streams[kind.at()];
        if stream.state == StreamState::Follows {
            stream.state = StreamState::Rests(clock.after(Duration::from_millis(100)));
        }
    }

    /// Where a watch goes on that delivers now.
    pub(crate) fn follows(&self, kind: Kind) -> Option<u64> {
        let stream = &self.streams[kind.at()];
        (stream.state == StreamState::Follows).then_some(stream.at)
    }

    /// A watch has come so far.
    pub(crate) fn came_to(&mut self, kind: Kind, at: u64) {
        self.streams[kind.at()].at = at;
    }

    /// A watch tells of an object.
    pub(crate) fn tell(&mut self, now: Moment, revision: u64, told: Told) {
        let stream = &mut self.streams[told.kind().at()];
        stream.highest = stream.highest.max(revision);
        stream.told.push_back(told.clone());
        if stream.told.len() > MOST_TOLD {
            stream.told.pop_front();
        }
        self.hear(now, told);
    }

    /// A watch tells once more of what it told before.
    pub(crate) fn repeat(&mut self, now: Moment, kind: Kind, nth: usize) {
        let told = &self.streams[kind.at()].told;
        if let Some(told) = told.get(nth % told.len().max(1)).cloned() {
            self.hear(now, told);
        }
    }

    pub(super) fn list_again(&mut self, now: Moment, kind: Kind) {
        let stream = &mut self.streams[kind.at()];
        (stream.wants_list, stream.state) = (true, StreamState::Rests(now));
        stream.number += 1;
    }

    /// Whether a watch that it follows is to deliver up to this revision before all is known.
    pub(crate) fn has_come_to(&self, kind: Kind, revision: u64) -> bool {
        !self.kinds.contains(&kind) || self.follows(kind).is_some_and(|at| at <= revision)
    }

    fn hear(&mut self, now: Moment, told: Told) {
        match told {
            Told::Pod(pod) => drop(self.books.pod_seen(Pod::clone(&pod))),
            Told::PodGone(pod) => drop(self.books.pod_gone(&pod.name, &pod.uid)),
            Told::Node(node) => drop(self.books.node_seen(&node, || Held::empty(&node.name))),
            Told::NodeGone(node) => self.books.node_gone(&node.name),
            Told::Object(shown) => drop(self.books.object_seen(shown.object.clone())),
            Told::ObjectGone(shown) => {
                drop(self.books.object_gone(&shown.object.name, &shown.object.uid));
            }
            Told::Migration(migration) => {
                self.books.migration_seen(Migration::clone(&migration), now);
            }
            Told::MigrationGone(gone) => self.books.migration_gone(&gone.name, &gone.uid, now),
        }
    }

    pub(super) fn listed(
        &mut self,
        turn: &mut Turn<'_>,
        (kind, epoch, number): (Kind, u64, u64),
        answer: Result<Answer, NoSuccess>,
    ) {
        if self.streams[kind.at()].number != number {
            return;
        }
        let (at, highest) = match answer {
            Ok(Answer::Nodes(nodes, at)) => {
                let nodes: Vec<_> = nodes.iter().map(|node| (**node).clone()).collect();
                let highest = nodes.iter().filter_map(|node| node.revision.parse().ok()).max();
                self.books.nodes_listed(nodes, |node| Held::empty(&node.name));
                self.rebuild.nodes_listed(epoch);
                (at, highest.unwrap_or(0))
            }
            Ok(Answer::Pods(pods, at)) => {
                let pods: Vec<Pod> = pods.iter().map(|pod| Pod::clone(pod)).collect();
                let highest = pods.iter().filter_map(|pod| pod.revision.parse().ok()).max();
                let mut inherited = Rebuild::unbound(&pods);
                self.books.pods_listed(pods);
                if self.rebuild.is_first(epoch) {
                    inherited.extend(self.books.inherit_headroom());
                    inherited.extend(self.books.inherit_resizes());
                }
                self.rebuild.pods_listed(turn.now, epoch, inherited);
                (at, highest.unwrap_or(0))
            }
            Ok(Answer::Objects(all, at)) => {
                let objects = all.iter().map(|shown| shown.object.clone()).collect();
                self.books.objects_listed(objects);
                self.rebuild.objects_listed(epoch);
                let of = |shown: &Rc<Shown>| shown.object.revision.parse().ok();
                (at, all.iter().filter_map(of).max().unwrap_or(0))
            }
            Ok(Answer::Migrations(migrations, at)) => {
                self.books.migrations_listed(migrations, turn.now);
                (at, 0)
            }
            Ok(_) | Err(_) => return self.failed(turn, kind),
        };
        let stream = &mut self.streams[kind.at()];
        (stream.at, stream.highest, stream.failures) = (at, highest, 0);
        (stream.wants_list, stream.state) = (false, StreamState::Follows);
        stream.told.clear();
        turn.out.push(Out::CatchUp(kind));
    }

    pub(super) fn watches(
        &mut self,
        turn: &mut Turn<'_>,
        kind: Kind,
        number: u64,
        answer: Result<Answer, NoSuccess>,
    ) {
        let stream = &mut self.streams[kind.at()];
        if stream.number != number {
            return;
        }
        match answer {
            Ok(_) => {
                (stream.failures, stream.state) = (0, StreamState::Follows);
                turn.out.push(Out::CatchUp(kind));
            }
            Err(NoSuccess::Gone) => self.list_again(turn.now, kind),
            Err(_) => self.failed(turn, kind),
        }
    }

    fn failed(&mut self, turn: &mut Turn<'_>, kind: Kind) {
        let stream = &mut self.streams[kind.at()];
        stream.failures += 1;
        stream.wants_list |= stream.failures.is_multiple_of(LISTED_AFTER);
        let wait = Duration::from_millis(100 << stream.failures.min(4));
        stream.state = StreamState::Rests(turn.now.after(wait));
    }

    pub(super) fn audited(
        &mut self,
        turn: &mut Turn<'_>,
        kind: Kind,
        answer: Result<Answer, NoSuccess>,
    ) {
        let stream = &self.streams[kind.at()];
        let (books, highest) = (&self.books, stream.highest);
        let (at, looked) = match answer {
            Ok(_) if stream.wants_list => return,
            Ok(Answer::Pods(pods, at)) => {
                let objects = pods.iter().map(|it| (it.name.clone(), it.revision.clone()));
                let page = Page { objects: objects.collect(), all: Some(pods.len()) };
                self.audit.begin_pass();
                let known = |name: &VmName| books.pod_revision(name);
                (at, self.audit.look(page, books.count(), known).is_off())
            }
            Ok(Answer::Nodes(nodes, at)) => {
                let objects = nodes.iter().map(|it| (it.name.clone(), it.revision.clone()));
                let page = Page { objects: objects.collect(), all: Some(nodes.len()) };
                self.audit_of_nodes.begin_pass();
                let known = |name: &String| books.node_revision(name);
                (at, self.audit_of_nodes.look(page, books.nodes().count(), known).is_off())
            }
            Ok(Answer::Objects(all, at)) => {
                let of = |it: &Rc<Shown>| (it.object.name.clone(), it.object.revision.clone());
                let page = Page { objects: all.iter().map(of).collect(), all: Some(all.len()) };
                self.audit_of_objects.begin_pass();
                let known = |name: &VmName| books.object_revision(name);
                (at, self.audit_of_objects.look(page, books.objects(), known).is_off())
            }
            Ok(_) | Err(_) => return,
        };
        if at < highest || looked {
            turn.met.note_if("audits that found a lost event", at >= highest);
            turn.met.note_if("audits that found an API server that went back", at < highest);
            match kind {
                Kind::Nodes => self.audit_of_nodes.begin(),
                Kind::Pods => self.audit.begin(),
                Kind::Objects | Kind::Migrations => self.audit_of_objects.begin(),
            }
            self.list_again(turn.now, kind);
        }
    }
}

// === impl Kind ===

impl Kind {
    const fn at(self) -> usize {
        match self {
            Self::Nodes => 0,
            Self::Pods => 1,
            Self::Objects => 2,
            Self::Migrations => 3,
        }
    }
}
