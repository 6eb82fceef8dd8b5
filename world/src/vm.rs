//! One VM, with everything that belongs to it.

use crate::chance::Faults;
use crate::guest::{Guest, GuestSpec};
use crate::informant::{InformantRun, Lie};
use crate::laws::{self, Consent};
use crate::message;
use crate::process::Process;
use crate::sides::{self, Side};
use crate::world::stands::Stand;
use std::collections::BTreeSet;
use std::time::Duration;
use windlass_agent_core::{Action, Event, Order};
use windlass_protocol::status::SessionState;
use windlass_protocol::{
    AgentId, Bytes, Decision, InformantVersion, MilliCpu, Moment, PluginVersion, Resize, Resources,
    Versions, VmInfo,
};

/// One vCPU.
pub(crate) const CORE: MilliCpu = MilliCpu::from_cores(1);

/// What agents and informants of a VM speak with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speaks {
    /// Its agents.
    pub agent: Versions<InformantVersion>,
    /// Its informants, from the next start of one on.
    pub informant: Versions<InformantVersion>,
}

/// A VM.
#[derive(Debug)]
pub(crate) struct Vm {
    /// The number of its node.
    pub(crate) node: usize,
    pub(crate) info: VmInfo,
    pub(crate) speaks: Speaks,
    pub(crate) guest: Guest,
    /// By how many milliseconds the guest's wall clock is off.
    pub(crate) wall: i64,
    /// The versions in which its agents speak to the plugin.
    pub(crate) plugin_versions: Versions<PluginVersion>,
    /// The version in which the books last took something that one of them said.
    pub(crate) spoken: PluginVersion,
    /// The agent that does something, and what is its own.
    pub(crate) front: Side,
    /// A second agent.
    pub(crate) other: Option<Box<Side>>,
    /// Runs of agents that are gone with their monitors.
    pub(crate) ended: Vec<u64>,
    pub(crate) informant: Option<InformantRun>,
    pub(crate) informant_process: Process,
    /// What the informant makes of the truth.
    pub(crate) lie: Option<Lie>,
    /// Counts runs of agents and informants.
    pub(crate) epochs: u64,
    /// Runs up to this one ended with an earlier boot, and everything that they had begun.
    pub(crate) ended_with_boot: u64,
    /// What its informant keeps where it survives the informant, and not a reboot.
    pub(crate) stored: BTreeSet<u32>,
    /// For how long an agent that registered may act, as its informants keep it likewise.
    pub(crate) noted: Duration,
    /// When the guest last restarted.
    pub(crate) booted_at: Moment,
    /// What its guest had agreed to before that, which its agent still goes by.
    pub(crate) outdated: Vec<Consent>,
    /// vCPUs that the last `/upscale` allowed; until one is agreed away, all that are plugged.
    pub(crate) allowed: Option<MilliCpu>,
    /// The largest maximum that it ever had.
    pub(crate) most: Resources,
    /// What informants that are gone had agreed to.
    pub(crate) consents: Vec<Consent>,
    /// What was in use when it last agreed to less: more than that is the guest's doing.
    pub(crate) used_then: Bytes,
    /// How long its hypervisor leaves it in a state that is not the usual one.
    pub(crate) stand: Option<Stand>,
    /// When resizes were asked for in the last minute.
    pub(crate) resized: Vec<Moment>,
    /// The boot in which memory is moved step by step.
    pub(crate) moves_in: Option<u64>,
    /// When a size was last heeded that came late, and could not be told from a new one: what it
    /// un-parked, nobody knows before the next report.
    pub(crate) strayed_at: Moment,
    /// Un-parked by itself, or lied about: what it loses then is the guest's matter.
    pub(crate) unruly: bool,
    /// Since when somebody has taken its host's limit away or raised it, and its agent has not had the time to
    /// do something about that: what it has more is no doing of the agent's.
    pub(crate) loose_since: Option<Moment>,
    /// When somebody last did so.
    pub(crate) loosened_at: Moment,
    /// Since when it has no limit, while nothing keeps its agent from setting one.
    pub(crate) unlimited_since: Option<Moment>,
    /// It agreed to what it did not heed: until the next word that it does heed, vCPUs that it
    /// brings online are its own doing.
    pub(crate) lied: bool,
    /// How unkind the network is to it, where that differs from the rest.
    pub(crate) link: Option<Faults>,
    pub(crate) decisions: Vec<Decision>,
    /// Since when its figures are missing.
    pub(crate) muted_since: Option<Moment>,
    /// Since when memory goes that nobody agrees to, while nothing keeps its agent from calling
    /// that off.
    pub(crate) unagreed_since: Option<Moment>,
}

/// The monitor of a hypervisor: it serves one connection, and what is said on it in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Monitor {
    /// The run of the agent that it serves.
    pub(crate) serves: u64,
    /// It does not answer.
    pub(crate) deaf: bool,
    /// When the last thing that was said to it arrives.
    pub(crate) arrives: Moment,
    /// When the last thing that it says arrives.
    pub(crate) says: Moment,
    /// Which connection this is: what was said over one before is lost.
    pub(crate) connection: u64,
    /// What it has to say, while it does not.
    pub(crate) held: Vec<Event>,
}

// === impl Speaks ===

impl Default for Speaks {
    fn default() -> Self {
        Self { agent: InformantVersion::SPOKEN, informant: InformantVersion::SPOKEN }
    }
}

// === impl Vm ===

impl Vm {
    pub(crate) fn new(node: usize, info: VmInfo, spec: GuestSpec, now: Moment) -> Self {
        Self {
            node,
            most: info.bounds.max,
            guest: Guest::new(spec, now),
            wall: 0,
            plugin_versions: PluginVersion::SPOKEN,
            spoken: PluginVersion::default(),
            front: Side::new(sides::FIRST, Order::Follow, info.clone()),
            other: None,
            ended: Vec::new(),
            informant: None,
            informant_process: Process::default(),
            lie: None,
            epochs: 0,
            ended_with_boot: 0,
            stored: BTreeSet::new(),
            noted: Duration::ZERO,
            booted_at: Moment::default(),
            outdated: Vec::new(),
            strayed_at: Moment::default(),
            speaks: Speaks::default(),
            allowed: None,
            consents: Vec::new(),
            used_then: Bytes::ZERO,
            stand: None,
            resized: Vec::new(),
            moves_in: None,
            unruly: false,
            loose_since: None,
            loosened_at: Moment::default(),
            unlimited_since: None,
            lied: false,
            link: None,
            decisions: Vec::new(),
            info,
            muted_since: None,
            unagreed_since: None,
        }
    }

    /// What it has by the truth: law 1's figure.
    pub(crate) fn has(&self, trust_guest_parking: bool) -> Resources {
        let seen = self.guest.seen();
        let online = self.guest.online();
        let cpu = match (trust_guest_parking, self.allowed) {
            (true, Some(allowed)) => online.max(allowed).min(seen.plugged),
            (true, None) | (false, _) => seen.plugged,
        };
        let cpu = self.guest.limited(cpu);
        Resources { cpu, mem: seen.memory.upper() }
    }

    /// The same, as its agent counts it: where sizes have no number, parking is not trusted.
    pub(crate) fn counts(&self, trust_guest_parking: bool) -> Resources {
        let trusts = self.front.agent.as_ref().is_none_or(|agent| agent.scaler.trusts_parking());
        self.has(trust_guest_parking && trusts)
    }

    /// Whether its agent and its informant agree that the agent's session counts. Below v1.2 the
    /// agent may not know for a while that it does not.
    pub(crate) fn counts_session(&self) -> bool {
        let (Some(agent), Some(run)) = (&self.front.agent, &self.informant) else { return false };
        agent.scaler.session() == SessionState::Active && run.core.current() == agent.session
    }

    /// No more vCPUs than these come online without a word.
    pub(crate) fn allow_no_more(&mut self, count: MilliCpu) {
        self.allowed = Some(self.allowed.map_or(count, |allowed| allowed.min(count)));
    }

    /// vCPUs that are offline and that an informant has stored as parked: the next one keeps them.
    pub(crate) fn parked_for_good(&self) -> MilliCpu {
        let online = self.guest.machine().online;
        MilliCpu::from_cores(self.stored.difference(&online).count() as u64)
    }

    /// What was agreed to, by the informant of now or by one that is gone.
    pub(crate) fn consents(&self) -> &[Consent] {
        self.informant.as_ref().map_or(&self.consents, |run| &run.consents)
    }

    /// What somebody told its agent is heard.
    pub(crate) fn hears(&mut self, now: Moment, event: &Event) {
        if *event == Event::Reset {
            (self.front.restarted_unheard, self.front.restart_heard_at) = (false, now);
        }
        if let Event::Ordered(order) = event {
            self.front.order = *order;
        }
        if let Event::Told(info) = event {
            self.front.heard.clone_from(info);
        }
    }

    /// The guest takes back what it agreed to in this session. What it agreed to in another one stands: the call
    /// may be older than that.
    pub(crate) fn end_consents(&mut self, session: AgentId) {
        let stands = |consent: &Consent| consent.to != session;
        self.consents.retain(stands);
        self.outdated.retain(stands);
        if let Some(run) = &mut self.informant {
            run.consents.retain(stands);
        }
    }

    /// What is said to the monitor, and whether the guest has agreed to it.
    pub(crate) fn order_of(&self, now: Moment, action: Action) -> message::Order {
        let session = self.front.agent.as_ref().and_then(|agent| agent.session);
        let outdated: &[Consent] = if self.front.restarted_unheard { &self.outdated } else { &[] };
        let mut known = [self.consents(), outdated].into_iter();
        let agreed = matches!(action, Action::Resize(Resize::Memory(total))
            if known.any(|consents| laws::agreed(now, session, consents, total)));
        let (connection, unheard) = (self.front.monitor.connection, self.front.restarted_unheard);
        message::Order { action, sent: now, connection, agreed, unheard }
    }

    /// Whether the guest is asked to have less than it has, for no other reason than its figures.
    pub(crate) fn shrinks_by_figures(&self, now: Moment, action: Action) -> bool {
        let memory = self.guest.seen().memory;
        let clock = self.front.process.clock(now);
        let status = self.front.agent.as_ref().map(|agent| agent.scaler.status(clock));
        let reported = status.as_ref().and_then(|status| status.online);
        let seen = status.and_then(|status| status.seen);
        // What its guest brought online by itself since the last report, nobody knows.
        let online = reported.map_or(self.guest.online(), |count| count.min(self.guest.online()));
        // vCPUs for which the host leaves it no CPU are of no use to it.
        let online = online.min(self.guest.limited(online).round_up(CORE));
        let has = Resources { cpu: online, mem: memory.present() };
        let (has, size) = match action {
            Action::Downscale(_, _, size) => (has, size),
            // One that is missing is set again, whatever is known of the guest; and one that is higher than the one
            // that was seen takes nothing, whatever somebody has done to that since.
            Action::Resize(Resize::Limit(Some(limit)))
                if seen.is_some_and(|seen| seen.limit > Some(limit)) =>
            {
                let has = Resources { cpu: self.guest.limited(online), ..has };
                (has, Resources { cpu: limit, ..has })
            }
            Action::Look
            | Action::Resize(_)
            | Action::Measure
            | Action::AskPlugin(_)
            | Action::Register(_)
            | Action::CheckHealth(_)
            | Action::Upscale(..)
            | Action::Unregister(_) => return false,
        };
        // Somebody's limit is a bound, as far as the agent has seen it.
        let can = self.guest.capabilities();
        let can = seen.map_or(can, |seen| can.with(seen));
        let most = self.front.heard.bounds.max.min(can.max);
        let ordered = self.front.order != Order::Follow || !most.covers(has);
        let begun = memory.requested < memory.size;
        !ordered && !begun && !size.covers(has)
    }
}
