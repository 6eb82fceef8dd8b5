//! Requests for permits that arrive late, twice or out of order never free what an agent may be using.

#![expect(clippy::unwrap_used, reason = "tests")]

use proptest::collection::vec;
use proptest::prelude::*;
use std::time::Duration;
use windlass_plugin_core::{Ask, Books, VmRecord};
use windlass_protocol::timing::{LONGEST_ACT, REQUEST_IS_LATE};
use windlass_protocol::{Bytes, MilliCpu, Moment, Resources, VmName};

const START: Moment = Moment::from_millis(1_000_000);

proptest! {
    /// Laws 1 and 2: whatever the network does to the requests of an agent, the books cover what it may use, and
    /// never promise more than the room.
    #[test]
    fn a_late_request_frees_nothing_that_is_used(
        names_last in any::<bool>(),
        steps in vec(step(), 1..120),
    ) {
        let mut net = Net::new(names_last);
        for step in &steps {
            net.step(step);
            let (may_use, reserved) = (net.may_use(), net.reserved());
            prop_assert!(reserved.covers(may_use), "{step:?}: uses {may_use} of {reserved}");
            prop_assert!(!net.books.is_over());
        }
    }

    /// Law 8: once every request arrives at once, the books hold what the agent has before long.
    #[test]
    fn what_was_doubted_is_freed_in_a_kind_world(
        names_last in any::<bool>(),
        steps in vec(step(), 0..60),
    ) {
        let mut net = Net::new(names_last);
        for step in &steps {
            net.step(step);
        }
        net.flying.clear();
        for _ in 0..6 {
            net.now = net.now.after(Duration::from_secs(5));
            net.asks(1, true);
        }
        prop_assert_eq!(net.reserved(), cu(1));
    }
}

/// A request of an agent that had one unit arrives twice, after the agent was granted two. The books answer the first copy with one
/// unit, so the second copy names the last answer, which its agent never received.
#[test]
fn a_request_that_comes_late_and_twice_frees_nothing() {
    let mut net = Net::new(true);
    net.asks(1, true);
    let late = net.flying.last().unwrap().1;
    net.asks(2, true);
    for time in ["once", "twice"] {
        net.arrives(late);
        assert_eq!((net.may_use(), net.reserved()), (cu(2), cu(2)), "{time}");
    }
}

/// One agent, its requests under way, and the books that they go to.
struct Net {
    now: Moment,
    books: Books,
    names_last: bool,
    /// What the agent received last.
    permit: Option<Resources>,
    /// What it may use: its permit, or less once it said that it gave the rest back.
    uses: Resources,
    /// Requests that may still arrive, with the moment when they were sent.
    flying: Vec<(Moment, Ask)>,
}

#[derive(Clone, Debug)]
enum Step {
    /// The agent asks for this much. The request arrives or not, and so does the answer.
    Ask { units: u64, arrives: bool, is_heard: bool },
    /// A copy of an earlier request arrives; nobody hears the answer.
    Copy(usize),
    /// Time passes, in half seconds.
    Wait(u64),
}

impl Net {
    fn new(names_last: bool) -> Self {
        let mut books = Books::new(cu(9));
        for name in ["a", "other"] {
            let record = VmRecord { grain: cu(1), ..VmRecord::default() };
            books.presume(VmName::on_host(name), record, cu(1));
        }
        let mut net = Self {
            now: START,
            books,
            names_last,
            permit: None,
            uses: Resources::default(),
            flying: Vec::new(),
        };
        net.asks(1, true);
        net
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Ask { units, arrives: true, is_heard } => self.asks(*units, *is_heard),
            Step::Ask { units, arrives: false, .. } => {
                self.sends(*units);
            }
            Step::Copy(which) if !self.flying.is_empty() => {
                let (_, ask) = self.flying[which % self.flying.len()];
                self.arrives(ask);
            }
            Step::Copy(_) => {}
            Step::Wait(halves) => self.now = self.now.after(Duration::from_millis(halves * 500)),
        }
        let now = self.now;
        self.flying.retain(|(sent, _)| now.since(*sent) < REQUEST_IS_LATE);
        // What is free goes to another VM: nothing is reserved by chance.
        let other = Ask { last_permit: None, ..cu(9).into() };
        self.books.request(now, &VmName::on_host("other"), other).unwrap();
    }

    /// The agent asks and waits for the answer, or gives it up.
    fn asks(&mut self, units: u64, is_heard: bool) {
        let ask = self.sends(units);
        let permit = self.arrives(ask);
        if is_heard {
            (self.permit, self.uses) = (Some(permit), permit);
        } else {
            self.now = self.now.after(LONGEST_ACT);
        }
    }

    fn sends(&mut self, units: u64) -> Ask {
        let last_permit = self.permit.filter(|_| self.names_last);
        let ask = Ask { last_permit, ..cu(units).into() };
        self.uses = self.uses.min(cu(units));
        self.flying.push((self.now, ask));
        ask
    }

    fn arrives(&mut self, ask: Ask) -> Resources {
        self.books.request(self.now, &vm(), ask).unwrap().permit
    }

    fn may_use(&self) -> Resources {
        self.uses
    }

    fn reserved(&self) -> Resources {
        self.books.reserved_for(&vm()).unwrap()
    }
}

fn step() -> impl Strategy<Value = Step> {
    let heard = prop::bool::weighted(0.7);
    prop_oneof![
        4 => (1_u64..5, prop::bool::weighted(0.8), heard)
            .prop_map(|(units, arrives, is_heard)| Step::Ask { units, arrives, is_heard }),
        3 => (0_usize..8).prop_map(Step::Copy),
        2 => (1_u64..12).prop_map(Step::Wait),
    ]
}

fn vm() -> VmName {
    VmName::on_host("a")
}

fn cu(count: u64) -> Resources {
    Resources { cpu: MilliCpu::from_cores(count), mem: Bytes::from_gib(count) }
}
