//! Who may ask the plugin: for permits by what the API server says of the caller's token, as the scheduler by certificate.
//!
//! An agent is a pod of one account, and its token is bound to a node: it may ask for the VMs of that node and for no
//! others. What the API server said is kept for a while in [`Reviews`]. The shell reads tokens, asks the API server and
//! answers; nothing here has seen a token.

mod caller;
mod denied;
pub mod reviews;

pub use caller::Caller;
pub use denied::Denied;
pub use reviews::{Look, Reviews, TokenHash, Verdict};
