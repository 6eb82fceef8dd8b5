//! How large the cache is to be in so much memory: the reference's function.
//!
//! `0` up to 640 MiB; above, the smaller of `(usable - 640 MiB) / 1.1` and three quarters,
//! rounded down to a whole MiB. The two lines cross at 3,657 MiB.

use windlass_protocol::Bytes;

/// So much stays beside the cache, whatever the guest's size (`MinRemainingAfterCache`).
pub const BESIDE: Bytes = Bytes::from_mib(640);

/// The size of the cache where the guest can use so much memory.
pub const fn size(usable: Bytes) -> Bytes {
    let above = usable.saturating_sub(BESIDE).bytes();
    // (usable - 640 MiB) / 1.1, without a product that could overflow.
    let spread = above / 11 * 10 + above % 11 * 10 / 11;
    let most = usable.bytes() / 4 * 3 + usable.bytes() % 4 * 3 / 4;
    let least = if spread < most { spread } else { most };
    Bytes::from_bytes(least).round_down(Bytes::from_mib(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Usable memory and size in MiB: the reference's table, and the ends of its lines.
    #[test]
    fn it_is_the_reference_s_function() {
        for (usable, cache) in [
            (0, 0),
            (640, 0),
            (641, 0),
            (642, 1),
            (924, 258),
            (1948, 1189),
            (3656, 2741),
            (3657, 2742),
            (3658, 2743),
            (3996, 2997),
            (8092, 6069),
        ] {
            assert_eq!(size(Bytes::from_mib(usable)), Bytes::from_mib(cache), "{usable} MiB");
        }
    }

    #[test]
    fn there_is_a_size_for_every_amount() {
        assert_eq!(size(Bytes::from_bytes(u64::MAX)).mib(), (1 << 44) / 4 * 3 - 1);
    }
}
