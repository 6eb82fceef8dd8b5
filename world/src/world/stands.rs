//! Hypervisors that stop their guest for a while, or hand it over, and run it again.
//!
//! A guest that stands still does nothing, and its clock stands still with it: its informant
//! knows of no pause. What reaches it waits. Its monitor answers, and does what it is told.

use super::World;
use crate::laws::Law;
use crate::queue::Happening;
use crate::vms::Id;
use std::time::Duration;
use windlass_agent_core::{Action, Event};
use windlass_protocol::{Moment, RunState};

/// A guest goes on this long after its hypervisor began to run it again.
const GOES_ON: Duration = Duration::from_millis(1);

/// How long a hypervisor leaves a VM in a state that is not the usual one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stand {
    since: Moment,
    until: Moment,
}

// === impl World ===

impl World {
    /// The hypervisor has the VM in this state for so long, and then runs it; for no time, it
    /// runs it again if it does not.
    pub(super) fn stand(&mut self, who: Id, state: RunState, time: Duration) {
        let now = self.now;
        if time.is_zero() {
            let until = self.vms.get(who).and_then(|vm| vm.stand).map(|stand| stand.until);
            return until.into_iter().for_each(|until| self.runs_again(who, until));
        }
        self.close_stand(who);
        let Some(vm) = self.vms.get_mut(who) else { return };
        let until = now.after(time);
        vm.stand = Some(Stand { since: now, until });
        vm.guest.runs_as(now, state);
        self.queue.arrange(until, who, Happening::RunsAgain { until });
        self.monitors_notice(who, Event::Changed);
    }

    /// The hypervisor runs the VM again, if nothing else was done with it meanwhile.
    pub(super) fn runs_again(&mut self, who: Id, until: Moment) {
        if self.vms.get(who).and_then(|vm| vm.stand).is_some_and(|stand| stand.until == until) {
            self.close_stand(who);
            self.monitors_notice(who, Event::Changed);
        }
    }

    fn close_stand(&mut self, who: Id) {
        let now = self.now;
        let Some(vm) = self.vms.get_mut(who) else { return };
        let Some(stand) = vm.stand.take() else { return };
        if !vm.guest.state.executes() {
            vm.informant_process.stood_still(now.since(stand.since));
        }
        // Memory that was on its way out while nobody could call that off.
        vm.unagreed_since = None;
        vm.guest.runs_as(now, RunState::Running);
        // It may go on sooner than was meant.
        if now < stand.until {
            self.queue.hasten(who, stand.until.after(GOES_ON), now.after(GOES_ON));
        }
    }

    /// Until when the guest does nothing.
    pub(super) fn stands_until(&self, who: Id) -> Option<Moment> {
        let vm = self.vms.get(who)?;
        let stand = vm.stand.filter(|_| !vm.guest.state.executes())?;
        Some(stand.until.after(GOES_ON))
    }

    /// What the agent is told, or sees, tells it whether the VM may be resized.
    pub(super) fn learns_state(&mut self, who: Id, event: &Event) {
        let Some(vm) = self.vms.get_mut(who) else { return };
        let may_resize = vm.guest.state.may_resize();
        let Some(agent) = &mut vm.front.agent else { return };
        if let Event::Seen(seen) = event {
            agent.knows_stopped = !seen.state.may_resize();
        } else if *event == Event::Changed && !may_resize {
            agent.knows_stopped = true;
        }
    }

    /// An agent that knows better asks for no size.
    pub(super) fn left_alone(&mut self, who: Id, action: Action) {
        let sizes =
            matches!(action, Action::Resize(_) | Action::Downscale(..) | Action::Upscale(..));
        let agent = self.vms.get(who).and_then(|vm| vm.front.agent.as_ref());
        let knows = sizes && agent.is_some_and(|agent| agent.knows_stopped);
        let what = knows.then(|| format!("{action:?}, though it knows that QEMU does not run it"));
        self.broken(Law::StoppedIsLeftAlone, Some(who), what);
    }
}
