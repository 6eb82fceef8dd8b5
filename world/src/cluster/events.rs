//! What happens to processes and requests, one event at a time, and what people do.

use crate::cluster::call::{Answer, Call, Kind};
use crate::cluster::laws::PAST;
use crate::cluster::nodes::{is_resized, node_name};
use crate::cluster::plugin::{Out, Plugin, Turn};
use crate::cluster::pods::{beside, pod, vm_pod};
use crate::cluster::steps::{Container, Step, cu};
use crate::cluster::{ClusterWorld, Due, Reaching, Request, State, TURN};
use windlass_protocol::pod::Pod;
use windlass_protocol::{Bounds, Bytes, Moment, Resources, VmName};

// === impl ClusterWorld ===

impl ClusterWorld {
    /// Somebody does this now.
    pub fn step(&mut self, step: Step) {
        if self.must_remember(&step) {
            return;
        }
        self.tell(|| format!("{step:?}"));
        match step {
            Step::Vm { name, units, odd, most, least, is_others, container } => {
                let bounds = Bounds { min: cu(least), max: cu(most.max(least)) };
                let name = vm_name(name);
                let mem = cu(units).mem.saturating_add(Bytes::from_mib(odd));
                let own = Resources { mem, ..cu(units) };
                let mut pod = vm_pod(&name, "windlass", own, bounds, container);
                if let Some(vm) = pod.vm.as_mut().filter(|_| is_others) {
                    vm.object.name = format!("object of {}", pod.name.name);
                }
                self.create(pod);
            }
            Step::VmPast { name, node, units } => self.create_past(&vm_name(name), node, units),
            Step::Other { name, node, units } => {
                let pod = pod(&other_name(name), cu(units), PAST);
                self.create(Pod { node: self.node_named(node), ..pod });
            }
            Step::Delete { is_vm, name, grace } => self.delete(&pod_name(is_vm, name), grace),
            Step::End { is_vm, name } => self.end_pod(&pod_name(is_vm, name)),
            Step::Goal { name, units } => {
                let pod = self.api.pods.get(&vm_name(name));
                let own = |pod: &Pod| pod.requests.saturating_sub(beside(pod));
                let most = pod.and_then(|pod| Some(pod.vm.as_ref()?.bounds.max.max(own(pod))));
                let goal = cu(units).min(most.unwrap_or_default());
                self.agents_of(name, |agent| agent.want(goal));
                self.vm_wants(&vm_name(name), cu(units));
            }
            Step::AgentRestarts(name) => self.agents_of(name, super::agent::Agent::restart),
            Step::AgentIsOld(name) => self.agents_of(name, |agent| {
                (agent.names_last, agent.was_old) = (false, true);
            }),
            Step::AgentIsSilent(name, time) => {
                let until = Moment::from_millis(self.now().millis() + time);
                self.agents_of(name, |agent| agent.silent_until = until);
            }
            Step::NoCeiling(name) => self.no_ceiling(&vm_name(name)),
            Step::Machine { name, units, most, least } => {
                self.make_vm(vm_name(name), units, (least, most));
            }
            Step::MachineGone(name) => self.delete_vm(&vm_name(name)),
            Step::MachinePod { name, grace } => {
                if let Some(pod) = self.pod_of_vm(&vm_name(name)) {
                    match grace {
                        Some(grace) => self.delete(&pod, grace),
                        None => self.end_pod(&pod),
                    }
                }
            }
            Step::Move { name, fails } => self.move_vm(&vm_name(name), fails),
            Step::Unlabel(name) => self.api.unlabel(&vm_name(name)),
            Step::AgentKill(node, time) => self.kill_node_agent(node, time),
            Step::AgentLeave(node) => self.node_agent_leaves(node),
            Step::AgentStop(node, time) => self.stop_node_agent(node, time),
            Step::AgentCut(node) => self.cut_node_agent(node),
            Step::Stop(nth, time) => self.stop(nth, time),
            Step::Kill(nth, time) => self.end_process(nth, time, "plugins that were killed"),
            Step::Leave(nth) => self.leave(nth),
            Step::CutOff(nth, time) => self.cut_off(nth, time),
            Step::CutPods(nth) => self.cut(nth, Kind::Pods),
            Step::CutNodes(nth) => self.cut(nth, Kind::Nodes),
            Step::Compact => self.api.compact(),
            Step::Down(time) => self.down_until = Moment::from_millis(self.now().millis() + time),
            Step::NodeSize { node, units } => self.node_size(node, units),
            Step::NodePool { node, sharing } => self.node_pool(node, sharing),
            Step::Cordon { node, time } => self.cordon(node, time),
            Step::NodeGone { node, units, time } => self.node_gone(node, units, time),
            Step::LeaseGone => self.lease_gone(),
            Step::Copy => self.api.copy(),
            Step::Back => self.go_back(),
            Step::Network(network) => self.network = network,
        }
        self.notice();
        self.check();
    }

    pub(super) fn happen(&mut self, due: Due) {
        match due {
            Due::Starts { nth } => self.start(nth),
            Due::GoesOn { nth, life } => self.go_on(nth, life),
            Due::Reaches { nth, life, what } => self.reach(nth, life, what),
            Due::Arrives(request) => self.arrive(*request),
            Due::NodeComes(node) => self.node_comes(*node),
            Due::AgentWakes { uid, alarm } => self.agent_wakes(&uid, alarm),
            Due::Permitted { asks, by, permit } => self.permitted(&asks, by, permit),
            Due::NodeReaches { nth, life, what } => self.node_reach(nth, life, what),
            Due::NodeArrives(request) => self.node_arrives(*request),
            Due::NodeStarts { nth } => self.start_node_agent(nth),
            Due::NodeGoesOn { nth, life } => self.node_agent_goes_on(nth, life),
            Due::Reconciles(uid) => self.reconcile(&uid),
            Due::Looks(node) => self.kubelet_looks(&node),
            Due::Reports(node) => self.kubelet_reports(&node),
            Due::Schedules { pod, uid } => self.schedule(&pod, uid),
            Due::Uncordons(node) => self.cordons(&node, false),
            Due::Ends { pod, uid } => self.stops(&pod, &uid),
            Due::Removes { pod, uid } => self.removes(&pod, &uid),
        }
    }

    /// Something reaches a plugin, which may be stopped or gone.
    fn reach(&mut self, nth: usize, life: u64, what: Reaching) {
        let process = &mut self.plugins[nth];
        if process.life != life || process.state == State::Dead {
            return;
        }
        if process.state == State::Stopped {
            process.inbox.push(what);
            return;
        }
        let is_cut_off = self.now < process.cut_off_until;
        match what {
            Reaching::Answer { .. } | Reaching::Watch { .. } if is_cut_off => {}
            Reaching::Watch { kind, upto } => self.watch(nth, kind, upto),
            Reaching::Turn => {
                self.with_plugin(nth, Plugin::tick);
                if self.plugins[nth].life == life {
                    self.arrange(TURN, Due::Reaches { nth, life, what: Reaching::Turn });
                }
            }
            Reaching::Answer { id, answer } => {
                self.with_plugin(nth, |plugin, turn| plugin.answered(turn, id, answer));
            }
            Reaching::Asks(asks) => self.with_plugin(nth, |plugin, turn| plugin.permit(turn, asks)),
            Reaching::Binds { pod, uid, node } => {
                self.with_plugin(nth, |plugin, turn| plugin.bind(turn, pod, uid, node));
            }
        }
    }

    /// Has a plugin do something, and sends what it sends.
    pub(super) fn with_plugin(&mut self, nth: usize, act: impl FnOnce(&mut Plugin, &mut Turn<'_>)) {
        let mut out = Vec::new();
        let process = &mut self.plugins[nth];
        let now = process.clock.at(self.now);
        act(&mut process.plugin, &mut Turn { now, out: &mut out, met: &mut self.met });
        let life = process.life;
        for out in out {
            match out {
                Out::Call { id, call } => self.send(nth, life, id, call),
                Out::CatchUp(kind) => self.watch_later(nth, kind, self.api.revision),
                Out::Answers { to, permit } => self.answer_agent(to, (nth, life), permit),
                Out::Ends => {
                    let down = 1_000 + self.chance.below(3_000);
                    return self.end_process(nth, down, "plugins that ended");
                }
            }
        }
    }

    fn send(&mut self, nth: usize, life: u64, id: u64, call: Call) {
        let fate = self.network.fate(&mut self.chance);
        if self.now < self.plugins[nth].cut_off_until {
            return self.met.note("requests of a plugin that was cut off");
        }
        if self.now < self.down_until {
            self.met.note("requests while the API server was down");
            return;
        }
        let Some(there) = fate.there else {
            return self.met.note("requests that were lost");
        };
        if let Some(status) = fate.refused {
            let what = Reaching::Answer { id, answer: Answer::Status(status) };
            return self.arrange(there, Due::Reaches { nth, life, what });
        }
        let (back, half_done, sent) = (fate.back, fate.half_done, self.now);
        let request = Request { nth, life, id, call, back, half_done, sent };
        self.arrange(there, Due::Arrives(Box::new(request)));
    }

    fn arrive(&mut self, request: Request) {
        let Request { nth, life, id, call, back, half_done, sent } = request;
        if self.now < self.down_until {
            return self.met.note("requests while the API server was down");
        }
        let before = self.api.revision;
        let answer = self.api.serve(&call);
        let has_changed = self.api.revision != before;
        let is_late = self.now.since(sent).as_secs() >= 3;
        if has_changed {
            self.tell(|| format!("plugin {nth}: {call:?}"));
        }
        if let Call::Bind { .. } = call {
            self.met.note(if has_changed { "bindings" } else { "bindings that were refused" });
            if has_changed {
                self.met.note_if("bindings that took effect late", is_late);
                self.judge.fence(self.now, (nth, life), "a binding");
            }
        }
        let is_ceiling = matches!(call, Call::Replace { .. });
        self.met.note_if("ceilings that were written late", has_changed && is_ceiling && is_late);
        let is_resize = matches!(call, Call::Resize(_));
        self.met.note_if("resizes that took effect", has_changed && is_resize);
        self.met.note_if("resizes that took effect late", has_changed && is_resize && is_late);
        self.met.note_if("resizes that came too late", !has_changed && is_resize);
        let answer = if half_done && has_changed {
            self.met.note("500 though it took effect");
            Answer::Status(500)
        } else {
            answer
        };
        match back {
            Some(back) => {
                let what = Reaching::Answer { id, answer };
                self.arrange(back, Due::Reaches { nth, life, what });
            }
            None => self.met.note_if("answers that were lost", has_changed),
        }
    }

    /// A watch tells what came up to a revision; an event may be lost, and an earlier one come again.
    fn watch(&mut self, nth: usize, kind: Kind, upto: u64) {
        let Some(at) = self.plugins[nth].plugin.follows(kind).filter(|at| *at < upto) else {
            return;
        };
        for (revision, told) in self.api.told(kind, at, upto) {
            let is_audited = match kind {
                Kind::Pods | Kind::Objects => true,
                Kind::Nodes | Kind::Migrations => false,
            };
            let is_lost = is_audited && self.chance.below(1000) < self.network.gaps;
            let clock = self.plugins[nth].clock.at(self.now);
            if is_lost {
                self.met.note("watch events that were lost");
            } else {
                self.plugins[nth].plugin.tell(clock, revision, told);
            }
            if self.chance.below(1000) < self.network.gaps {
                self.met.note("watch events that came again");
                let drawn = usize::try_from(self.chance.below(40)).unwrap_or(0);
                self.plugins[nth].plugin.repeat(clock, kind, drawn);
            }
        }
        self.plugins[nth].plugin.came_to(kind, upto);
        self.with_plugin(nth, Plugin::end_waits);
    }

    fn stop(&mut self, nth: usize, time: u64) {
        let process = &mut self.plugins[nth];
        if process.state == State::Runs {
            process.state = State::Stopped;
            let life = process.life;
            self.met.note("plugins that were stopped");
            self.arrange(time, Due::GoesOn { nth, life });
        }
    }

    /// A plugin goes on: what has come meanwhile is read in any order.
    fn go_on(&mut self, nth: usize, life: u64) {
        let process = &mut self.plugins[nth];
        if process.life != life || process.state != State::Stopped {
            return;
        }
        process.state = State::Runs;
        let inbox = std::mem::take(&mut process.inbox);
        for what in inbox {
            let wait = self.chance.below(50);
            self.arrange(wait, Due::Reaches { nth, life, what });
        }
    }

    fn leave(&mut self, nth: usize) {
        if self.plugins[nth].state == State::Runs {
            self.met.note("plugins that were told to end");
            self.with_plugin(nth, |plugin, turn| plugin.leave(turn.now));
        }
    }

    /// A process is gone, and another starts after this many milliseconds.
    fn end_process(&mut self, nth: usize, after: u64, how: &'static str) {
        let process = &mut self.plugins[nth];
        if process.state == State::Dead {
            return;
        }
        process.state = State::Dead;
        process.inbox.clear();
        self.met.note(how);
        if self.last == Some(nth) {
            let process = &self.plugins[nth];
            self.lost = Some((process.plugin.books.clone(), process.clock));
            self.last = None;
        }
        self.tell(|| format!("plugin {nth} is gone"));
        self.arrange(after.max(1), Due::Starts { nth });
    }

    fn start(&mut self, nth: usize) {
        let process = &mut self.plugins[nth];
        process.life += 1;
        let life = process.life;
        process.state = State::Runs;
        let identity = format!("p{nth}.{life}");
        process.plugin = Plugin::start(identity, self.pools.clone());
        self.arrange(1, Due::Reaches { nth, life, what: Reaching::Turn });
    }

    fn cut_off(&mut self, nth: usize, time: u64) {
        self.plugins[nth].cut_off_until = Moment::from_millis(self.now.millis() + time);
        self.met.note("plugins that were cut off");
        Kind::ALL.into_iter().for_each(|kind| self.cut(nth, kind));
    }

    fn cut(&mut self, nth: usize, kind: Kind) {
        let process = &mut self.plugins[nth];
        let clock = process.clock.at(self.now);
        process.plugin.cut(clock, kind);
        self.met.note("watches that broke");
    }

    /// A VM pod is bound past the plugin. Where pods are resized, none follows another of its name that way.
    fn create_past(&mut self, name: &VmName, node: usize, units: u64) {
        let node = self.node_named(node);
        let of_node = node.as_ref().and_then(|node| self.api.nodes.get(node));
        if of_node.is_some_and(|node| is_resized(node)) && self.api.has_had(name) {
            return;
        }
        let bounds = Bounds { min: cu(1), max: cu(units + 1) };
        let pod = vm_pod(name, PAST, cu(units), bounds, Container::default());
        self.create(Pod { node, ..pod });
    }

    pub(super) fn create(&mut self, pod: Pod) {
        let (name, is_past) = (pod.name.clone(), pod.node.is_some());
        if self.api.create(pod) && !is_past {
            let uid = self.api.pods[&name].uid.clone();
            let wait = 1 + self.chance.below(100);
            self.arrange(wait, Due::Schedules { pod: name, uid });
        }
    }

    fn node_named(&self, nth: usize) -> Option<String> {
        Some(node_name(nth % self.api.nodes.len().max(1)))
    }
}

pub(super) fn pod_name(is_vm: bool, name: usize) -> VmName {
    if is_vm { vm_name(name) } else { other_name(name) }
}

pub(super) fn vm_name(name: usize) -> VmName {
    VmName::on_host(format!("vm{name}"))
}

fn other_name(name: usize) -> VmName {
    VmName::on_host(format!("other{name}"))
}
