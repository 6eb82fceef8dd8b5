//! How things should be with one VM: what its runner is told, and follows.

use serde::Serialize;
use std::fmt;
use std::sync::Arc;
use windlass_agent_core::Order;
use windlass_protocol::vm_file::VmFile;

/// How things should be with one VM.
pub(crate) struct Told<A> {
    /// What it should be and how it is reached; `None` for one that is only counted.
    pub(crate) file: Option<VmFile>,
    pub(crate) attach: Arc<A>,
    /// Changes whenever `attach` is another.
    pub(crate) reach: u64,
    pub(crate) order: Order,
    pub(crate) standing: Standing,
}

/// Whether a VM is acted on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// It follows its load, or what else it is ordered.
    Managed,
    /// It is brought to a size and let go; then it is looked at and counted, also when it
    /// comes back.
    Released,
    /// Its file is gone: it is looked at and counted until its hypervisor is gone.
    Removed,
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Managed => "managed",
            Self::Released => "released",
            Self::Removed => "removed",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standings_have_words() {
        let all = [Standing::Managed, Standing::Released, Standing::Removed];
        assert_eq!(all.map(|standing| standing.to_string()), ["managed", "released", "removed"]);
    }
}
