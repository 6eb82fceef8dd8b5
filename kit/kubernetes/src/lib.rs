//! How a process speaks to an API server: its client, what an answer means, and objects that are followed by a watch.
//!
//! It decides nothing and knows nothing of books or of scaling: the plugin of a cluster and its agents are built on it. An object is
//! read by the types of [`windlass_protocol`]; the client's own metadata stays here.

pub mod answers;
pub mod connect;
pub mod follow;
mod metrics;
pub mod objects;

pub use answers::{Failure, answered, answered_within};
pub use connect::connect;
pub use follow::{Followed, Following, Manner, Told, follow};
pub use metrics::Watches;
