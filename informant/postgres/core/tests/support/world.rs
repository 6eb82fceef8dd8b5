//! A guest with a PostgreSQL that can be slow, stopped, and changed by somebody else.

use proptest::prelude::*;
use std::time::Duration;
use windlass_informant_core::Memory;
use windlass_informant_core::memory::margin;
use windlass_informant_postgres_core::size::size;
use windlass_informant_postgres_core::{Action, Event, FileCache, Problem, Proposal, Seen};
use windlass_protocol::{Bytes, Moment};

/// What may happen.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Wait(u64),
    /// An agent asks for this much, and comes back for the answer, or not.
    Ask(u64),
    HangUp,
    /// An agent says that the VM has this.
    Tell(u64),
    /// The VM is given so much, or what was agreed to is taken.
    Plug(u64),
    Take,
    Beside(u64),
    Fill(u64),
    /// The next action: its answer is lost, the more so the larger the number.
    Lose(u8),
    Stop,
    Start,
    /// Somebody writes a size into the file, and reloads.
    Operator(u64),
    /// The informant is replaced by another, which reads the note.
    Restart,
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (10_u64..1500).prop_map(Step::Wait),
        6 => (700_u64..6000).prop_map(Step::Ask),
        1 => Just(Step::HangUp),
        3 => (700_u64..6000).prop_map(Step::Tell),
        2 => (700_u64..6000).prop_map(Step::Plug),
        2 => Just(Step::Take),
        2 => (50_u64..600).prop_map(Step::Beside),
        2 => (0_u64..5000).prop_map(Step::Fill),
        3 => (0_u8..4).prop_map(Step::Lose),
        1 => Just(Step::Stop),
        2 => Just(Step::Start),
        1 => (0_u64..5000).prop_map(Step::Operator),
        1 => Just(Step::Restart),
    ]
}

pub(crate) struct World {
    pub(crate) now: Moment,
    pub(crate) cache: FileCache,
    pub(crate) in_effect: Bytes,
    pub(crate) in_file: Bytes,
    pub(crate) beside: Bytes,
    pub(crate) overhead: Bytes,
    total: Bytes,
    filled: Bytes,
    up: bool,
    lose: Option<u8>,
    /// An agent waits for what it asked.
    waiting: Option<Bytes>,
    /// What was agreed to, and not told otherwise since: an agent may take memory down to it.
    agreed: Option<Bytes>,
    /// Somebody else set the size, and we have not set it since.
    meddled: bool,
    note: Option<Bytes>,
    /// The first law that was broken, in words.
    pub(crate) broken: Option<String>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with_seed(7)
    }

    pub(crate) fn with_seed(seed: u64) -> Self {
        let mut world = Self {
            now: Moment::default().after(Duration::from_secs(1000)),
            cache: FileCache::new(seed, None),
            in_effect: mib(128),
            in_file: mib(128),
            beside: mib(300),
            overhead: mib(50),
            total: mib(4046),
            filled: mib(100),
            up: true,
            lose: None,
            waiting: None,
            agreed: None,
            meddled: true,
            note: None,
            broken: None,
        };
        world.sample();
        world
    }

    pub(crate) fn step(&mut self, step: &Step) {
        match *step {
            Step::Wait(ms) => self.run(ms),
            Step::Ask(asked) => self.ask(mib(asked)),
            Step::HangUp => self.waiting = None,
            Step::Tell(size) => {
                // An agent tells of what is there.
                let size = mib(size).min(self.total.saturating_add(self.overhead));
                (self.agreed, self.note) = (None, Some(size));
                self.cache.told(size);
            }
            Step::Plug(size) => {
                self.total = self.total.max(mib(size).saturating_sub(self.overhead));
            }
            Step::Take => {
                if let Some(agreed) = self.agreed {
                    self.total = self.total.min(agreed.saturating_sub(self.overhead));
                }
            }
            Step::Beside(beside) => self.beside = mib(beside),
            Step::Fill(filled) => self.filled = mib(filled),
            Step::Lose(how) => self.lose = Some(how),
            Step::Stop => self.up = false,
            Step::Start => (self.up, self.in_effect) = (true, self.in_file),
            Step::Operator(size) => {
                (self.in_effect, self.in_file, self.meddled) = (mib(size), mib(size), true);
            }
            Step::Restart => {
                (self.cache, self.waiting) = (FileCache::new(11, self.note), None);
            }
        }
        self.check();
    }

    /// No more faults, for long enough.
    pub(crate) fn be_kind(&mut self) {
        (self.lose, self.waiting) = (None, None);
        self.step(&Step::Start);
        self.run(12_000);
    }

    /// What the cache should be, by what is there and what was promised last.
    pub(crate) fn wanted(&self) -> Bytes {
        let has = self.total.saturating_add(self.overhead);
        size(self.note.map_or(has, |note| note.min(has)).saturating_sub(self.overhead))
    }

    pub(crate) fn run(&mut self, ms: u64) {
        for _ in 0..ms.div_ceil(50) {
            self.sample();
            // A plan that is made again says the same.
            assert_eq!(self.cache.plan(self.now), self.cache.plan(self.now));
            while self.turn() {
                self.check();
            }
            self.sample();
            self.settle();
            self.wait(50);
        }
    }

    pub(crate) fn wait(&mut self, ms: u64) {
        self.now = self.now.after(Duration::from_millis(ms));
    }

    /// Carries out what is planned; whether there was anything.
    pub(crate) fn turn(&mut self) -> bool {
        let Some(action) = self.cache.plan(self.now).action else { return false };
        self.cache.observe(self.now, Event::Sent(action));
        let event = self.serve(action);
        self.cache.observe(self.now, event);
        true
    }

    fn serve(&mut self, action: Action) -> Event {
        if !self.up {
            self.wait(1);
            return Event::Failed(Problem::Unreachable("connection refused".into()));
        }
        let lose = self.lose.take();
        if let Action::Set(size) = action {
            // Lost before it came, after the file was written, or after all was done.
            if lose != Some(0) {
                self.in_file = size;
            }
            if lose.is_none_or(|lose| lose > 1) {
                (self.in_effect, self.meddled) = (size, false);
            }
        }
        if lose.is_some() {
            self.wait(800);
            return Event::Failed(Problem::Slow);
        }
        self.wait(5);
        let used = Some(self.filled.min(self.in_effect));
        Event::Seen(Seen { limit: self.in_effect, most: None, used })
    }

    fn ask(&mut self, asked: Bytes) {
        self.sample();
        match self.cache.propose(self.now, asked) {
            Ok(Proposal::Shrink { target, .. }) => {
                self.cache.begin(self.now, asked, target);
                self.waiting = Some(asked);
            }
            Ok(Proposal::Untouched) | Err(_) => {
                self.cache.taken_back();
                self.waiting = None;
            }
        }
        self.check();
    }

    /// The agent that waits gets its answer, if there is one.
    fn settle(&mut self) {
        let Some(asked) = self.waiting else { return };
        match self.cache.outcome(self.now) {
            None => return,
            Some(Err(_)) => self.cache.taken_back(),
            Some(Ok(())) => {
                if self.cache.agreed(self.now) {
                    self.agree(asked);
                }
            }
        }
        self.waiting = None;
    }

    fn agree(&mut self, asked: Bytes) {
        let least = |before: Option<Bytes>| Some(before.map_or(asked, |before| before.min(asked)));
        (self.agreed, self.note) = (least(self.agreed), least(self.note));
        let usable = asked.saturating_sub(self.overhead);
        let room = usable.saturating_sub(self.in_effect.max(self.in_file));
        if self.beside.saturating_add(margin(room)) > room {
            let Self { beside, in_effect, in_file, .. } = self;
            self.broken = Some(format!(
                "agreed to {asked} with {beside} in use beside a cache of {in_effect}, {in_file} in its file"
            ));
        }
    }

    /// While an agreement stands, the cache is no larger than goes with it by our doing.
    fn check(&mut self) {
        let Some(agreed) = self.agreed.filter(|_| !self.meddled) else { return };
        let most = size(agreed.saturating_sub(self.overhead));
        if self.in_effect.max(self.in_file) > most && self.broken.is_none() {
            let Self { in_effect, in_file, .. } = self;
            self.broken = Some(format!(
                "agreed to {agreed}, and the cache is {in_effect}, {in_file} in its file"
            ));
        }
    }

    fn sample(&mut self) {
        let content = self.filled.min(self.in_effect);
        let used = self.beside.saturating_add(content);
        let available = self.total.saturating_sub(used);
        let overhead = Some(self.overhead);
        let memory = Memory { total: self.total, available, free: available, overhead };
        self.cache.observe(self.now, Event::Sampled(memory));
    }
}

pub(crate) fn mib(mib: u64) -> Bytes {
    Bytes::from_mib(mib)
}
