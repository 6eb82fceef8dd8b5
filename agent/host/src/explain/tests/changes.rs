//! The last changes, and what repeats.

use super::super::changes::last_changes;
use super::*;

#[test]
fn what_repeats_is_one_line() {
    let mut decisions = vec![step(0, 2, 1)];
    for turn in 0..6 {
        decisions.push(step(100 + turn * 60, 1, 2));
        decisions.push(step(130 + turn * 60, 2, 1));
    }
    decisions.push(step(1_000, 1, 3));
    check(
        &decisions,
        expect![[r#"
            went 2 -> 1 -> 2 vCPU 6 times between 10:00:05Z and 10:06:45Z; last: load 2.70 over 15s, 110MiB of 221MiB used
            10:07:15Z went 2 -> 1 vCPU in 1.5s: load 2.70 over 15s, 110MiB of 221MiB used
            10:16:45Z went 1 -> 3 vCPU in 1.5s: load 2.70 over 15s, 110MiB of 221MiB used
        "#]],
    );
}

#[test]
fn a_round_over_several_sizes_is_one_line_too() {
    let mut decisions = Vec::new();
    for turn in 0..3 {
        decisions.push(step(turn * 60, 1, 3));
        decisions.push(step(turn * 60 + 20, 3, 2));
        decisions.push(step(turn * 60 + 40, 2, 1));
    }
    check(
        &decisions,
        expect![[r#"
            went 1 -> 3 -> 2 -> 1 vCPU 3 times between 10:00:05Z and 10:02:45Z; last: load 2.70 over 15s, 110MiB of 221MiB used
        "#]],
    );
}

/// A VM that is started anew in between has its first size again.
#[test]
fn changes_that_do_not_lead_back_are_no_round() {
    let up = [(1, 2), (2, 3), (1, 2), (2, 3)];
    let apart = [(1, 2), (3, 1), (1, 2), (3, 1)];
    let of = |steps: [(u64, u64); 4]| -> Vec<Decision> {
        (0..).zip(steps).map(|(n, (from, to))| step(n * 10, from, to)).collect()
    };
    check(
        &of(up),
        expect![[r#"
        10:00:05Z went 1 -> 2 vCPU in 1.5s: load 2.70 over 15s, 110MiB of 221MiB used
        10:00:15Z went 2 -> 3 vCPU in 1.5s: load 2.70 over 15s, 110MiB of 221MiB used
        10:00:25Z went 1 -> 2 vCPU in 1.5s: load 2.70 over 15s, 110MiB of 221MiB used
        10:00:35Z went 2 -> 3 vCPU in 1.5s: load 2.70 over 15s, 110MiB of 221MiB used
    "#]],
    );
    check(
        &of(apart),
        expect![[r#"
        10:00:05Z went 1 -> 2 vCPU in 1.5s: load 2.70 over 15s, 110MiB of 221MiB used
        10:00:15Z went 3 -> 1 vCPU in 1.5s: load 2.70 over 15s, 110MiB of 221MiB used
        10:00:25Z went 1 -> 2 vCPU in 1.5s: load 2.70 over 15s, 110MiB of 221MiB used
        10:00:35Z went 3 -> 1 vCPU in 1.5s: load 2.70 over 15s, 110MiB of 221MiB used
    "#]],
    );
}

#[test]
fn what_came_to_the_same_is_one_line_however_it_ended() {
    let outcomes = [
        Outcome::Observed,
        Outcome::Observed,
        Outcome::Reached { at: later(60_000) },
        Outcome::Replaced { at: later(60_000), has: size(3, 256) },
        Outcome::Interrupted { at: later(60_000) },
        Outcome::Interrupted { at: later(60_000) },
    ];
    let decisions: Vec<Decision> = (0..)
        .zip(outcomes)
        .map(|(n, outcome)| Decision { outcome, ..step(n * 10, 1, 3) })
        .collect();
    check(
        &decisions,
        expect![[r#"
        would go 1 -> 3 vCPU 2 times between 10:00:05Z and 10:00:15Z; last: load 2.70 over 15s, 110MiB of 221MiB used
        went 1 -> 3 vCPU 2 times between 10:00:25Z and 10:00:35Z; last: load 2.70 over 15s, 110MiB of 221MiB used
        was going 1 -> 3 vCPU 2 times between 10:00:45Z and 10:00:55Z; last: load 2.70 over 15s, 110MiB of 221MiB used
    "#]],
    );
}

#[test]
fn there_are_at_most_five_and_the_latest_is_the_last() {
    let decisions: Vec<Decision> = (1..9).map(|n| step(n * 10, n, n + 1)).collect();
    check(
        &decisions,
        expect![[r#"
        10:00:45Z went 4 -> 5 vCPU in 1.5s: load 2.70 over 15s, 110MiB of 221MiB used
        10:00:55Z went 5 -> 6 vCPU in 1.5s: load 2.70 over 15s, 110MiB of 221MiB used
        10:01:05Z went 6 -> 7 vCPU in 1.5s: load 2.70 over 15s, 110MiB of 221MiB used
        10:01:15Z went 7 -> 8 vCPU in 1.5s: load 2.70 over 15s, 110MiB of 221MiB used
        10:01:25Z went 8 -> 9 vCPU in 1.5s: load 2.70 over 15s, 110MiB of 221MiB used
    "#]],
    );
}

#[test]
fn each_outcome_has_its_words() {
    let ended = |outcome| Decision { outcome, ..step(10, 1, 3) };
    let decisions = [
        ended(Outcome::Replaced { at: later(12_000), has: size(2, 256) }),
        ended(Outcome::Replaced { at: later(12_000), has: size(1, 256) }),
        ended(Outcome::Interrupted { at: later(14_000) }),
        ended(Outcome::Observed),
        Decision {
            short: Some(Answered { asked: size(3, 256), permit: size(1, 256) }),
            refusal: Some(Consented { asked: size(1, 256), agreed: false, status: String::new() }),
            goal: size(3, 512),
            ..step(20, 1, 3)
        },
        ended(Outcome::Open),
    ];
    check(
        &decisions,
        expect![[r#"
            10:00:15Z went 1 -> 2 vCPU on the way to 3 vCPU / 256MiB, superseded after 2.0s: load 2.70 over 15s, 110MiB of 221MiB used
            10:00:15Z was going 1 -> 3 vCPU; the guest restarted or the VM went away after 4.0s: load 2.70 over 15s, 110MiB of 221MiB used
            10:00:15Z would go 1 -> 3 vCPU (only observed): load 2.70 over 15s, 110MiB of 221MiB used
            10:00:25Z went 1 vCPU / 256MiB -> 3 vCPU / 512MiB in 1.5s: load 2.70 over 15s, 110MiB of 221MiB used; it first waited for room; the guest declined at first
            10:00:15Z going 1 -> 3 vCPU for 19m 50s: load 2.70 over 15s, 110MiB of 221MiB used
        "#]],
    );
}

#[test]
fn a_minimum_that_was_raised_is_no_want_of_load() {
    let reason = Reason { signal: Signal::Idle, cpu: Some(Clip::Minimum), mem: None };
    let [less, more] = [(0, 1, 2), (10, 3, 2)].map(|(at, from, to)| step(at, from, to));
    let larger = Decision { from: size(1, 256), goal: size(2, 512), ..step(20, 1, 2) };
    let other = Decision { from: size(1, 512), goal: size(2, 256), ..step(30, 1, 2) };
    let memory = Decision { from: size(2, 256), goal: size(1, 512), ..step(40, 2, 1) };
    let only_memory = Decision { from: size(2, 256), goal: size(2, 512), ..step(50, 2, 2) };
    let with_reason = |decision| Decision { reason, ..decision };
    let decisions = [less, more, larger, other, memory].map(with_reason);
    check(
        &decisions,
        expect![[r#"
            10:00:05Z went 1 -> 2 vCPU in 1.5s: its minimum is 2 vCPU (load 2.70 over 15s, 110MiB of 221MiB used)
            10:00:15Z went 3 -> 2 vCPU in 1.5s: nothing calls for more (load 2.70 over 15s, 110MiB of 221MiB used)
            10:00:25Z went 1 vCPU / 256MiB -> 2 vCPU / 512MiB in 1.5s: its minimum is 2 vCPU / 512MiB (load 2.70 over 15s, 110MiB of 221MiB used)
            10:00:35Z went 1 vCPU / 512MiB -> 2 vCPU / 256MiB in 1.5s: its minimum is 2 vCPU (load 2.70 over 15s, 110MiB of 221MiB used)
            10:00:45Z went 2 vCPU / 256MiB -> 1 vCPU / 512MiB in 1.5s: its minimum is 512MiB (load 2.70 over 15s, 110MiB of 221MiB used)
        "#]],
    );
    check(
        &[with_reason(only_memory)],
        expect![[r#"
        10:00:55Z went 256MiB -> 512MiB in 1.5s: its minimum is 512MiB (load 2.70 over 15s, 110MiB of 221MiB used)
    "#]],
    );
}

fn check(decisions: &[Decision], words: Expect) {
    let lines = last_changes(decisions.iter(), later(1_200_000));
    words.assert_eq(&lines.iter().map(|line| format!("{line}\n")).collect::<String>());
}

/// So many seconds after the start it went from one number of vCPUs to another.
fn step(seconds: u64, from: u64, to: u64) -> Decision {
    let at = later(seconds * 1_000);
    Decision {
        at,
        from: size(from, 256),
        goal: size(to, 256),
        outcome: Outcome::Reached { at: at.after(std::time::Duration::from_millis(1_500)) },
        ..grows()
    }
}
