//! Billing: periodic sizes of endpoints in, events out.
//!
//! One law governs this crate. **Billed is what was used**: a receiver that counts each
//! idempotency key once comes to the usage that was seen, whatever is lost, repeated or
//! restarted on the way; what is less than a whole second waits for the next event.
//!
//! ```text
//!   what VMs have ──► Meter::see ──► Record ─┐
//!   time          ──► Meter::end ──► Record ─┼─► written down ─► Meter::apply ─► queue ─► batch
//!   receiver      ──────────────► Delivered ─┘                                     (events)
//! ```
//!
//! Everything that is decided (how long a slice counts, which windows end, who is forgotten) stands in a
//! [`Record`]; [`Meter::apply`] only does sums. So a process that reads the same records back, also
//! with another configuration or a later release, gets the same events with the same keys.
//! Writing records down, before anything that follows from them is sent, is left to the shell.

mod endpoint;
mod event;
mod meter;
mod record;
mod usage;

pub use endpoint::{Endpoint, NoEndpoint, Source};
pub use event::{Event, Metric, Names, Origin, Usages, Wire};
pub use meter::{Meter, Rule, Sight};
pub use record::{Allocation, Record};
