//! The two watches of an agent, and the VMs that they declare.

use super::{NodeAgent, Out, Runner, Task, Turn};
use crate::cluster::call::{Answer, Call, Kind, Told};
use crate::cluster::vm_objects::Shown;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use windlass_agent_core::declared::Step;
use windlass_protocol::pod::Pod;
use windlass_protocol::vm_object::{Machine, node_label};
use windlass_protocol::{Moment, NoSuccess, VmName};

/// After so many failures in a row pods are listed anew, and objects after one.
const PODS_AFTER: u32 = 5;
/// Events that may come again.
const MOST_TOLD: usize = 4;

/// One watch.
#[derive(Debug)]
pub(super) struct Stream {
    kind: Kind,
    state: State,
    wants_list: bool,
    at: u64,
    number: u64,
    failures: u32,
    told: VecDeque<Told>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing is asked before this moment.
    Rests(Moment),
    Asks,
    Follows,
}

// === impl NodeAgent ===

impl NodeAgent {
    pub(super) fn follow(&mut self, turn: &mut Turn<'_>) {
        for nth in 0..self.streams.len() {
            let stream = &mut self.streams[nth];
            let is_due = matches!(stream.state, State::Rests(until) if until <= turn.now);
            if !is_due {
                continue;
            }
            stream.state = State::Asks;
            let Stream { kind, at, number, wants_list, .. } = *stream;
            if wants_list {
                self.ask(turn, Call::List(kind), Task::List { kind, number });
            } else {
                self.ask(turn, Call::Watch { from: at }, Task::Watch { kind, number });
            }
        }
    }

    /// The connection of a watch is lost.
    pub(crate) fn cut(&mut self, clock: Moment, kind: Kind) {
        if let Some(stream) = self.stream(kind)
            && stream.state == State::Follows
        {
            stream.state = State::Rests(clock.after(Duration::from_millis(100)));
            // That a watch which failed goes on shows in nothing but what comes of it.
            stream.wants_list |= kind == Kind::Objects;
        }
    }

    /// All is listed anew.
    pub(crate) fn list_again(&mut self, clock: Moment, kind: Kind) {
        if let Some(stream) = self.stream(kind) {
            (stream.wants_list, stream.state) = (true, State::Rests(clock));
            stream.number += 1;
        }
    }

    /// Where a watch goes on that delivers now.
    pub(crate) fn follows(&self, kind: Kind) -> Option<u64> {
        let stream = self.streams.iter().find(|stream| stream.kind == kind)?;
        (stream.state == State::Follows).then_some(stream.at)
    }

    /// Whether pods and objects were listed, and are followed since.
    pub(super) fn is_listed(&self) -> bool {
        self.streams.iter().all(|stream| stream.state == State::Follows)
    }

    /// A watch has come so far.
    pub(crate) fn came_to(&mut self, kind: Kind, at: u64) {
        if let Some(stream) = self.stream(kind) {
            stream.at = at;
        }
    }

    /// A watch tells of an object, if that is one of those that it chooses.
    pub(crate) fn tell(&mut self, turn: &mut Turn<'_>, told: Told) {
        let Some(told) = self.chosen(told) else { return };
        if let Some(stream) = self.stream(told.kind()) {
            stream.told.push_back(told.clone());
            if stream.told.len() > MOST_TOLD {
                stream.told.pop_front();
            }
        }
        self.hear(turn, told);
    }

    /// A watch tells once more what it told last, in order, as one does that goes on from before.
    pub(crate) fn repeat(&mut self, turn: &mut Turn<'_>, kind: Kind, nth: usize) {
        let Some(stream) = self.stream(kind) else { return };
        let from = nth % stream.told.len().max(1);
        for told in stream.told.iter().skip(from).cloned().collect::<Vec<_>>() {
            turn.met.note("watch events that came again to the agent of a node");
            self.hear(turn, told);
        }
    }

    pub(super) fn listed(
        &mut self,
        turn: &mut Turn<'_>,
        kind: Kind,
        number: u64,
        answer: Result<Answer, NoSuccess>,
    ) {
        let known = |stream: &&mut Stream| stream.number == number;
        if self.stream(kind).as_ref().is_none_or(|stream| !known(stream)) {
            return;
        }
        let at = match answer {
            Ok(Answer::Pods(pods, at)) => {
                let here = pods.iter().filter(|pod| pod.node.as_deref() == Some(&*self.node));
                let here: Vec<Pod> = here.map(|pod| Pod::clone(pod)).collect();
                self.uids = here.iter().map(|pod| (pod.name.clone(), pod.uid.clone())).collect();
                let shown = &self.shown;
                let steps = self.declared.pods_listed(here.clone(), |name| machine(shown, name));
                let is_there = |pod: &VmName| {
                    let known = here.iter().find(|it| it.name == *pod);
                    let uid = self.runners.get(pod).map(|runner| runner.uid.as_str());
                    known.is_some_and(|it| Some(it.uid.as_str()) == uid && it.counts())
                };
                let there: Vec<VmName> =
                    self.runners.keys().filter(|pod| is_there(pod)).cloned().collect();
                self.carry_out(turn, steps, |pod| {
                    there.contains(pod).then(|| "a list has its pod".to_owned())
                });
                at
            }
            Ok(Answer::Objects(all, at)) => {
                let label = node_label(&self.node);
                let chosen = all.into_iter().filter(|it| it.label.as_ref() == Some(&label));
                let chosen: Vec<Rc<Shown>> = chosen.collect();
                self.shown =
                    chosen.iter().map(|it| (it.machine.name.clone(), Rc::clone(it))).collect();
                for shown in chosen {
                    self.object_seen(turn, &shown.machine);
                }
                at
            }
            Ok(_) | Err(_) => return self.failed(turn, kind),
        };
        if let Some(stream) = self.stream(kind) {
            (stream.at, stream.failures) = (at, 0);
            (stream.wants_list, stream.state) = (false, State::Follows);
            stream.told.clear();
        }
        turn.out.push(Out::CatchUp(kind));
    }

    pub(super) fn watches(
        &mut self,
        turn: &mut Turn<'_>,
        kind: Kind,
        number: u64,
        answer: Result<Answer, NoSuccess>,
    ) {
        let Some(stream) = self.stream(kind).filter(|stream| stream.number == number) else {
            return;
        };
        match answer {
            Ok(_) => {
                (stream.failures, stream.state) = (0, State::Follows);
                turn.out.push(Out::CatchUp(kind));
            }
            Err(NoSuccess::Gone) => self.list_again(turn.now, kind),
            Err(_) => self.failed(turn, kind),
        }
    }

    fn failed(&mut self, turn: &Turn<'_>, kind: Kind) {
        let Some(stream) = self.stream(kind) else { return };
        stream.failures += 1;
        let after = if kind == Kind::Objects { 1 } else { PODS_AFTER };
        stream.wants_list |= stream.failures.is_multiple_of(after);
        let wait = Duration::from_millis(100 << stream.failures.min(4));
        stream.state = State::Rests(turn.now.after(wait));
    }

    fn stream(&mut self, kind: Kind) -> Option<&mut Stream> {
        self.streams.iter_mut().find(|stream| stream.kind == kind)
    }

    /// What the watches of this node tell: one that an object leaves tells that the object is gone.
    fn chosen(&self, told: Told) -> Option<Told> {
        let label = node_label(&self.node);
        match told {
            Told::Object(shown) if shown.label.as_ref() == Some(&label) => {
                Some(Told::Object(shown))
            }
            Told::Object(shown) if shown.was.as_ref() == Some(&label) => {
                Some(Told::ObjectGone(shown))
            }
            Told::ObjectGone(shown) if shown.label.as_ref() == Some(&label) => {
                Some(Told::ObjectGone(shown))
            }
            Told::Pod(pod) if pod.node.as_ref() == Some(&self.node) => Some(Told::Pod(pod)),
            Told::PodGone(pod) if pod.node.as_ref() == Some(&self.node) => Some(Told::PodGone(pod)),
            Told::Object(_)
            | Told::ObjectGone(_)
            | Told::Pod(_)
            | Told::PodGone(_)
            | Told::Node(_)
            | Told::NodeGone(_)
            | Told::Migration(_)
            | Told::MigrationGone(_) => None,
        }
    }

    fn hear(&mut self, turn: &mut Turn<'_>, told: Told) {
        match told {
            Told::Pod(pod) => {
                self.uids.insert(pod.name.clone(), pod.uid.clone());
                let shown = &self.shown;
                let steps = self.declared.pod_seen(&pod, |name| machine(shown, name));
                let uid = self.runners.get(&pod.name).map(|runner| runner.uid.clone());
                let stays = pod.counts() && uid.as_ref() == Some(&pod.uid);
                self.carry_out(turn, steps, |_| stays.then(|| "its pod is there".to_owned()));
            }
            Told::PodGone(pod) => {
                let steps = self.declared.pod_gone(&pod.name, &pod.uid);
                let uid = self.runners.get(&pod.name).map(|runner| runner.uid.clone());
                let is_other = uid.as_ref() != Some(&pod.uid);
                self.carry_out(turn, steps, |_| is_other.then(|| "another pod is gone".to_owned()));
            }
            Told::Object(shown) => {
                self.shown.insert(shown.machine.name.clone(), Rc::clone(&shown));
                self.object_seen(turn, &shown.machine);
            }
            Told::ObjectGone(shown) => {
                let known = self.shown.get(&shown.machine.name);
                if known.is_some_and(|known| known.machine.uid == shown.machine.uid) {
                    self.shown.remove(&shown.machine.name);
                }
            }
            Told::Node(_) | Told::NodeGone(_) | Told::Migration(_) | Told::MigrationGone(_) => {}
        }
    }

    fn object_seen(&mut self, turn: &mut Turn<'_>, machine: &Machine) {
        let steps = self.declared.object_seen(machine);
        self.carry_out(turn, steps, |pod| {
            let runs = machine.pod.as_ref() == Some(&pod.name)
                && machine.phase.executes()
                && machine.is_enabled;
            runs.then(|| "its object says that it runs there".to_owned())
        });
    }

    /// `stays`: why a VM is to be managed on.
    fn carry_out(
        &mut self,
        turn: &mut Turn<'_>,
        steps: impl IntoIterator<Item = Step>,
        stays: impl Fn(&VmName) -> Option<String>,
    ) {
        for step in steps {
            match step {
                Step::Manage { vm, object } => {
                    let pod = vm.info.name.clone();
                    if self.runners.contains_key(&pod) {
                        continue;
                    }
                    self.sessions += 1;
                    let uid = self.uids.get(&pod).cloned().unwrap_or_default();
                    let runner = Runner::of(object, uid, self.sessions);
                    self.runners.insert(pod.clone(), runner);
                    turn.out.push(Out::Manages(pod));
                }
                Step::Forget(pod) => {
                    let Some(runner) = self.runners.remove(&pod) else { continue };
                    let (is_quiet, why) = (runner.is_quiet(), stays(&pod));
                    turn.out.push(Out::Forgets { pod, is_quiet, why });
                }
                Step::Complain { .. } => {}
            }
        }
    }
}

// === impl Stream ===

impl Stream {
    pub(super) const fn of(kind: Kind) -> Self {
        Self {
            kind,
            state: State::Rests(Moment::from_millis(0)),
            wants_list: true,
            at: 0,
            number: 0,
            failures: 0,
            told: VecDeque::new(),
        }
    }
}

fn machine(shown: &BTreeMap<VmName, Rc<Shown>>, name: &VmName) -> Option<Arc<Machine>> {
    shown.get(name).map(|shown| Arc::new(shown.machine.clone()))
}
