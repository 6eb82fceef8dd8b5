//! A guest's files, an agent that registers, the program itself.

#[path = "support/agent.rs"]
pub(crate) mod agent;
#[path = "support/guest.rs"]
pub(crate) mod guest;
#[path = "support/program.rs"]
pub(crate) mod program;
