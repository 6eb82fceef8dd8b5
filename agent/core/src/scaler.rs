//! The scaling decision for one VM, as a value.
//!
//! A [`Scaler`] is told what happened ([`Scaler::observe`]), answers the guest's informant
//! ([`Scaler::call`]) and is asked what to do ([`Scaler::plan`]). It never waits, sends or
//! reads a clock; the shell in `windlass-agent` does, and reports back. `plan` depends on the
//! state and on `now` alone, so a plan that is lost is made again.
//!
//! ```text
//!   grow:    plugin permits ─► hypervisor plugs ─► it is seen ─► informant is told
//!   shrink:  informant consents (parks vCPUs) ─► hypervisor takes memory ─► seen ─► plugin told
//! ```
//!
//! These laws hold in every reachable state; `tests/laws.rs` looks for a counterexample.
//!
//! - **Permit before growth.** The VM never has more than the books say it may have.
//! - **Consent before shrinkage.** Its memory never goes below what its informant agreed to.
//! - **The world, not the wish.** What it has is what its driver last saw; the guest is told of
//!   memory only when it is there.
//! - **Missing is not zero.** What is not known never shrinks it.
//! - **Fail static.** When a peer is gone, nothing happens that it had to agree to, and all else
//!   goes on.
//! - **A kind world gets its goal.** Growth goes there at once, shrinking one compute unit at a
//!   time.
//!
//! A scaler is made of parts. Each owns its fields, and adds what it asks for to the plan:
//!
//! | part | knows | asks |
//! |---|---|---|
//! | `orders` | how the VM is described, and what a person ordered | |
//! | `signals` | the guest's figures, and whether they count | the guest's figures |
//! | `stabilizer` | what the figures called for before ([`windlass_scaling::stabilization`]) | |
//! | `hypervisor` | what it can do, whether its figures are fresh, what became of resizes | looks, resizes |
//! | `permit` | what the books hold at least | the plugin |
//! | `informant` | the session, and whether this agent is to run in it | the informant |
//! | `guest` | what the guest was told, agreed to, refused and called for | |
//! | `size` | what the VM has or may have, by what was seen, sent and reported | |
//!
//! `changes` says which parts hear of what happened. `vm` reads all parts at one moment, `plan` and
//! `status` say what follows, and `sizing` leads from the size to the goal. These words say what the agent may do:
//!
//! | word | means exactly | decides |
//! |---|---|---|
//! | *observes* | the VM's description says to watch it only | nothing is asked for, nothing is billed |
//! | *active* | the informant's last word in this session was to run | the guest may be spoken to about sizes |
//! | *leased* | active, and the lease of [`session`](crate::session) lasts | the VM is billed |
//! | *acts* | leased, and the hypervisor was seen within 3 s; or *alone*: there never was a session, no informant has spoken for 35 s, and the figures come from elsewhere | permits, resizes and sizes are asked for; only a call-off of memory that the agent has begun to take is sent without (`plan`) |
//! | *held* | a person, a move to another node or a VM that does not run keeps the size | the goal is what the VM has |
//! | *quiet* | no request and no resize of this agent can still take effect | `/suspend` is answered, a session is closed |
//! | *released* | a person let the VM go: it has its size, and no session | the shell lets the VM go |

mod changes;
pub(crate) mod charge;
#[cfg(test)]
mod examples;
mod guest;
mod hypervisor;
mod informant;
mod orders;
mod permit;
mod plan;
mod signals;
mod sizing;
mod status;
mod target;
mod telling;
mod vm;

use crate::backoff::Jitter;
use crate::event::{Action, Call, CallAnswer, Event};
use crate::journal::Journal;
use crate::resize_outcomes::Tally;
use crate::settings::Settings;
use crate::size_range::SizeRange;
use guest::Guest;
use hypervisor::Hypervisor;
use informant::Informant;
use orders::Orders;
use permit::Permit;
use signals::Signals;
use std::sync::Arc;
use target::Target;
use windlass_protocol::status::SessionState;
use windlass_protocol::{
    AgentId, Capabilities, Decision, InformantVersion, Moment, RunState, Sequence, VmInfo, VmName,
};
use windlass_scaling::{Sample, Stabilizer};

/// One VM.
#[derive(Clone, Debug)]
pub struct Scaler {
    settings: Settings,
    orders: Orders,
    signals: Signals,
    stabilizer: Stabilizer,
    size: SizeRange,
    hypervisor: Hypervisor,
    permit: Permit,
    informant: Informant,
    guest: Guest,
    /// Since when the VM is let go but for its limit.
    lifting_since: Option<Moment>,
    /// What the parts come to, computed with each change.
    target: Target,
    journal: Journal,
    jitter: Jitter,
}

// === impl Scaler ===

impl Scaler {
    /// A VM of which nothing is known but what it should be.
    pub fn new(info: impl Into<Arc<VmInfo>>, settings: Settings, now: Moment) -> Self {
        let info = info.into();
        let mut jitter = Jitter::new(settings.seed);
        let measure_at = now.after(jitter.within(settings.periods.metrics));
        let mut stabilizer = Stabilizer::default();
        stabilizer.keep(now);
        let mut scaler = Self {
            journal: Journal::new(info.name.clone()),
            orders: Orders::new(info),
            signals: Signals::new(measure_at),
            stabilizer,
            size: SizeRange::default(),
            hypervisor: Hypervisor::new(),
            permit: Permit::new(settings.plugin_versions),
            informant: Informant::new(&settings, now),
            guest: Guest::default(),
            lifting_since: None,
            target: Target { stabilized: None, goal: None, from: now, until: None },
            settings,
            jitter,
        };
        scaler.target = scaler.target(now);
        scaler
    }

    /// Takes note of what happened.
    pub fn observe(&mut self, now: Moment, event: Event) {
        let keeps_target = leaves_target_alone(&event) && self.target.holds_at(now);
        self.heard(now, event);
        if !keeps_target {
            self.decide(now);
        }
    }

    /// Answers a call of the informant.
    pub fn call(&mut self, now: Moment, call: Call) -> CallAnswer {
        let answer = self.called(now, call);
        self.decide(now);
        answer
    }

    /// Which VM this is.
    pub fn name(&self) -> &VmName {
        &self.orders.info().name
    }

    /// What the hypervisor can do with the VM; `None` before it was attached to.
    pub fn capabilities(&self) -> Option<Capabilities> {
        self.hypervisor.can().copied()
    }

    /// What the hypervisor last said of the VM; before it was seen, that it runs.
    pub fn run_state(&self) -> RunState {
        self.size.run_state()
    }

    /// Whether this agent may use more than what [the VM may have](Self::upper) by a permit that it has or
    /// asks for, or has yet to see what there is. If not, the books need hold no more than that.
    pub fn relies_on_a_permit(&self) -> bool {
        self.permit.is_relied_on()
    }

    /// Whether the plugin refused every version that is ours, and has taken none since.
    pub fn plugin_takes_no_version(&self) -> bool {
        self.permit.is_refused_in_every_version()
    }

    /// Whether the hypervisor was looked at since it was last asked for a size.
    pub fn is_settled(&self) -> bool {
        !self.size.is_open()
    }

    /// Whether the VM grew and shrank again and again in the last hour.
    pub fn is_flapping(&self, now: Moment) -> bool {
        self.flapping(now).is_some()
    }

    /// How the session with the informant stands.
    pub fn session(&self) -> SessionState {
        self.informant.session.status()
    }

    /// Whether the informant has this agent: to run, to wait, or as one that is told neither yet. It is not so from the moment that
    /// the agent takes its leave.
    pub fn has_session(&self) -> bool {
        self.informant.session.stands()
    }

    /// The session's id, and the last number that was said in it; from the first request on, also
    /// before that is answered.
    pub fn numbered(&self) -> Option<(AgentId, Sequence)> {
        let session = &self.informant.session;
        session.id().map(|id| (id, session.last_sequence()))
    }

    /// The version of the informant's protocol, in this session or the last.
    pub fn version(&self) -> InformantVersion {
        self.informant.session.version()
    }

    /// The port at which the guest's metrics are read, once its informant has said so.
    pub fn metrics_port(&self) -> Option<u16> {
        self.guest.metrics_port()
    }

    /// What was last read of the guest, as it was read.
    pub fn reading(&self) -> Option<&Sample> {
        self.signals.reading()
    }

    /// The same, unless it is stale: the load that the plugin is told.
    pub fn fresh_reading(&self, now: Moment) -> Option<&Sample> {
        self.signals.fresh_reading(now)
    }

    /// When the informant last said anything; at first, when the agent began.
    pub fn heard_at(&self) -> Moment {
        self.informant.session.heard_at()
    }

    /// Since when the informant is silent, not counting the time in which its guest stood still.
    pub fn silent_since(&self) -> Moment {
        self.heard_at().max(self.signals.ran_since().unwrap_or_default())
    }

    /// The decisions closed since the last call.
    pub fn drain_decisions(&mut self) -> Vec<Decision> {
        self.journal.drain()
    }

    /// What became of the resizes that were judged since the last call.
    pub fn drain_tally(&mut self) -> Tally {
        self.hypervisor.drain_tally()
    }

    /// The decision under way.
    pub fn open_decision(&self) -> Option<&Decision> {
        self.journal.open()
    }

    /// The target of the last change, unless time alone has made it another.
    fn target_at(&self, now: Moment) -> Target {
        if self.target.holds_at(now) { self.target } else { self.target(now) }
    }

    /// Something happened: remembers what the signals call for, computes the target, and writes it down.
    fn decide(&mut self, now: Moment) {
        let mut stabilizer = std::mem::take(&mut self.stabilizer);
        if let Some(inputs) = self.inputs(now) {
            stabilizer.note(now, &inputs);
        }
        self.stabilizer = stabilizer;
        let lets_go = self.lets_go() && self.size.is_limited_by_us();
        self.lifting_since = lets_go.then(|| self.lifting_since.unwrap_or(now));
        self.target = self.target(now);
        if let (Some(goal), Some(has)) = (self.target.goal, self.using()) {
            self.journal.keep(now, self.orders.info(), goal, has);
        }
    }
}

/// Whether an event changes nothing that a target is computed from.
fn leaves_target_alone(event: &Event) -> bool {
    matches!(
        event,
        Event::HostMemory(_)
            | Event::Sent(Action::Look | Action::Measure | Action::CheckHealth(_))
            | Event::Healthy
    )
}
