//! A guest's files, an agent that registers, a client that may misbehave, the program itself.

#[path = "support/agent.rs"]
pub(crate) mod agent;
#[path = "support/client.rs"]
pub(crate) mod client;
#[path = "support/guest.rs"]
pub(crate) mod guest;
#[path = "support/program.rs"]
pub(crate) mod program;
