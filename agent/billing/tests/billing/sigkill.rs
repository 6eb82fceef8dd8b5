//! More than 10,000 events over more than 20 SIGKILLs and a receiver that answers as it likes.
//!
//! The process that is killed is this program again. It is told what VMs have line by line, and
//! answers when that is on disk; a line that it had not answered when it died is told again to the
//! next one. So the truth follows from the lines alone, whenever the kills came.

mod child;
mod truth;

use crate::receiver::{Fate, Fates, Receiver};
use child::Child;
use std::sync::mpsc::{Receiver as Inbox, channel};
use std::time::{Duration, Instant};
use truth::{Draw, Truth};
use windlass_testkit::Folder;

const EVENTS: usize = 10_000;
const KILLS: usize = 24;
const PATIENCE: Duration = Duration::from_secs(120);

/// How the next process dies.
#[derive(Clone, Copy, Debug)]
enum Death {
    /// So many microseconds after a line was written, answered or not.
    AfterALine(u64),
    /// While the receiver has a request and has not counted it.
    BeforeTheReceiverCounts,
    /// While the receiver has counted a request and has not answered.
    BeforeTheAnswer,
}

#[test]
fn what_is_received_is_what_was_used_over_sigkills_and_a_flaky_receiver() {
    let started = Instant::now();
    let mut draw = Draw(4711);
    let (hooks, hits) = channel();
    let receiver = Receiver::start(flaky(Draw(42), hooks));
    let folder = Folder::create().unwrap();
    let mut truth = Truth::new(Draw(7));
    let mut child = Child::start(&folder, &receiver.url());
    let (mut kills, mut lines) = (0, 0);
    while receiver.counted().events.len() < EVENTS || kills < KILLS {
        assert!(started.elapsed() < PATIENCE, "{kills} kills, {lines} lines");
        for _ in 0..draw.below(24) {
            child.tell(truth.next());
            child.answered();
            lines += 1;
        }
        let death = match draw.below(3) {
            0 => Death::BeforeTheReceiverCounts,
            1 => Death::BeforeTheAnswer,
            _ => Death::AfterALine(draw.below(3_000)),
        };
        let line = truth.next().to_owned();
        child.tell(&line);
        lines += 1;
        match death {
            Death::AfterALine(wait) => std::thread::sleep(Duration::from_micros(wait)),
            Death::BeforeTheReceiverCounts | Death::BeforeTheAnswer => {
                wait_for_request(&hits, death)
            }
        }
        child.kill();
        kills += 1;
        child = Child::start(&folder, &receiver.url());
        child.tell(&line);
        child.answered();
    }
    receiver.meet(Box::new(|| Fate::Answered));
    child.tell("finish");
    child.answered();
    child.kill();

    let counted = receiver.counted();
    let [events, repeated] = [counted.events.len() as u64, counted.repeated];
    assert_eq!(counted.wrong, Vec::<String>::new());
    assert!(counted.traces.iter().all(|trace| !trace.is_empty()), "each request has a trace id");
    println!("{events} events, {repeated} of them repeated, {kills} kills, {lines} looks");
    println!("{:?} in {:?}", counted.met, started.elapsed());
    let flaky = repeated > 0 && counted.met.len() > 6;
    drop(counted);
    assert_eq!(receiver.sums(), truth.sums());
    assert!(flaky, "nothing came twice, or the receiver answered always");
}

/// Not a test by itself: the process that is killed.
#[test]
fn the_process_that_is_killed() {
    child::run();
}

/// A receiver that refuses, cuts, is slow and says too little; and tells who waits for
/// it that a request is there.
fn flaky(mut draw: Draw, hook: std::sync::mpsc::Sender<Death>) -> Fates {
    Box::new(move || match draw.below(24) {
        0 => Fate::Refused(500),
        1 => Fate::Refused(429),
        2 => Fate::Refused(413),
        3 => Fate::CountedButRefused(503),
        4 => Fate::CountedButRefused(302),
        5 => Fate::CutBefore,
        6 => Fate::CutAfter,
        7 => Fate::Slow(20),
        8 if draw.below(4) == 0 => Fate::Slow(400),
        9 if draw.below(4) == 0 => Fate::Silent,
        10 => {
            let _ = hook.send(Death::BeforeTheReceiverCounts);
            Fate::Deaf
        }
        11 => {
            let _ = hook.send(Death::BeforeTheAnswer);
            Fate::Silent
        }
        _ => Fate::Answered,
    })
}

/// Waits for a request that meets such an end, but not for long: there may be none.
fn wait_for_request(hits: &Inbox<Death>, death: Death) {
    while hits.try_recv().is_ok() {}
    let until = Instant::now() + Duration::from_millis(100);
    while let Some(left) = until.checked_duration_since(Instant::now()) {
        match hits.recv_timeout(left) {
            Ok(hit) if std::mem::discriminant(&hit) == std::mem::discriminant(&death) => return,
            Ok(_) => {}
            Err(_) => return,
        }
    }
}
