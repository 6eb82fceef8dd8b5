//! The plugin, called in memory: the agent's questions go through the same codec and the same bytes
//! as over a socket, so there is one code path and no port.

use bytes::Bytes;
use tracing::warn;
use windlass_agent::{Asked, Permits};
use windlass_plugin::refusal::Refusal;
use windlass_plugin::{Permits as _, Shared};
use windlass_plugin_core::wire;
use windlass_protocol::PluginVersion;

/// The plugin of this process.
pub(super) struct InMemory(Shared);

// === impl InMemory ===

impl InMemory {
    pub(super) const fn new(books: Shared) -> Self {
        Self(books)
    }

    /// The status and the body of the answer to these bytes.
    fn answer(&self, body: &[u8]) -> (u16, Bytes) {
        let request = wire::read(body, PluginVersion::SPOKEN).map_err(Refusal::from);
        match self.0.answer(request) {
            Ok(body) => (200, body.into()),
            Err(refusal) => {
                warn!(%refusal, "permit request refused");
                (refusal.status(), refusal.to_string().into())
            }
        }
    }
}

impl Permits for InMemory {
    fn ask(&self, body: Bytes) -> Asked<'_> {
        Box::pin(async move { Ok(self.answer(&body)) })
    }

    fn place(&self) -> String {
        "in this process".to_owned()
    }
}
