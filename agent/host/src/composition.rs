//! What a program brings to its host: an agent, the books where it keeps them, and what SIGHUP has read
//! again.

use std::sync::Arc;
use windlass_agent::{Config, Ledger, Permits};
use windlass_kit::problem::Problem;
use windlass_protocol::status::NodeStatus;
use windlass_protocol::{Moment, Note, Resources, Usual, VmName, VmRecord};

/// What a program says of the agent that it runs.
pub struct Composition {
    /// What the agent is told, but for what was kept.
    pub agent: Config,
    /// The plugin that grants permits.
    pub permits: Arc<dyn Permits>,
    /// The ledger that is told of what the agent sees.
    pub ledger: Arc<dyn Ledger>,
    /// The books, where this process keeps them.
    pub books: Option<Arc<dyn NodeBooks>>,
    /// What SIGHUP has read again.
    pub settings: Box<dyn Settings>,
    /// What holds for VM files that do not say it.
    pub usual: Usual,
}

/// The books of this host's node, where they are kept in this process. No call waits for longer than
/// a short lock.
///
/// The agent knows a plugin by its permits alone. A program that keeps the books beside its agent can
/// also show them, and can count VMs of before a restart until their hypervisors were looked for.
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

/// The configuration file of the program, as far as SIGHUP has it read again. The disk is asked apart;
/// this judges the text.
pub trait Settings: Send {
    /// What problems call the file.
    fn file(&self) -> &'static str;

    /// Takes into force what may change while the program runs. Which keys have changed and wait for
    /// the next start.
    ///
    /// # Errors
    /// Everything that is wrong with the text: what was in force stays so.
    fn follow(&mut self, text: &str) -> Result<Vec<&'static str>, Vec<Problem>>;
}
