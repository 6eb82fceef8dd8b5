//! How long to rest after failures in a row: doubling, capped, and a little apart from others.

use std::time::Duration;

/// After this many failures in a row: between three quarters of, and, the doubled figure, by a seed. None: no rest.
pub(crate) fn rest(first: Duration, longest: Duration, failures: u32, seed: u64) -> Duration {
    let Some(doublings) = failures.checked_sub(1) else { return Duration::ZERO };
    let whole = first.saturating_mul(1 << doublings.min(20)).min(longest);
    let mixed = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56;
    let part = u32::try_from(mixed).unwrap_or_default();
    whole - whole / 1024 * part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rests_double_up_to_the_longest_and_never_leave_their_band() {
        let (first, longest) = (Duration::from_secs(1), Duration::from_secs(60));
        for seed in 0..200 {
            assert_eq!(rest(first, longest, 0, seed), Duration::ZERO);
            for (failures, most) in [(1, 1), (2, 2), (3, 4), (7, 60), (u32::MAX, 60)] {
                let (rest, most) =
                    (rest(first, longest, failures, seed), Duration::from_secs(most));
                assert!(rest <= most && rest >= most * 3 / 4, "{failures}/{seed}: {rest:?}");
            }
        }
        let rests: std::collections::BTreeSet<Duration> =
            (0..50).map(|seed| rest(first, longest, 1, seed)).collect();
        assert!(rests.len() > 20, "{rests:?}");
    }
}
