//! Work that cannot be optimised away, and memory that cannot be compressed or merged.

use std::hint::black_box;
use std::io;

/// Size of one piece of held memory.
pub(crate) const PIECE: usize = 1 << 20;

/// A cheap source of words that look random.
pub(crate) struct Words(u64);

// === impl Words ===

impl Words {
    /// Starts anywhere; equal seeds give equal words.
    pub(crate) fn seeded(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next word.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A piece of memory, every word of it written.
    pub(crate) fn piece(&mut self) -> Box<[u64]> {
        (0..PIECE / size_of::<u64>()).map(|_| self.next()).collect()
    }
}

/// Computes for ever.
pub(crate) fn spin() -> io::Result<()> {
    let mut words = Words::seeded(1);
    loop {
        black_box(words.next());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_differ_and_have_no_zero_words() {
        let mut words = Words::seeded(7);
        let (first, second) = (words.piece(), words.piece());
        assert_eq!(first.len() * size_of::<u64>(), PIECE);
        assert_ne!(first, second);
        assert!(first.iter().chain(&second).all(|&word| word != 0));
    }
}
