//! v1.2: as v1.1, and the agent can check that its session is valid ([`HealthCheck`]).
//!
//! [`HealthCheck`]: super::HealthCheck

use super::ResourceMessage;
pub use super::v1_1::Size;

/// v2.0 adds session and number, which stay zero.
impl From<Size> for ResourceMessage {
    fn from(Size(resources): Size) -> Self {
        Self { resources, ..Self::default() }
    }
}

/// Drops v2.0's session and number.
impl From<ResourceMessage> for Size {
    fn from(message: ResourceMessage) -> Self {
        Self(message.resources)
    }
}
