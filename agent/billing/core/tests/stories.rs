//! What is billed for one order of events each.
#![expect(clippy::unwrap_used, reason = "tests")]

use expect_test::{Expect, expect};
use std::time::Duration;
use windlass_agent_billing_core::{
    Allocation, Endpoint, Meter, Names, Origin, Record, Rule, Source, Usages,
};
use windlass_protocol::{MilliCpu, Moment, Sequence, VmName};

/// 2023-07-12T10:00:00Z.
const TEN: u64 = 1_689_156_000_000;

/// A meter that is looked at from time to time, and what it says to the receiver.
struct Story {
    meter: Meter,
    rule: Rule,
    told: String,
}

// === impl Story ===

impl Story {
    /// Windows of 24 s, and room for ten events.
    fn begin() -> Self {
        let source = Source::try_from("node-1".to_owned()).unwrap();
        let rule = Rule {
            window: Duration::from_secs(24),
            longest_slice: Duration::from_secs(300),
            queue: 10,
            endpoints: 3,
        };
        let meter = Meter::new(Origin { source, since: Moment::from_millis(TEN) });
        Self { meter, rule, told: String::new() }
    }

    /// So many seconds after ten, these VMs have so much.
    fn look(&mut self, seconds: f64, vms: &[(&str, u64)]) {
        let at =
            Moment::default().after(Duration::from_millis(TEN) + Duration::from_secs_f64(seconds));
        let vms = vms.iter().map(|(vm, cpu)| Allocation {
            vm: VmName::on_host(*vm),
            endpoint: Endpoint::try_from(format!("ep-{vm}")).unwrap(),
            cpu: MilliCpu::from_milli(*cpu),
        });
        let sight = self.meter.see(at, vms.collect(), &self.rule);
        for vm in sight.too_many {
            self.told += &format!("{seconds} no room for {vm}\n");
        }
        self.meter.apply(&sight.record);
        if let Some(ended) = self.meter.end(at, false, &self.rule) {
            self.meter.apply(&ended);
        }
    }

    /// So many events are sent, and answered.
    fn send(&mut self, most: usize) {
        let batch = self.meter.batch(most, self.meter.last());
        for event in &batch {
            let key = event.key(self.meter.origin());
            let time = |at: Moment| at.since(Moment::from_millis(TEN)).as_secs_f64();
            let (start, stop) = (time(event.start), time(event.stop));
            let what = format!("{:?} {}", event.metric, event.value);
            self.told += &format!("{start}-{stop} {} {what} {key}\n", event.endpoint);
        }
        let through = batch.last().map_or(Sequence::ZERO, |event| event.sequence);
        self.meter.apply(&Record::Delivered { through });
    }

    fn check(self, expected: &Expect) {
        expected.assert_eq(&self.told);
    }
}

#[test]
fn the_smaller_of_two_sizes_counts_for_the_time_between() {
    let mut story = Story::begin();
    for (seconds, cpu) in [(0.0, 1_000), (4.0, 2_000), (8.0, 2_000), (12.0, 500), (24.0, 500)] {
        story.look(seconds, &[("a", cpu)]);
    }
    // 4 × 1 + 4 × 2 + 4 × 0.5 + 12 × 0.5
    story.send(10);
    story.check(&expect![[r#"
        0-24 ep-a Cpu 20 2023-07-12T10:00:24Z-node-1-189498b1900-1
        0-24 ep-a Active 24 2023-07-12T10:00:24Z-node-1-189498b1900-2
    "#]]);
}

#[test]
fn a_vm_that_comes_or_goes_between_two_looks_is_not_billed_for_that_time() {
    let mut story = Story::begin();
    story.look(0.0, &[]);
    story.look(4.0, &[("a", 1_000)]);
    story.look(8.0, &[("a", 1_000)]);
    story.look(12.0, &[]);
    story.look(16.0, &[("a", 1_000)]);
    story.look(30.5, &[("a", 1_000)]);
    story.send(10);
    story.check(&expect![[r#"
        4-30.5 ep-a Cpu 18 2023-07-12T10:00:30.5Z-node-1-189498b1900-1
        4-30.5 ep-a Active 18 2023-07-12T10:00:30.5Z-node-1-189498b1900-2
    "#]]);
}

#[test]
fn a_fraction_is_in_the_next_event() {
    let mut story = Story::begin();
    for turn in 0..=8 {
        story.look(f64::from(turn) * 24.3, &[("a", 250)]);
        story.send(10);
    }
    story.check(&expect![[r#"
        0-24.3 ep-a Cpu 6 2023-07-12T10:00:24.3Z-node-1-189498b1900-1
        0-24.3 ep-a Active 24 2023-07-12T10:00:24.3Z-node-1-189498b1900-2
        24.3-48.6 ep-a Cpu 6 2023-07-12T10:00:48.6Z-node-1-189498b1900-3
        24.3-48.6 ep-a Active 24 2023-07-12T10:00:48.6Z-node-1-189498b1900-4
        48.6-72.9 ep-a Cpu 6 2023-07-12T10:01:12.9Z-node-1-189498b1900-5
        48.6-72.9 ep-a Active 24 2023-07-12T10:01:12.9Z-node-1-189498b1900-6
        72.9-97.2 ep-a Cpu 6 2023-07-12T10:01:37.2Z-node-1-189498b1900-7
        72.9-97.2 ep-a Active 25 2023-07-12T10:01:37.2Z-node-1-189498b1900-8
        97.2-121.5 ep-a Cpu 6 2023-07-12T10:02:01.5Z-node-1-189498b1900-9
        97.2-121.5 ep-a Active 24 2023-07-12T10:02:01.5Z-node-1-189498b1900-10
        121.5-145.8 ep-a Cpu 6 2023-07-12T10:02:25.8Z-node-1-189498b1900-11
        121.5-145.8 ep-a Active 24 2023-07-12T10:02:25.8Z-node-1-189498b1900-12
        145.8-170.1 ep-a Cpu 6 2023-07-12T10:02:50.1Z-node-1-189498b1900-13
        145.8-170.1 ep-a Active 25 2023-07-12T10:02:50.1Z-node-1-189498b1900-14
        170.1-194.4 ep-a Cpu 6 2023-07-12T10:03:14.4Z-node-1-189498b1900-15
        170.1-194.4 ep-a Active 24 2023-07-12T10:03:14.4Z-node-1-189498b1900-16
    "#]]);
}

#[test]
fn the_oldest_is_what_was_not_delivered_for_longest() {
    let mut story = Story::begin();
    let seconds = |at: Moment| at.since(Moment::from_millis(TEN)).as_secs();
    let mut oldest = Vec::new();
    for turn in 0..=3 {
        story.look(f64::from(turn) * 24.0, &[("a", 250)]);
        oldest.push(story.meter.oldest().map(seconds));
    }
    // Two events a window.
    for _ in 0..3 {
        story.send(2);
        oldest.push(story.meter.oldest().map(seconds));
    }
    assert_eq!(oldest, [None, Some(24), Some(24), Some(24), Some(48), Some(72), None]);
}

#[test]
fn where_the_queue_is_full_windows_become_longer() {
    let mut story = Story::begin();
    story.rule.queue = 2;
    for turn in 0..=4 {
        story.look(f64::from(turn) * 24.0, &[("a", 1_000), ("b", 2_000)]);
    }
    let held = |story: &Story, seconds| story.meter.held(at(seconds), &story.rule);
    assert_eq!((story.meter.present(), held(&story, 47), held(&story, 48)), (2, 1, 2));
    story.send(10);
    story.look(100.0, &[("a", 1_000), ("b", 2_000)]);
    story.send(10);
    story.look(124.0, &[("a", 1_000), ("b", 2_000)]);
    story.send(10);
    story.check(&expect![[r#"
        0-24 ep-a Cpu 24 2023-07-12T10:00:24Z-node-1-189498b1900-1
        0-24 ep-a Active 24 2023-07-12T10:00:24Z-node-1-189498b1900-2
        0-100 ep-b Cpu 200 2023-07-12T10:01:40Z-node-1-189498b1900-3
        0-100 ep-b Active 100 2023-07-12T10:01:40Z-node-1-189498b1900-4
        24-124 ep-a Cpu 100 2023-07-12T10:02:04Z-node-1-189498b1900-5
        24-124 ep-a Active 100 2023-07-12T10:02:04Z-node-1-189498b1900-6
    "#]]);
}

#[test]
fn what_makes_no_event_takes_no_place_in_the_queue() {
    let mut story = Story::begin();
    story.rule.queue = 1;
    // Less than a whole CPU second in one window, and less than a whole second in the other.
    for seconds in [0.0, 24.0] {
        story.look(seconds, &[("a", 10)]);
    }
    story.send(10);
    for seconds in [100.0, 100.9] {
        story.look(seconds, &[("b", 2_000)]);
    }
    let ended = story.meter.end(at(101), true, &story.rule).unwrap();
    story.meter.apply(&ended);
    story.send(10);
    // And none at all where nothing was had.
    story.look(500.0, &[("b", 2_000)]);
    assert_eq!(story.meter.end(at(600), true, &story.rule), None);
    story.check(&expect![[r#"
        0-24 ep-a Active 24 2023-07-12T10:00:24Z-node-1-189498b1900-1
        100-100.9 ep-b Cpu 1 2023-07-12T10:01:40.9Z-node-1-189498b1900-2
    "#]]);
}

#[test]
fn a_time_in_which_nobody_looked_for_long_is_not_billed() {
    let mut story = Story::begin();
    story.look(0.0, &[("a", 1_000)]);
    story.look(10.0, &[("a", 1_000)]);
    story.look(310.0, &[("a", 1_000)]);
    story.look(611.0, &[("a", 1_000)]);
    story.look(621.0, &[("a", 1_000)]);
    story.send(10);
    story.look(650.0, &[("a", 1_000)]);
    story.send(10);
    story.check(&expect![[r#"
        0-310 ep-a Cpu 310 2023-07-12T10:05:10Z-node-1-189498b1900-1
        0-310 ep-a Active 310 2023-07-12T10:05:10Z-node-1-189498b1900-2
        611-650 ep-a Cpu 39 2023-07-12T10:10:50Z-node-1-189498b1900-3
        611-650 ep-a Active 39 2023-07-12T10:10:50Z-node-1-189498b1900-4
    "#]]);
}

#[test]
fn a_clock_that_is_set_back_costs_nobody_the_time_after_it() {
    let mut story = Story::begin();
    story.look(3600.0, &[("a", 1_000)]);
    story.look(3610.0, &[("a", 1_000)]);
    story.look(0.0, &[("a", 1_000)]);
    story.look(10.0, &[("a", 1_000)]);
    story.look(24.0, &[("a", 1_000)]);
    story.send(10);
    story.look(48.0, &[("a", 1_000)]);
    story.send(10);
    story.check(&expect![[r#"
        0-3610 ep-a Cpu 34 2023-07-12T11:00:10Z-node-1-189498b1900-1
        0-3610 ep-a Active 34 2023-07-12T11:00:10Z-node-1-189498b1900-2
        24-48 ep-a Cpu 24 2023-07-12T10:00:48Z-node-1-189498b1900-3
        24-48 ep-a Active 24 2023-07-12T10:00:48Z-node-1-189498b1900-4
    "#]]);
}

#[test]
fn whoever_is_gone_longest_makes_room_and_whoever_comes_too_late_is_named() {
    let mut story = Story::begin();
    story.look(0.0, &[("a", 1_000)]);
    story.look(1.0, &[("b", 1_000)]);
    story.look(2.0, &[("b", 1_000), ("c", 1_000)]);
    story.look(3.0, &[("b", 1_000), ("c", 1_000), ("d", 1_000), ("e", 1_000)]);
    story.look(27.0, &[("b", 1_000), ("c", 1_000), ("d", 1_000)]);
    story.send(10);
    story.check(&expect![[r#"
        3 no room for default/e
        1-27 ep-b Cpu 26 2023-07-12T10:00:27Z-node-1-189498b1900-1
        1-27 ep-b Active 26 2023-07-12T10:00:27Z-node-1-189498b1900-2
        2-27 ep-c Cpu 25 2023-07-12T10:00:27Z-node-1-189498b1900-3
        2-27 ep-c Active 25 2023-07-12T10:00:27Z-node-1-189498b1900-4
        3-27 ep-d Cpu 24 2023-07-12T10:00:27Z-node-1-189498b1900-5
        3-27 ep-d Active 24 2023-07-12T10:00:27Z-node-1-189498b1900-6
    "#]]);
}

#[test]
fn whoever_has_used_a_whole_second_of_either_kind_makes_no_room() {
    for (cpu, gone_at) in [(4_000, 0.9), (10, 1.5)] {
        let mut story = Story::begin();
        story.look(0.0, &[("a", cpu)]);
        story.look(gone_at, &[("a", cpu)]);
        story.look(2.0, &[("b", 1_000), ("c", 1_000)]);
        story.look(3.0, &[("b", 1_000), ("c", 1_000), ("d", 1_000)]);
        story.check(&expect![[r#"
            3 no room for default/d
        "#]]);
    }
}

#[test]
fn an_event_is_the_references_json() {
    let mut story = Story::begin();
    story.look(0.1, &[("cool-name-123456", 250)]);
    story.look(24.1, &[("cool-name-123456", 250)]);
    let names = Names {
        cpu: "effective_compute_seconds".to_owned(),
        active: "active_time_seconds".to_owned(),
    };
    let events = story.meter.batch(10, story.meter.last());
    let body = serde_json::to_string(&Usages::of(&events, story.meter.origin(), &names)).unwrap();
    expect![[r#"
        {"events":[{"idempotency_key":"2023-07-12T10:00:24.1Z-node-1-189498b1900-1","metric":"effective_compute_seconds","type":"incremental","endpoint_id":"ep-cool-name-123456","start_time":"2023-07-12T10:00:00.1Z","stop_time":"2023-07-12T10:00:24.1Z","value":6},
        {"idempotency_key":"2023-07-12T10:00:24.1Z-node-1-189498b1900-2","metric":"active_time_seconds","type":"incremental","endpoint_id":"ep-cool-name-123456","start_time":"2023-07-12T10:00:00.1Z","stop_time":"2023-07-12T10:00:24.1Z","value":24}]}"#]].assert_eq(&body.replace("},{", "},\n{"));
    let later = Sequence::from_number(1);
    assert_eq!(story.meter.batch(10, later).len(), 1, "none after the last that is written down");
}

fn at(seconds: u64) -> Moment {
    Moment::from_millis(TEN + seconds * 1_000)
}
