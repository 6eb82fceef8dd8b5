//! What division and goals promise for every input.

use proptest::collection::vec;
use proptest::prelude::*;
use windlass_scaling::arbitrate::{Claim, divide};

fn claims() -> impl Strategy<Value = Vec<Claim<usize>>> {
    let amount = prop_oneof![0_u64..50, any::<u64>()];
    let claim = (-2_i32..3, amount.clone(), prop_oneof![Just(0), Just(1), 1_u64..9, any::<u64>()]);
    vec(claim, 0..8).prop_map(|claims| {
        let numbered = claims.into_iter().enumerate();
        numbered
            .map(|(key, (priority, missing, grain))| Claim { key, priority, missing, grain })
            .collect()
    })
}

proptest! {
    #[test]
    fn shares_fit_the_room_the_want_and_the_grain(
        room in prop_oneof![0_u64..100, any::<u64>()],
        claims in claims(),
    ) {
        let shares = divide(room, &claims);
        prop_assert!(shares.iter().map(|&share| u128::from(share)).sum::<u128>() <= room.into());
        for (share, claim) in shares.iter().zip(&claims) {
            prop_assert!(*share <= claim.missing);
            let whole = share.checked_rem(claim.grain).is_none_or(|rest| rest == 0);
            prop_assert!(whole || *share == claim.missing, "{share} of {claim:?}");
        }
    }

    #[test]
    fn the_order_of_claims_never_matters(room in any::<u64>(), claims in claims()) {
        let shares = divide(room, &claims);
        let backwards: Vec<_> = claims.iter().rev().cloned().collect();
        let mut again = divide(room, &backwards);
        again.reverse();
        prop_assert_eq!(shares, again);
    }

    #[test]
    fn nobody_waits_while_a_lower_priority_is_served(room in 0_u64..200, claims in claims()) {
        let shares = divide(room, &claims);
        for (first, share) in claims.iter().zip(&shares) {
            let unserved = first.missing - share;
            // What it lacks is less than a grain, or nobody below it got a usable amount.
            let below: u64 = claims
                .iter()
                .zip(&shares)
                .filter(|(claim, _)| claim.priority < first.priority)
                .map(|(_, share)| *share)
                .sum();
            let usable = first.grain.max(1).min(unserved);
            prop_assert!(unserved == 0 || below < usable, "{first:?} lacks {unserved}");
        }
    }
}
