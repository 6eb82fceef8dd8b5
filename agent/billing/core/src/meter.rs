//! The meter of a node: what endpoints had, the windows that are open, the events that wait.
//!
//! Two steps, so that a crash between them harms nothing. Deciding ([`Meter::see`],
//! [`Meter::end`]) changes nothing and gives a [`Record`]; [`Meter::apply`] decides nothing. The
//! queue is bounded by [`Rule::queue`]: where it is full, windows stay open and become longer.
//! Endpoints are bounded by [`Rule::endpoints`]. Endpoints that are gone and have less than a whole second
//! to bill make room for new ones. If there is none to forget, new endpoints are not billed, and the log
//! says so.

use crate::usage::Usage;
use crate::{Allocation, Endpoint, Event, Metric, Origin, Record};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;
use windlass_protocol::{MilliCpu, Moment, Sequence, VmName};

/// What decisions follow. May differ from one start to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// A window ends when it is this long.
    pub window: Duration,
    /// The longest time between two looks that is billed.
    pub longest_slice: Duration,
    /// Events that may wait.
    pub queue: usize,
    /// Endpoints, and VMs, that are known at a time.
    pub endpoints: usize,
}

/// What comes of a look at the VMs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sight {
    /// To be written down and applied.
    pub record: Record,
    /// VMs for which there was no room; they are not billed.
    pub too_many: Vec<VmName>,
}

/// The meter of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Meter {
    origin: Origin,
    /// The number of the last event that was made.
    last: Sequence,
    /// When VMs were last looked at.
    looked: Option<Moment>,
    /// The VMs that were there.
    present: Vec<Allocation>,
    accounts: BTreeMap<Endpoint, Account>,
    queue: VecDeque<Event>,
}

/// What is known of one endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Account {
    usage: Usage,
    /// From the first to the last use that is in no event yet.
    window: Option<Window>,
    /// When it was last there.
    seen: Moment,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Window {
    start: Moment,
    stop: Moment,
}

// === impl Meter ===

impl Meter {
    /// One that has seen nothing.
    pub fn new(origin: Origin) -> Self {
        Self {
            origin,
            last: Sequence::ZERO,
            looked: None,
            present: Vec::new(),
            accounts: BTreeMap::new(),
            queue: VecDeque::new(),
        }
    }

    /// Where its keys come from.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// VMs that were there at the last look.
    pub fn present(&self) -> usize {
        self.present.len()
    }

    /// Events that wait for the receiver.
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// The number of the last event that was made.
    pub fn last(&self) -> Sequence {
        self.last
    }

    /// Until when what the receiver has not got was used, for the oldest that waits.
    pub fn oldest(&self) -> Option<Moment> {
        self.queue.front().map(|event| event.stop)
    }

    /// The first events that wait, no more than `most`, and none after `through`.
    pub fn batch(&self, most: usize, through: Sequence) -> Vec<Event> {
        let durable = self.queue.iter().take_while(|event| event.sequence <= through);
        durable.take(most).cloned().collect()
    }

    /// VMs were looked at. A VM that was there before too is billed for the time between, by the
    /// smaller of its two sizes: between looks the error is in its favour.
    pub fn see(&self, at: Moment, vms: Vec<Allocation>, rule: &Rule) -> Sight {
        let mut seen: BTreeMap<(VmName, Endpoint), MilliCpu> = BTreeMap::new();
        for Allocation { vm, endpoint, cpu } in vms {
            let known = seen.entry((vm, endpoint)).or_insert(cpu);
            *known = cpu.min(*known);
        }
        let wanted: BTreeSet<&Endpoint> = seen.keys().map(|(_, endpoint)| endpoint).collect();
        let forget = self.make_room(&wanted, rule);
        let mut room = (rule.endpoints + forget.len()).saturating_sub(self.accounts.len());
        let mut new = BTreeSet::new();
        let (mut kept, mut too_many) = (Vec::new(), Vec::new());
        for ((vm, endpoint), cpu) in &seen {
            let is_new = !self.accounts.contains_key(endpoint) && !new.contains(endpoint);
            if kept.len() >= rule.endpoints || (is_new && room == 0) {
                too_many.push(vm.clone());
                continue;
            }
            if is_new {
                room -= 1;
                new.insert(endpoint.clone());
            }
            kept.push(Allocation { vm: vm.clone(), endpoint: endpoint.clone(), cpu: *cpu });
        }
        let span = self.span(at, rule);
        Sight { record: Record::Seen { at, span, vms: kept, forget }, too_many }
    }

    /// The windows that end at `at`: those that are long enough, or all; of these, as many as the
    /// queue has room for, those that are open longest first.
    pub fn end(&self, at: Moment, all: bool, rule: &Rule) -> Option<Record> {
        let mut room = rule.queue.saturating_sub(self.queue.len());
        let mut due: Vec<(Moment, &Endpoint, &Account)> = self
            .accounts
            .iter()
            .filter_map(|(endpoint, account)| Some((account.window?.start, endpoint, account)))
            .filter(|(start, ..)| all || at.since(*start) >= rule.window)
            .collect();
        due.sort_by_key(|(start, endpoint, _)| (*start, *endpoint));
        let mut endpoints = Vec::new();
        for (_, endpoint, account) in due {
            match room.checked_sub(account.events()) {
                Some(left) => room = left,
                None => break,
            }
            endpoints.push(endpoint.clone());
        }
        (!endpoints.is_empty()).then_some(Record::Ended { endpoints })
    }

    /// How many windows should have ended and did not, for want of room.
    pub fn held(&self, at: Moment, rule: &Rule) -> usize {
        let windows = self.accounts.values().filter_map(|account| account.window);
        windows.filter(|window| at.since(window.start) >= rule.window).count()
    }

    /// What was written down has happened. What cannot be (a delivery of what was never made)
    /// changes nothing.
    pub fn apply(&mut self, record: &Record) {
        match record {
            Record::Seen { at, span, vms, forget } => self.seen(*at, *span, vms, forget),
            Record::Ended { endpoints } => endpoints.iter().for_each(|name| self.ended(name)),
            Record::Delivered { through } => {
                while self.queue.front().is_some_and(|event| event.sequence <= *through) {
                    self.queue.pop_front();
                }
            }
        }
    }

    fn seen(&mut self, at: Moment, span: u64, vms: &[Allocation], forget: &[Endpoint]) {
        for endpoint in forget {
            self.accounts.remove(endpoint);
        }
        let before: BTreeMap<(&VmName, &Endpoint), MilliCpu> =
            self.present.iter().map(|vm| ((&vm.vm, &vm.endpoint), vm.cpu)).collect();
        for Allocation { vm, endpoint, cpu } in vms {
            let account = self.accounts.entry(endpoint.clone()).or_insert(Account {
                usage: Usage::default(),
                window: None,
                seen: at,
            });
            account.seen = at;
            if let Some(earlier) = before.get(&(vm, endpoint))
                && span > 0
            {
                account.used(at, Duration::from_millis(span), *cpu.min(earlier));
            }
        }
        self.present = vms.to_vec();
        self.looked = Some(at);
    }

    fn ended(&mut self, endpoint: &Endpoint) {
        let Some(account) = self.accounts.get_mut(endpoint) else { return };
        let Some(Window { start, stop }) = account.window.take() else { return };
        for (metric, value) in [
            (Metric::Cpu, account.usage.cpu_seconds()),
            (Metric::Active, account.usage.active_seconds()),
        ] {
            if value > 0 {
                self.last = self.last.next();
                let (sequence, endpoint) = (self.last, endpoint.clone());
                self.queue.push_back(Event { sequence, endpoint, metric, start, stop, value });
            }
        }
        account.usage.take_whole();
    }

    /// The milliseconds since the last look, unless it is too long ago or in the future.
    fn span(&self, at: Moment, rule: &Rule) -> u64 {
        let span = self.looked.map_or(Duration::ZERO, |looked| at.since(looked));
        if span > rule.longest_slice {
            return 0;
        }
        u64::try_from(span.as_millis()).unwrap_or(0)
    }

    /// The endpoints that are forgotten to make room for new ones: those that are gone longest.
    fn make_room(&self, wanted: &BTreeSet<&Endpoint>, rule: &Rule) -> Vec<Endpoint> {
        let new = wanted.iter().filter(|name| !self.accounts.contains_key(name)).count();
        let excess = (self.accounts.len() + new).saturating_sub(rule.endpoints);
        if excess == 0 {
            return Vec::new();
        }
        let gone = self.accounts.iter().filter(|(name, _)| !wanted.contains(name));
        let mut gone: Vec<(Moment, &Endpoint)> = gone
            .filter(|(_, account)| account.usage.is_fraction())
            .map(|(name, account)| (account.seen, name))
            .collect();
        gone.sort();
        gone.into_iter().take(excess).map(|(_, name)| name.clone()).collect()
    }
}

// === impl Account ===

impl Account {
    /// This much was had for the time before `at`.
    fn used(&mut self, at: Moment, span: Duration, cpu: MilliCpu) {
        self.usage.add(cpu, span);
        let begin = Moment::default().after(at.since(Moment::default()).saturating_sub(span));
        let window = self.window.get_or_insert(Window { start: begin, stop: at });
        // A clock that was set back between two starts must not turn a window round.
        *window = Window { start: window.start.min(begin), stop: window.stop.max(at) };
    }

    /// The events that would be made of it.
    fn events(&self) -> usize {
        usize::from(self.usage.cpu_seconds() > 0) + usize::from(self.usage.active_seconds() > 0)
    }
}
