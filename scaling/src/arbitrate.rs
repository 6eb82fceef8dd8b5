//! Divides room among claims, on one axis.
//!
//! Claims of higher priority come first and in full. Within a class every claim gets the same fraction of its
//! missing amount, in whole grains; the rest goes to the largest remainders (the method of Hamilton). The
//! smaller key wins a tie, so the order of the claims does not matter.

use std::cmp::Reverse;
use std::collections::BTreeMap;

/// One claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim<K> {
    /// The claimant; unique among the claims.
    pub key: K,
    /// The higher priority goes first.
    pub priority: i32,
    /// The missing amount.
    pub missing: u64,
    /// The claim can use multiples of this, or the whole missing amount; zero means any amount.
    pub grain: u64,
}

/// The share of one claim during the division of its class.
struct Part {
    index: usize,
    missing: u64,
    grain: u64,
    share: u64,
    /// The exact share less the rounded one.
    remainder: u64,
}

/// Divides `room` among `claims` and returns the shares in the order of the claims. Their sum is at most
/// `room`, and no share exceeds the missing amount.
pub fn divide<K: Ord>(room: u64, claims: &[Claim<K>]) -> Vec<u64> {
    let mut classes: BTreeMap<Reverse<i32>, Vec<usize>> = BTreeMap::new();
    for (index, claim) in claims.iter().enumerate() {
        classes.entry(Reverse(claim.priority)).or_default().push(index);
    }
    let mut shares = vec![0; claims.len()];
    let mut left = room;
    for mut class in classes.into_values() {
        class.sort_by(|&a, &b| claims[a].key.cmp(&claims[b].key));
        for part in divide_class(left, &class, claims) {
            shares[part.index] = part.share;
            left -= part.share;
        }
    }
    shares
}

fn divide_class<K>(room: u64, class: &[usize], claims: &[Claim<K>]) -> Vec<Part> {
    let total: u128 = class.iter().map(|&i| u128::from(claims[i].missing)).sum();
    let mut parts: Vec<Part> =
        class.iter().map(|&index| Part::proportional(index, &claims[index], room, total)).collect();
    let mut left = room - parts.iter().map(|part| part.share).sum::<u64>();
    // Sorting is stable, so equal remainders stay in the order of their keys.
    parts.sort_by_key(|part| Reverse(part.remainder));
    for part in &mut parts {
        left -= part.take(left.min(part.grain.max(1)));
    }
    for part in &mut parts {
        left -= part.take(left);
    }
    parts
}

// === impl Part ===

impl Part {
    fn proportional<K>(index: usize, claim: &Claim<K>, room: u64, total: u128) -> Self {
        let Claim { missing, grain, .. } = *claim;
        let exact = if u128::from(room) >= total {
            missing
        } else {
            let exact = u128::from(room) * u128::from(missing) / total;
            u64::try_from(exact).expect("a part of a u64 fits one")
        };
        let mut part = Self { index, missing, grain, share: 0, remainder: 0 };
        part.take(exact);
        part.remainder = exact - part.share;
        part
    }

    /// Takes the usable part of `offer`, and returns it.
    fn take(&mut self, offer: u64) -> u64 {
        let most = self.missing - self.share;
        let usable = if offer >= most || self.grain == 0 {
            offer.min(most)
        } else {
            offer / self.grain * self.grain
        };
        self.share += usable;
        usable
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(key: &'static str, priority: i32, missing: u64, grain: u64) -> Claim<&'static str> {
        Claim { key, priority, missing, grain }
    }

    #[test]
    fn priority_goes_first_then_in_proportion_in_whole_grains() {
        for (room, claims, shares) in [
            (10, vec![claim("a", 0, 4, 1), claim("b", 0, 4, 1)], vec![4, 4]),
            (4, vec![claim("a", 0, 4, 1), claim("b", 0, 4, 1)], vec![2, 2]),
            (5, vec![claim("b", 0, 4, 1), claim("a", 0, 4, 1)], vec![2, 3]),
            (4, vec![claim("a", 0, 9, 1), claim("b", 0, 3, 1)], vec![3, 1]),
            (4, vec![claim("a", 0, 4, 1), claim("b", 5, 3, 1)], vec![1, 3]),
            (3, vec![claim("a", 0, 4, 2), claim("b", 0, 4, 2)], vec![2, 0]),
            (0, vec![claim("a", 0, 4, 1)], vec![0]),
            (7, vec![], vec![]),
            (3, vec![claim("a", 0, 5, 10)], vec![0]),
            (5, vec![claim("a", 0, 5, 10)], vec![5]),
            (
                u64::MAX,
                vec![claim("a", 0, u64::MAX, 1), claim("b", 1, 1, 0)],
                vec![u64::MAX - 1, 1],
            ),
        ] {
            assert_eq!(divide(room, &claims), shares, "{room} among {claims:?}");
        }
    }
}
