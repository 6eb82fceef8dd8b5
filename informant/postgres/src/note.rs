//! What was agreed to, where it survives a restart of the informant and not a reboot.
//!
//! A guest that has agreed to less still has the memory for a while. An informant that starts
//! just then would have the cache grow into it, and the memory would be taken nevertheless.

use std::io;
use windlass_informant::tree::Tree;
use windlass_protocol::Bytes;

/// The size of the VM in bytes.
const NOTE: &str = "run/windlass-informant/agreed";

/// The size of the VM that was last agreed to or told; `None` if no agent has said.
///
/// # Errors
/// There is something that is not a number.
pub fn read(tree: &Tree) -> io::Result<Option<Bytes>> {
    match tree.read(NOTE) {
        Ok(text) => {
            let bytes = text.trim().parse().map(|bytes| Some(Bytes::from_bytes(bytes)));
            bytes.map_err(|_| io::Error::other("not a number of bytes"))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Notes it.
///
/// # Errors
/// It cannot be written; what was noted before stands.
pub fn write(tree: &Tree, size: Bytes) -> io::Result<()> {
    tree.replace(NOTE, &format!("{}\n", size.bytes()))
}

/// Forgets it.
pub fn forget(tree: &Tree) -> io::Result<()> {
    match std::fs::remove_file(tree.path(NOTE)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}
