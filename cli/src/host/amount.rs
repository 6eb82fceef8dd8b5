//! Amounts on the command line, read as in files.

use windlass_protocol::config::Node;
use windlass_protocol::{Bytes, MilliCpu};

/// vCPUs: `2`, `0.25`, `250m`.
///
/// # Errors
/// It is no such amount.
pub fn cpu(text: &str) -> Result<MilliCpu, String> {
    Node::Text(text.to_owned()).cpu().ok_or_else(|| "write vCPUs, as 2 or 0.25".to_owned())
}

/// Memory: `512MiB`, `1GiB`.
///
/// # Errors
/// It is no such amount.
pub fn memory(text: &str) -> Result<Bytes, String> {
    Node::Text(text.to_owned()).memory().ok_or_else(|| "write memory, as 512MiB or 1GiB".to_owned())
}
