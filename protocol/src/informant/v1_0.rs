//! v1.0: sessions and sizes.
//!
//! A size names neither its session nor its number: the informant takes it for a new request of the
//! agent that counts. Every other message is as in v2.0.

use super::ResourceMessage;
use crate::go_json::{self, keys};
use crate::{BadBody, Resources};

/// The whole size that `/downscale` asks for, or that `/upscale` announces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size(
    /// The size.
    pub Resources,
);

keys!(write Size { "cpu": 0.cpu, "memory": 0.mem });

// === impl Size ===

impl Size {
    /// The body, byte for byte as the reference writes it.
    pub fn encode(&self) -> Vec<u8> {
        go_json::encode(self)
    }

    /// Reads a request.
    ///
    /// # Errors
    /// The body is not JSON, a field holds an invalid value, or an amount is missing.
    pub fn decode(body: &[u8]) -> Result<Self, BadBody> {
        ResourceMessage::decode_any(body).map(Self::from)
    }
}
