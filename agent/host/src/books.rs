//! The books of this host's node, where they are kept in this process.
//!
//! The agent knows a plugin by its permits alone. A program that keeps the books beside its agent can
//! also show them, and can count VMs of before a restart until their hypervisors were looked for.

use windlass_protocol::status::NodeStatus;
use windlass_protocol::{Moment, Note, Resources, VmName, VmRecord};

/// What a host says of the books of its node, and asks of them. No call waits for longer than a
/// short lock.
pub trait NodeBooks: Send + Sync {
    /// What may be reserved for VMs.
    fn room(&self) -> Resources;

    /// How much of that is reserved for each VM.
    fn status(&self, now: Moment) -> NodeStatus;

    /// What was answered to a VM where there was less than it asked for.
    fn notes(&self, vm: &VmName) -> Vec<Note>;

    /// Counts a VM that may be there and was not looked for yet with this much, or more if it was
    /// presumed to have more.
    fn presume(&self, vm: &VmName, record: VmRecord, ceiling: Resources);

    /// VMs that are in the books without having been seen.
    fn presumed(&self) -> Vec<VmName>;

    /// Whether a VM is in the books without having been seen.
    fn is_presumed(&self, vm: &VmName) -> bool;

    /// A presumed VM turned out not to be there.
    fn refute(&self, vm: &VmName);
}
