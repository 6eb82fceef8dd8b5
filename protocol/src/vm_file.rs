//! A VM as people write it down: the checked content of a VM file.
//!
//! [`VmFileText`] is any table; [`VmFile::from_text`] looks at every key and reports all
//! problems at once, each with the field, its value and the limit. [`KEYS`] lists the keys with
//! type, default and range; errors quote it, and the documents are checked against it. Reading
//! TOML is `kit::config`'s.

mod check;
mod keys;
mod text;

pub use keys::{KEYS, Key};
pub use text::{Node, VmFileText, memory};

use crate::VmInfo;
use crate::bad_body::shortened;
use crate::words::defused;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use thiserror::Error;

/// Characters of a field's name: the longest that we know has a third of that.
const LONGEST_FIELD: usize = 150;

/// Everything that a host is told about one VM.
#[derive(Clone, Debug, PartialEq)]
pub struct VmFile {
    /// What the VM should be.
    pub info: VmInfo,
    /// The hypervisor's monitor.
    pub qmp: PathBuf,
    /// Where the guest's informant listens.
    pub informant: SocketAddr,
    /// How the guest reaches this host. Absent: 10.0.2.2 for a loopback informant, else the local
    /// address that reaches it.
    pub advertise: Option<IpAddr>,
    /// Where the guest's metrics are read, if not at the port that the informant announces.
    pub metrics: Option<SocketAddr>,
    /// Whether vCPUs may be taken out of the hypervisor.
    pub vcpu_removal: bool,
}

/// One thing that is wrong with what a person wrote.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{field}{}{value}: {limit}", if value.is_empty() { "" } else { " = " })]
pub struct FieldError {
    /// The key, as `max.memory`.
    pub field: String,
    /// What it holds, shortened; empty if it is missing.
    pub value: String,
    /// What is allowed, limit included.
    pub limit: String,
}

// === impl FieldError ===

impl FieldError {
    pub(crate) fn new(
        field: impl Into<String>,
        value: impl fmt::Display,
        limit: impl Into<String>,
    ) -> Self {
        // A key may be one that somebody made up.
        let field = defused(&field.into(), LONGEST_FIELD);
        let value = shortened(&value.to_string());
        Self { field, value, limit: limit.into() }
    }
}
