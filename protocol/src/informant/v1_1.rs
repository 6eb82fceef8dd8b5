//! v1.1: as v1.0, and the guest can ask for more ([`MoreResources`]).
//!
//! [`MoreResources`]: super::MoreResources

pub use super::v1_0::Size;
