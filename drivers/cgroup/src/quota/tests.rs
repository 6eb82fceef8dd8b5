//! Tables of quotas, and the order of writes.

use super::*;

fn quota(quota: u64, period: u64) -> Quota {
    Quota { quota: Some(quota), period }
}

fn none(period: u64) -> Quota {
    Quota { quota: None, period }
}

#[test]
fn a_quota_is_read_as_the_kernel_writes_it() {
    for (text, read) in [
        ("max 100000\n", Some(none(100_000))),
        ("25000 100000\n", Some(quota(25_000, 100_000))),
        ("25000", None),
        ("25000 0", None),
        ("-1 100000", None),
        ("max 100000 1", None),
        ("", None),
    ] {
        assert_eq!(Quota::parse_v2(text), read, "{text}");
        if let Some(read) = read {
            assert_eq!(Quota::parse_v2(&read.text_v2()), Some(read));
        }
    }
    for (text, period, read) in [
        ("-1\n", "100000\n", Some(none(100_000))),
        ("25000\n", "50000\n", Some(quota(25_000, 50_000))),
        ("max", "50000", None),
        ("25000", "0", None),
        ("25000", "", None),
    ] {
        assert_eq!(Quota::parse_v1(text, period), read, "{text} {period}");
    }
}

#[test]
fn an_amount_of_cpu_is_rounded_up() {
    for (from, milli) in [
        (quota(25_000, 100_000), 250),
        (quota(25_001, 100_000), 251),
        (quota(10_000, 30_000), 334),
        (quota(1, 1_000_000), 1),
        (quota(u64::MAX, 1), u64::MAX),
    ] {
        assert_eq!(from.cpu(), Some(MilliCpu::from_milli(milli)), "{from}");
    }
    assert_eq!(none(100_000).cpu(), None);
    for milli in [10, 50, 1000, 1050] {
        let limit = MilliCpu::from_milli(milli);
        assert_eq!((Quota::of(limit).cpu(), Quota::of(limit).period), (Some(limit), PERIOD_US));
    }
}

#[test]
fn one_quota_exceeds_another_by_what_it_allows() {
    assert!(quota(25_001, 100_000).exceeds(quota(12_500, 50_000)));
    assert!(!quota(25_000, 100_000).exceeds(quota(12_500, 50_000)));
    assert!(none(1).exceeds(quota(u64::MAX, 1)));
    assert!(!none(1).exceeds(none(2)) && !quota(u64::MAX, 1).exceeds(none(2)));
}

#[test]
fn between_two_writes_no_more_is_allowed_than_before_or_after() {
    let mut all = Vec::new();
    for period in [50_000, 100_000, 200_000] {
        all.push(none(period));
        all.extend([10_000, 60_000, 400_000].map(|amount| quota(amount, period)));
    }
    for from in &all {
        for to in &all {
            let mut stands = *from;
            for step in from.steps_to(*to) {
                match step {
                    Step::Quota(quota) => stands.quota = quota,
                    Step::Period(period) => stands.period = period,
                }
                let more = stands.exceeds(*from) && stands.exceeds(*to);
                assert!(!more, "{from} to {to}: {stands} in between");
            }
            assert_eq!(stands, *to, "{from}");
        }
    }
}

#[test]
fn what_stands_already_is_not_written() {
    use Step::{Period, Quota};
    let (low, high) = (quota(25_000, 100_000), quota(50_000, 100_000));
    assert_eq!(low.steps_to(high), [Quota(Some(50_000))]);
    assert_eq!(low.steps_to(low), []);
    assert_eq!(low.steps_to(quota(25_000, 50_000)), [Period(50_000)]);
    assert_eq!(low.steps_to(none(200_000)), [Quota(None), Period(200_000)]);
    assert_eq!(none(50_000).steps_to(low), [Period(100_000), Quota(Some(25_000))]);
    assert_eq!(none(200_000).steps_to(low), [Period(100_000), Quota(Some(25_000))]);
}

#[test]
fn systemd_takes_percents_and_keeps_hundredths() {
    for (from, text, made) in [
        (quota(25_000, 100_000), "25%", 25_000),
        (quota(12_500, 100_000), "12.5%", 12_500),
        (quota(105_000, 100_000), "105%", 105_000),
        (quota(33_330, 100_000), "33.33%", 33_330),
        (quota(33_333, 100_000), "33.34%", 33_340),
        (quota(1_050, 100_000), "1.05%", 1_050),
        (quota(10_000, 30_000), "33.34%", 10_002),
    ] {
        assert_eq!(from.for_systemd(), (text.to_owned(), quota(made, from.period)), "{from}");
    }
    assert_eq!(none(50_000).for_systemd(), (String::new(), none(50_000)));
}

#[test]
fn a_quota_is_said_with_its_unit() {
    assert_eq!(quota(25_000, 100_000).to_string(), "25000 of 100000 µs");
    assert_eq!(none(100_000).to_string(), "no limit");
}
