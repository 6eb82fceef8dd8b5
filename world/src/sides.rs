//! A VM with two agents: each a process, with a monitor and an address of its own.
//!
//! The one that does something is in front: the rest of the world knows of one agent only.

use crate::agent::Agent;
use crate::process::Process;
use crate::vm::{Monitor, Vm};
use std::mem::{replace, swap};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use windlass_agent_core::Order;
use windlass_protocol::{Moment, Resources, VmInfo};

/// Which way between an agent and the guest is cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// What the agent sends is lost.
    pub out: bool,
    /// What the guest sends is lost.
    pub into: bool,
}

/// An agent of a VM, and what is its own.
#[derive(Debug)]
pub(crate) struct Side {
    pub(crate) agent: Option<Agent>,
    /// Its runs, the last of which may be alive.
    pub(crate) runs: Vec<u64>,
    pub(crate) process: Process,
    /// Where it is called back.
    pub(crate) address: SocketAddr,
    /// Which way between it and the guest is cut.
    pub(crate) cut: Cut,
    /// What its host was last told that the VM may have.
    pub(crate) account: Option<Resources>,
    /// The last order of a person, as it heard that.
    pub(crate) order: Order,
    /// What the VM should be, as it heard that.
    pub(crate) heard: VmInfo,
    /// The guest restarted, and it has not heard of that.
    pub(crate) restarted_unheard: bool,
    /// When it last did: what it had said before may still be on its way.
    pub(crate) restart_heard_at: Moment,
    pub(crate) monitor: Monitor,
}

/// Where agents are called back, one for each.
const ADDRESSES: [SocketAddr; 2] = [address(2), address(3)];

const fn address(host: u8) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 2, host)), 10310)
}

/// Where the first agent is called back.
pub(crate) const FIRST: SocketAddr = ADDRESSES[0];

// === impl Side ===

impl Side {
    /// No agent yet.
    pub(crate) fn new(address: SocketAddr, order: Order, heard: VmInfo) -> Self {
        Self {
            agent: None,
            runs: Vec::new(),
            process: Process::default(),
            address,
            cut: Cut::default(),
            account: None,
            order,
            heard,
            restarted_unheard: false,
            restart_heard_at: Moment::default(),
            monitor: Monitor::default(),
        }
    }
}

// === impl Vm ===

impl Vm {
    /// The other agent comes to the front.
    pub(crate) fn turn_round(&mut self) {
        if let Some(other) = &mut self.other {
            swap(&mut self.front, other);
        }
    }

    /// Room for a second agent, which is in front.
    pub(crate) fn make_room(&mut self) {
        let address = if self.front.address == FIRST { ADDRESSES[1] } else { FIRST };
        let side = Side::new(address, self.front.order, self.info.clone());
        self.other = Some(Box::new(replace(&mut self.front, side)));
    }

    /// The agent of this run comes to the front, if it is there.
    pub(crate) fn front_of_run(&mut self, epoch: u64) {
        if self.other_run() == Some(epoch) {
            self.turn_round();
        }
    }

    /// The agent that is called at this address comes to the front, if one is.
    pub(crate) fn front_at(&mut self, at: SocketAddr) {
        if self.other.as_ref().is_some_and(|other| other.address == at) {
            self.turn_round();
        }
    }

    /// An agent that is not there comes to the front.
    pub(crate) fn front_ended(&mut self) {
        if self.front.agent.is_some()
            && self.other.as_ref().is_some_and(|other| other.agent.is_none())
        {
            self.turn_round();
        }
    }

    /// The other agent is gone, with its monitor; what it had sent may still arrive, from each of its runs.
    pub(crate) fn leave_one(&mut self) {
        self.ended.extend(self.other.take().into_iter().flat_map(|other| other.runs));
    }

    /// Whether this run of an agent is gone with its monitor.
    pub(crate) fn left_with_monitor(&self, epoch: u64) -> bool {
        self.ended.contains(&epoch)
    }

    /// Which way to the guest is cut for this run of an agent.
    pub(crate) fn cut_of_run(&self, epoch: u64) -> Cut {
        match &self.other {
            Some(other) if self.other_run() == Some(epoch) => other.cut,
            Some(_) | None => self.front.cut,
        }
    }

    /// Which way to the guest is cut for the agent at this address.
    pub(crate) fn cut_at(&self, at: SocketAddr) -> Cut {
        self.other
            .as_ref()
            .filter(|other| other.address == at)
            .map_or(self.front.cut, |other| other.cut)
    }

    /// Whether both of two agents may act, in versions from v1.2 on, and neither by a lie of their
    /// informant.
    pub(crate) fn both_act(&self, now: Moment) -> bool {
        let acts = |agent: &Option<Agent>, process: &Process| {
            let clock = process.clock(now);
            agent.as_ref().is_some_and(|agent| {
                // Before v1.2 a call that comes late may let two act.
                agent.scaler.version().checks_health()
                    && agent.scaler.acts(clock)
                    && !agent.lease.is_lie(agent.session, clock)
            })
        };
        let other = self.other.as_ref();
        acts(&self.front.agent, &self.front.process)
            && other.is_some_and(|other| acts(&other.agent, &other.process))
    }

    /// The run of the agent that is not in front.
    pub(crate) fn other_run(&self) -> Option<u64> {
        Some(self.other.as_ref()?.agent.as_ref()?.epoch)
    }

    /// Whether the agent in front is the one that began last.
    pub(crate) fn newest_in_front(&self) -> bool {
        let run = self.front.agent.as_ref().map(|agent| agent.epoch);
        run >= self.other_run()
    }
}

#[cfg(test)]
mod tests {
    use crate::script::{self, vm};
    use crate::{Faults, Step};
    use std::time::Duration;

    #[test]
    fn what_an_agent_sent_that_ended_before_it_left_keeps_no_monitor_from_the_other() {
        for (ends, newer) in [(Step::AgentDies(vm(0)), false), (Step::AgentRestarts(vm(0)), true)] {
            let mut world = script::world(1, 4, false, 1);
            world.run(Duration::from_secs(10));
            world.faults = Faults { delay: Duration::from_millis(500), ..Faults::default() };
            world.step(Step::SecondAgentStarts(vm(0)));
            world.step(ends.clone());
            world.step(Step::OneAgentEnds(vm(0), newer));
            world.faults = Faults::default();
            world.run(Duration::from_secs(30));
            let status = world.status(&vm(0)).expect("its agent is there");
            assert_eq!(status.silent_since, None, "{ends:?}: {:?}", status.waiting);
        }
    }
}
