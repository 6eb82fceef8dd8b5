//! v1.2: as v1.1, and the agent can ask whether its session stands ([`HealthCheck`]).
//!
//! [`HealthCheck`]: super::HealthCheck

use super::ResourceMessage;
pub use super::v1_1::Size;

/// v2.0 adds whose it is, and which: that was not said.
impl From<Size> for ResourceMessage {
    fn from(Size(resources): Size) -> Self {
        Self { resources, ..Self::default() }
    }
}

/// v2.0's id and number are not said before it.
impl From<ResourceMessage> for Size {
    fn from(message: ResourceMessage) -> Self {
        Self(message.resources)
    }
}
