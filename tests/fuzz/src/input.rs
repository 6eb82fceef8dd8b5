//! The bytes of one input, read from the front.
//!
//! Where they end, every read gives zero or nothing, so each input is one that a target takes;
//! and most of the bytes that change change one thing only, which is what an engine that
//! changes bytes needs.

use windlass_protocol::{Bytes, MilliCpu, Resources, Versions};

/// What is left of an input.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Input<'a>(&'a [u8]);

// === impl Input ===

impl<'a> Input<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All that is left.
    pub(crate) const fn rest(self) -> &'a [u8] {
        self.0
    }

    pub(crate) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    pub(crate) fn is(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// A number below `limit`, which is at most 256.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::from(self.byte()) % limit
    }

    pub(crate) fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    pub(crate) fn short(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    /// A number of any size, most often a small one.
    pub(crate) fn number(&mut self) -> u64 {
        match self.byte() {
            small @ 0..=199 => u64::from(small),
            200..=239 => u64::from(self.short()),
            240..=254 => {
                [0; 8].map(|_: u8| self.byte()).iter().fold(0, |n, b| n << 8 | u64::from(*b))
            }
            255 => u64::MAX,
        }
    }

    /// Milliseconds to wait: a few, most often, and at most three years, so that time has no end.
    pub(crate) fn wait(&mut self) -> u64 {
        match self.byte() {
            short @ 0..=99 => u64::from(short),
            medium @ 100..=199 => u64::from(medium - 99) * 100,
            200..=249 => u64::from(self.short()),
            long @ 250..=255 => u64::from(long - 249) << 34,
        }
    }

    /// Thousandths of a vCPU, often whole ones.
    pub(crate) fn cpu(&mut self) -> MilliCpu {
        let whole = self.is();
        let number = self.number();
        if whole { MilliCpu::from_cores(number) } else { MilliCpu::from_milli(number) }
    }

    /// Memory, most often in MiB.
    pub(crate) fn memory(&mut self) -> Bytes {
        let unit = self.below(4);
        let number = self.number();
        match unit {
            0 => Bytes::from_mib(number.saturating_mul(128)),
            1 | 2 => Bytes::from_mib(number),
            _ => Bytes::from_bytes(number),
        }
    }

    pub(crate) fn size(&mut self) -> Resources {
        Resources { cpu: self.cpu(), mem: self.memory() }
    }

    /// Versions, of all that there are: most often these.
    pub(crate) fn versions<V: Copy>(&mut self, all: &[V]) -> Versions<V> {
        let which = match self.byte() {
            0..=127 => return Versions { min: all[0], max: all[all.len() - 1] },
            which => usize::from(which - 128),
        };
        let (first, wide) = (which % all.len(), which / all.len());
        let last = first + wide % (all.len() - first);
        Versions { min: all[first], max: all[last] }
    }

    /// Bytes of a length that stands before them; what is left where there are fewer.
    pub(crate) fn chunk(&mut self) -> &'a [u8] {
        let length = match self.byte() {
            short @ 0..=247 => usize::from(short),
            long @ 248..=255 => usize::from(long - 247) * 256,
        };
        let (chunk, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        chunk
    }

    /// The same as text.
    pub(crate) fn text(&mut self) -> String {
        String::from_utf8_lossy(self.chunk()).into_owned()
    }
}
