//! What happens, in order: one cache, and a PostgreSQL that the test plays.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;
use windlass_informant_core::Memory;
use windlass_informant_postgres_core::{Action, Event, FileCache, Problem, Proposal, Seen};
use windlass_protocol::timing::ROOM_MADE_WITHIN;
use windlass_protocol::{Bytes, Moment};

/// What a cache of 3,034 MiB must shrink to before 2 GiB are agreed to.
const TARGET: Bytes = Bytes::from_mib(1234);

#[test]
fn a_size_is_set_at_the_start_whatever_is_there() {
    // What an earlier informant left in the file may come into effect at any time.
    let mut story = Story::start(None);
    assert_eq!(story.next(), Some(Action::Look));
    story.seen(3034);
    assert_eq!(story.next(), Some(Action::Set(mib(3034))));
    story.seen(3034);
    assert_eq!(story.next(), None);
}

#[test]
fn what_an_earlier_informant_agreed_to_holds() {
    let mut story = Story::start(Some(mib(2048)));
    assert_eq!(story.next(), Some(Action::Look));
    story.seen(1234);
    assert_eq!(story.next(), Some(Action::Set(TARGET)));
}

#[test]
fn it_is_agreed_to_once_postgres_says_that_it_is_small() {
    let mut story = Story::settled();
    story.ask(2048);
    assert_eq!(story.next(), Some(Action::Set(TARGET)));
    assert_eq!(story.outcome(), None);
    assert!(!story.cache.agreed(story.now), "PostgreSQL has not answered");
    story.ask(2048);
    story.seen(1234);
    story.wait(50);
    assert_eq!(story.next(), Some(Action::Look), "that answer belongs to the request before");
    story.seen(1234);
    assert_eq!(story.outcome(), Some(Ok(())));
    assert!(story.cache.agreed(story.now));
    assert_eq!(story.next(), None);
}

#[test]
fn a_size_that_is_not_in_effect_is_no_consent() {
    let mut story = Story::settled();
    story.ask(2048);
    story.next();
    story.seen(3034);
    let problem = Problem::NotInEffect { set: TARGET, found: mib(3034) };
    assert_eq!(story.outcome(), Some(Err(problem.clone())));
    assert_eq!(story.cache.problem(), Some(&problem));
}

#[test]
fn a_size_that_somebody_raised_meanwhile_is_no_consent() {
    let mut story = Story::settled();
    story.ask(2048);
    story.next();
    story.seen(1234);
    story.wait(1000);
    story.ask(2048);
    assert_eq!(story.next(), Some(Action::Look));
    story.seen(9000);
    assert_eq!(story.outcome(), None);
    assert_eq!(story.next(), Some(Action::Set(TARGET)));
}

#[test]
fn a_failure_in_the_middle_refuses_and_the_size_returns() {
    let mut story = Story::settled();
    story.ask(2048);
    story.next();
    story.failed(Problem::Slow);
    assert_eq!(story.outcome(), Some(Err(Problem::Slow)));
    assert!(!story.cache.agreed(story.now));
    // Nobody knows whether it happened: the old size is set, and read.
    story.wait(2500);
    assert_eq!(story.next(), Some(Action::Set(mib(3034))));
    story.seen(3034);
    assert_eq!((story.next(), story.cache.problem()), (None, None));
}

#[test]
fn a_consent_that_nobody_comes_back_for_is_taken_back() {
    let mut story = Story::settled();
    story.ask(2048);
    story.next();
    story.seen(1234);
    story.now = story.now.after(ROOM_MADE_WITHIN);
    assert!(matches!(story.outcome(), Some(Err(_))), "an agent does not wait for so long");
    story.wait(2500);
    assert_eq!(story.next(), Some(Action::Set(mib(3034))));
}

#[test]
fn a_growth_of_unknown_outcome_counts_as_grown() {
    let mut story = Story::settled();
    story.ask(2048);
    story.next();
    story.seen(1234);
    assert!(story.cache.agreed(story.now));
    story.cache.told(mib(4096));
    story.wait(2500);
    assert_eq!(story.next(), Some(Action::Set(mib(3034))));
    story.failed(Problem::Slow);
    story.wait(1500);
    // It is small now; what the file says may come into effect at any time.
    assert_eq!(story.next_after_look(1234), None);
    story.ask(2048);
    assert_eq!(story.next(), Some(Action::Set(TARGET)));
}

#[test]
fn it_grows_into_memory_that_is_there() {
    let mut story = Story::settled();
    story.memory(1998);
    story.wait(2500);
    assert_eq!(story.next(), Some(Action::Set(TARGET)));
    story.seen(1234);
    story.cache.told(mib(4096));
    story.wait(2500);
    assert_eq!(story.next_after_look(1234), None, "the memory is not there");
    story.memory(4046);
    assert_eq!(story.next(), Some(Action::Set(mib(3034))));
}

#[test]
fn an_agreement_allows_no_more_than_one_before_it() {
    let mut story = Story::settled();
    for asked in [2048, 3000] {
        story.ask(asked);
        story.next();
        story.seen(1234);
        assert!(story.cache.agreed(story.now));
        story.wait(2500);
        assert_eq!(story.next_after_look(1234), None);
    }
}

#[test]
fn what_the_cache_may_come_to_is_no_memory_of_the_workload() {
    let story = Story::settled();
    let all =
        Memory { total: mib(4046), available: mib(3546), free: mib(3400), overhead: Some(mib(50)) };
    // 300 MiB are in use beside the 200 MiB in the cache, which may grow to 3,034 MiB.
    let left = Memory { total: mib(1012), available: mib(712), free: mib(1012), ..all };
    assert_eq!(story.cache.workload(story.now, all), left);
}

#[test]
fn what_the_cache_holds_could_be_had() {
    let story = Story::settled();
    // 200 MiB are in the cache; the guest has no more than its total.
    for (available, shown) in [(3546, 3746), (3900, 4046)] {
        let (total, free, overhead) = (mib(4046), mib(3400), Some(mib(50)));
        let memory = Memory { total, available: mib(available), free, overhead };
        let had = Memory { available: mib(shown), ..memory };
        assert_eq!(story.cache.shown(story.now, memory), had);
    }
}

#[test]
fn a_plan_says_when_there_is_more_to_do() {
    let mut story = Story::settled();
    let more = |story: &mut Story| {
        let wake_at = story.cache.plan(story.now).wake_at.unwrap();
        story.now = wake_at;
        story.next()
    };
    assert_eq!(more(&mut story), Some(Action::Look), "what it has is looked at now and then");
    story.failed(Problem::Slow);
    assert_eq!(more(&mut story), Some(Action::Look), "and again after a failure");
    story.seen(3034);
    story.ask(2048);
    assert_eq!(story.next(), Some(Action::Set(TARGET)));
    let ends = story.now.after(ROOM_MADE_WITHIN);
    assert_eq!(story.cache.plan(story.now).wake_at, Some(ends), "the attempt ends");
}

#[test]
fn what_does_not_fit_beside_the_smaller_cache_is_refused() {
    let mut story = Story::settled();
    story.beside = 700;
    story.wait(50);
    let problem = story.cache.propose(story.now, mib(2048)).unwrap_err();
    assert!(problem.to_string().starts_with("700MiB in use beside a file cache of 1.21GiB"));
    // Without the cache's share it would fit.
    story.beside = 500;
    story.wait(50);
    assert!(story.cache.propose(story.now, mib(2048)).is_ok());
    assert!(story.cache.propose(story.now, mib(4096)) == Ok(Proposal::Untouched));
}

#[test]
fn what_came_into_use_while_it_was_made_smaller_is_seen() {
    let mut story = Story::settled();
    story.ask(2048);
    story.next();
    story.beside = 700;
    story.wait(100);
    story.seen(1234);
    assert_eq!(story.outcome(), None);
    story.now = story.now.after(ROOM_MADE_WITHIN);
    assert!(matches!(story.outcome(), Some(Err(_))));
}

/// A guest of 4 GiB with 300 MiB in use beside the cache, and 200 MiB in it.
struct Story {
    now: Moment,
    cache: FileCache,
    total: u64,
    beside: u64,
}

impl Story {
    fn start(noted: Option<Bytes>) -> Self {
        let now = Moment::default().after(Duration::from_secs(100));
        let mut story = Self { now, cache: FileCache::new(1, noted), total: 4046, beside: 300 };
        story.wait(0);
        story
    }

    /// At its size, and at rest.
    fn settled() -> Self {
        let mut story = Self::start(None);
        for _ in 0..2 {
            story.next();
            story.seen(3034);
        }
        story.wait(2500);
        assert_eq!(story.next_after_look(3034), None);
        story
    }

    fn wait(&mut self, ms: u64) {
        self.now = self.now.after(Duration::from_millis(ms));
        let available = mib(self.total - self.beside - 200);
        let overhead = Some(mib(50));
        let memory = Memory { total: mib(self.total), available, free: available, overhead };
        self.cache.observe(self.now, Event::Sampled(memory));
    }

    fn memory(&mut self, total: u64) {
        self.total = total;
        self.wait(0);
    }

    fn ask(&mut self, asked: u64) {
        self.wait(1);
        let proposal = self.cache.propose(self.now, mib(asked)).unwrap();
        let Proposal::Shrink { target, .. } = proposal else { panic!("{proposal:?}") };
        self.cache.begin(self.now, mib(asked), target);
    }

    fn outcome(&self) -> Option<Result<(), Problem>> {
        self.cache.outcome(self.now)
    }

    /// What is to be done, and is begun.
    fn next(&mut self) -> Option<Action> {
        let action = self.cache.plan(self.now).action?;
        self.cache.observe(self.now, Event::Sent(action));
        Some(action)
    }

    /// As [`Self::next`], once PostgreSQL was looked at as usual.
    fn next_after_look(&mut self, limit: u64) -> Option<Action> {
        assert_eq!(self.next(), Some(Action::Look));
        self.seen(limit);
        self.next()
    }

    fn seen(&mut self, limit: u64) {
        let used = Some(mib(200));
        self.cache.observe(self.now, Event::Seen(Seen { limit: mib(limit), most: None, used }));
    }

    fn failed(&mut self, problem: Problem) {
        self.cache.observe(self.now, Event::Failed(problem));
    }
}

fn mib(mib: u64) -> Bytes {
    Bytes::from_mib(mib)
}
