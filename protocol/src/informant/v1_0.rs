//! v1.0: sessions and sizes.
//!
//! Sizes are bare: they say neither whose they are nor which, so each counts as of the agent
//! that counts, and is examined anew. Everything else that v1.0 says it says as v2.0 does.

use crate::go_json::{self, keys};
use crate::quantity::{CpuQuantity, MemoryQuantity};
use crate::{BadBody, Resources};

/// A size, of `/downscale` or `/upscale`: the whole of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size(
    /// What the guest is to be content with, or has.
    pub Resources,
);

/// Its keys, either of which may be missing.
#[derive(Default)]
pub(crate) struct Bare {
    pub(crate) cpu: Option<CpuQuantity>,
    pub(crate) memory: Option<MemoryQuantity>,
}

keys!(Bare { "cpu": cpu, "memory": memory });

// === impl Size ===

impl Size {
    /// The body, byte for byte as the reference writes it.
    pub fn encode(&self) -> Vec<u8> {
        let Resources { cpu, mem } = self.0;
        go_json::encode(&Bare { cpu: Some(CpuQuantity(cpu)), memory: Some(MemoryQuantity(mem)) })
    }

    /// Reads a request: the first value counts, what follows is ignored.
    ///
    /// # Errors
    /// If it is not JSON, or a field holds what it must not.
    pub fn decode(body: &[u8]) -> Result<Self, BadBody> {
        go_json::decode_first::<Bare>(body)?.try_into()
    }
}

impl TryFrom<Bare> for Size {
    type Error = BadBody;

    fn try_from(Bare { cpu, memory }: Bare) -> Result<Self, BadBody> {
        let missing = |field: &str| BadBody::Missing { field: field.to_owned() };
        let cpu = cpu.ok_or_else(|| missing("cpu"))?.0;
        let mem = memory.ok_or_else(|| missing("memory"))?.0;
        Ok(Self(Resources { cpu, mem }))
    }
}
