//! The agent of a node: a process that finds the VMs of its node by two watches, as `windlass-agent-cluster` does.
//!
//! It decides nothing of its own: which VMs there are is [`Declared`], which objects are labelled too, and what an object says, what
//! a write tests and what an answer means is `windlass_drivers_neonvm_core`. What is here is what the shell does. A VM's
//! scaler is the one of `agent`, as far as it asks for permits; it acts while the VM's guest lets it, for as long as a lease lasts.

mod acting;
mod following;
mod labelling;

pub(crate) use acting::Runner;

use crate::cluster::agent::Agent;
use crate::cluster::call::{Answer, Call, Kind};
use crate::cluster::met::Met;
use crate::cluster::vm_objects::Shown;
use following::Stream;
use labelling::Missing;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;
use windlass_agent_core::declared::{Declared, Terms};
use windlass_drivers_neonvm_core::WRITTEN_WITHIN;
use windlass_protocol::timing::{API_SERVER_ANSWERS, API_SERVER_BEGINS};
use windlass_protocol::{Moment, NoSuccess, Resources, Usual, VmName};

/// An agent that is told to end ends after this, whatever is under way.
const LEAVES_WITHIN: Duration = Duration::from_secs(8);

/// What an agent does.
#[derive(Debug)]
pub(crate) enum Out {
    Call {
        id: u64,
        call: Call,
    },
    /// A watch goes on: what came meanwhile is told.
    CatchUp(Kind),
    /// It manages the VM of this pod from here on, or no more. `why`: what was told says nothing of the kind.
    Manages(VmName),
    Forgets {
        pod: VmName,
        is_quiet: bool,
        why: Option<String>,
    },
    /// It lets the guest of this pod go: nothing that it did can take effect any more.
    Releases(VmName),
    /// It asks the plugin for this VM.
    Asks(VmName, Resources),
    /// The process ends.
    Ends,
}

/// What an agent does things with.
pub(crate) struct Turn<'a> {
    /// By its own clock.
    pub(crate) now: Moment,
    /// In true time: requests for permits are timed by that.
    pub(crate) world: Moment,
    pub(crate) out: &'a mut Vec<Out>,
    pub(crate) met: &'a mut Met,
    /// The scalers of VMs, by the uid of their pods.
    pub(crate) scalers: &'a BTreeMap<String, Agent>,
}

/// A process.
#[derive(Debug)]
pub(crate) struct NodeAgent {
    pub(crate) node: String,
    declared: Declared,
    /// The objects that the watch shows.
    shown: BTreeMap<VmName, Rc<Shown>>,
    streams: [Stream; 2],
    /// The VMs that it manages, by their pods.
    pub(crate) runners: BTreeMap<VmName, Runner>,
    /// The uids of the pods of its node.
    uids: BTreeMap<VmName, String>,
    sessions: u64,
    missing: BTreeMap<(VmName, String), Missing>,
    asked: BTreeMap<u64, (Task, Moment)>,
    next: u64,
    /// Since when it ends.
    leaves: Option<Moment>,
}

/// What an answer of the API server is for.
#[derive(Debug)]
enum Task {
    List { kind: Kind, number: u64 },
    Watch { kind: Kind, number: u64 },
    Look { object: VmName, pod: String },
    Label,
    Write { pod: VmName, session: u64 },
    Settle { pod: VmName, session: u64 },
}

// === impl NodeAgent ===

impl NodeAgent {
    /// It starts, and knows of nothing.
    pub(crate) fn start(node: String) -> Self {
        let terms = Terms { usual: Usual::default(), advertise: None };
        Self {
            node,
            declared: Declared::new(terms),
            shown: BTreeMap::new(),
            streams: [Stream::of(Kind::Pods), Stream::of(Kind::Objects)],
            runners: BTreeMap::new(),
            uids: BTreeMap::new(),
            sessions: 0,
            missing: BTreeMap::new(),
            asked: BTreeMap::new(),
            next: 0,
            leaves: None,
        }
    }

    /// It is told to end.
    pub(crate) fn leave(&mut self, clock: Moment) {
        self.leaves.get_or_insert(clock);
    }

    /// It looks at what is to be done.
    pub(crate) fn tick(&mut self, turn: &mut Turn<'_>) {
        let late = self.asked.iter().filter(|(_, (_, until))| *until <= turn.now);
        for id in late.map(|(id, _)| *id).collect::<Vec<_>>() {
            if let Some((task, _)) = self.asked.remove(&id) {
                self.come(turn, task, Err(NoSuccess::Unknown));
            }
        }
        if let Some(since) = self.leaves {
            return self.take_leave(turn, since);
        }
        self.follow(turn);
        self.label(turn);
        self.act(turn);
    }

    /// The API server answers. An answer that comes too late is passed over.
    pub(crate) fn answered(&mut self, turn: &mut Turn<'_>, id: u64, answer: Answer) {
        let Some((task, until)) = self.asked.remove(&id) else { return };
        let answer = match &answer {
            _ if until <= turn.now => Err(NoSuccess::Unknown),
            Answer::Status(status) => Err(NoSuccess::of(*status)),
            Answer::Lease(_)
            | Answer::LeaseWritten(_)
            | Answer::Pod(_)
            | Answer::Done
            | Answer::Pods(..)
            | Answer::Nodes(..)
            | Answer::Object(_)
            | Answer::Objects(..)
            | Answer::Migrations(..)
            | Answer::Migration(_) => Ok(answer),
        };
        self.come(turn, task, answer);
    }

    fn come(&mut self, turn: &mut Turn<'_>, task: Task, answer: Result<Answer, NoSuccess>) {
        match task {
            Task::List { kind, number } => self.listed(turn, kind, number, answer),
            Task::Watch { kind, number } => self.watches(turn, kind, number, answer),
            Task::Look { object, pod } => self.looked(turn, &object, &pod, answer),
            Task::Label => {}
            Task::Write { pod, session } => {
                if let Some(runner) = self.runner(&pod, session) {
                    runner.written(turn, generation(answer));
                }
            }
            Task::Settle { pod, session } => {
                if let Some(runner) = self.runner(&pod, session) {
                    runner.settled(turn.met, generation(answer));
                }
            }
        }
    }

    fn runner(&mut self, pod: &VmName, session: u64) -> Option<&mut Runner> {
        self.runners.get_mut(pod).filter(|runner| runner.session == session)
    }

    fn ask(&mut self, turn: &mut Turn<'_>, call: Call, task: Task) {
        let within = match &task {
            Task::List { .. } => API_SERVER_BEGINS,
            Task::Write { .. } => WRITTEN_WITHIN,
            Task::Watch { .. } | Task::Look { .. } | Task::Label | Task::Settle { .. } => {
                API_SERVER_ANSWERS
            }
        };
        self.next += 1;
        self.asked.insert(self.next, (task, turn.now.after(within)));
        turn.out.push(Out::Call { id: self.next, call });
    }

    /// It takes leave of each guest once nothing that it did can take effect any more.
    fn take_leave(&mut self, turn: &mut Turn<'_>, since: Moment) {
        self.settle(turn);
        let is_over = turn.now.since(since) > LEAVES_WITHIN;
        let quiet = self.runners.iter().filter(|(_, runner)| runner.is_quiet());
        for pod in quiet.map(|(pod, _)| pod.clone()).collect::<Vec<_>>() {
            self.runners.remove(&pod);
            turn.met.note("agents of nodes that took leave of a guest");
            turn.out.push(Out::Releases(pod));
        }
        if self.runners.is_empty() || is_over {
            turn.out.push(Out::Ends);
        }
    }
}

/// The generation of an object that was answered.
fn generation(answer: Result<Answer, NoSuccess>) -> Result<i64, NoSuccess> {
    match answer {
        Ok(Answer::Object(Some(shown))) => Ok(shown.machine.generation),
        Ok(Answer::Object(None)) => Err(NoSuccess::Gone),
        Ok(_) => Err(NoSuccess::Unknown),
        Err(why) => Err(why),
    }
}
