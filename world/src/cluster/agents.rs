//! The VMs' agents: when they ask, what reaches whom, and what they make of an answer.

use crate::cluster::agent::Agent;
use crate::cluster::events::vm_name;
use crate::cluster::laws::Law;
use crate::cluster::plugin::Asks;
use crate::cluster::{ClusterWorld, Due, Reaching, State};
use windlass_protocol::Resources;

// === impl ClusterWorld ===

impl ClusterWorld {
    /// A VM starts with what its container requests, and no less than its minimum.
    pub(super) fn vm_starts(&mut self, uid: &str) {
        let Some(name) = self.api.name_of(uid) else { return };
        let Some(pod) = self.api.pods.get(&name) else { return };
        let has_object = pod.vm.as_ref().is_some_and(|vm| vm.object != name);
        if has_object && self.boots(uid, &name) {
            return;
        }
        let Some(pod) = self.api.pods.get(&name) else { return };
        let (Some(vm), Some(node)) = (&pod.vm, &pod.node) else { return };
        let requests = vm.container.as_ref().map_or(pod.requests, |container| container.spec);
        let size = requests.max(vm.bounds.min);
        let size = Resources { mem: size.mem.round_up(vm.memory_slot), ..size };
        let rate = 985 + self.chance.below(31);
        let agent = Agent::of(name, node.clone(), (size, vm.bounds.min), rate);
        self.agents.insert(uid.to_owned(), agent);
        let wait = 200 + self.chance.below(2_000);
        self.wake_agent(uid, wait);
    }

    /// Changes the agents of VMs with this name.
    pub(super) fn agents_of(&mut self, name: usize, change: impl Fn(&mut Agent)) {
        let name = vm_name(name);
        let is_of = |agent: &Agent| agent.pod == name || agent.object.as_ref() == Some(&name);
        self.agents.values_mut().filter(|agent| is_of(agent)).for_each(change);
    }

    pub(super) fn agent_wakes(&mut self, uid: &str, alarm: u64) {
        let Some(agent) = self.agents.get_mut(uid).filter(|agent| agent.alarm == alarm) else {
            return;
        };
        if self.now < agent.silent_until {
            return self.wake_agent(uid, 1_000);
        }
        let (number, ask) = agent.ask(self.now);
        let (vm, node) = (agent.pod.clone(), agent.node.clone());
        let gives_up = agent.gives_up_after();
        let asks = Asks { uid: uid.to_owned(), vm, node, number, ask, begun: 0 };
        let wait = gives_up + self.chance.below(2_000);
        self.wake_agent(uid, wait);
        self.send_to_plugin(&asks);
    }

    /// A request of a VM's agent is sent to a plugin.
    pub(super) fn send_to_plugin(&mut self, asks: &Asks) {
        let ask = asks.ask;
        self.tell(|| format!("{} asks for {} ({:?})", asks.vm.name, ask.wanted, ask.last_permit));
        // A Service leads to the leader, most of the time.
        let leader = self.serving().next().map(|(nth, _)| nth);
        let other = usize::try_from(self.chance.below(self.plugins.len() as u64)).unwrap_or(0);
        let nth = leader.filter(|_| !self.chance.happens(10)).unwrap_or(other);
        let begun = self.plugins[nth].plugin.rebuild.begun();
        let asks = Asks { begun, ..asks.clone() };
        let copies = 1 + u64::from(self.chance.happens(self.network.agents_twice));
        self.met.note_if("requests of agents that came twice", copies > 1);
        for _ in 0..copies {
            match self.network.agent_way(&mut self.chance) {
                Some(there) => {
                    let (life, what) = (self.plugins[nth].life, Reaching::Asks(asks.clone()));
                    self.arrange(there, Due::Reaches { nth, life, what });
                }
                None => self.met.note("requests of agents that were lost"),
            }
        }
    }

    pub(super) fn answer_agent(&mut self, asks: Asks, by: (usize, u64), permit: Option<Resources>) {
        match self.network.agent_way(&mut self.chance) {
            Some(back) => self.arrange(back, Due::Permitted { asks, by, permit }),
            None => self.met.note("answers to agents that were lost"),
        }
    }

    pub(super) fn permitted(&mut self, asks: &Asks, by: (usize, u64), permit: Option<Resources>) {
        let (now, uid) = (self.now, asks.uid.as_str());
        if !self.runner_hears(asks, by, permit) {
            return;
        }
        let Some(agent) = self.agents.get_mut(uid) else { return };
        if !agent.hears(now, asks.number) {
            return self.met.note("answers that came too late");
        }
        let Some(permit) = permit else {
            self.met.note("requests that were refused in passing");
            if !self.runner_asks_after(uid, 1_000) {
                self.wake_agent_soon(uid, 1_000);
            }
            return;
        };
        let had = agent.size;
        if agent.object.is_some() {
            agent.permit = Some(permit);
        } else {
            agent.use_permit(permit);
        }
        let (is_short, has, name) =
            (!permit.covers(agent.goal), agent.size, agent.pod.name.clone());
        self.met.note_if("VMs that grew", has != had);
        self.tell(|| format!("{name} has {has}, permitted {permit} by plugin {}", by.0));
        self.judge.fence(now, by, "an answer");
        // An agent that names no last permit may be told less until a ceiling is recorded.
        let is_named = asks.ask.last_permit.is_some_and(|last| last.covers(had));
        // A VM whose pod an API server that went back does not know is about to end.
        let is_there = self.api.pod(&asks.vm, uid).is_some();
        if is_named && is_there && !permit.covers(had) && !self.judge.is_outside {
            let seen = format!("{name} has {had}, and is permitted {permit}");
            self.judge.say(now, Law::Covered, seen);
        }
        let about = if is_short { 1_500 } else { 4_000 };
        if !self.runner_asks_after(uid, about) {
            self.wake_agent_soon(uid, about);
        }
    }

    fn wake_agent_soon(&mut self, uid: &str, about: u64) {
        let wait = about / 2 + self.chance.below(about);
        self.wake_agent(uid, wait);
    }

    fn wake_agent(&mut self, uid: &str, after: u64) {
        if let Some(agent) = self.agents.get_mut(uid) {
            agent.alarm += 1;
            let (uid, alarm) = (uid.to_owned(), agent.alarm);
            self.arrange(after, Due::AgentWakes { uid, alarm });
        }
    }

    /// Whether each plugin runs.
    pub(super) fn all_run(&self) -> bool {
        self.plugins.iter().all(|process| process.state == State::Runs)
    }
}
