//! The two forms in which the kernel shows cgroups. A machine may have both at once, each controller in one
//! of them.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Whose files a cgroup has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Version {
    /// One hierarchy per controller.
    V1,
    /// One hierarchy for all controllers.
    V2,
}

// === impl Version ===

/// `v1`, `v2`.
impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V1 => "v1",
            Self::V2 => "v2",
        })
    }
}
