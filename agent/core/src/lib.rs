//! What the agent decides: the size of one VM, and its session with an informant.
//!
//! Start with [`scaler`]: the loop of a VM as a value, its parts, and the words for what it may do.
//! Below it: [`size_range`] knows what the VM may have; [`session`] which agent id counts;
//! [`in_flight`] when a peer may be asked, [`resize_outcomes`] whether a resize had an effect, and
//! [`backoff`] how long to leave either alone; [`settings`] says how often what is asked,
//! and how long that may take;
//! `version_fallback` knows which version to use with the plugin; [`journal`] keeps the decisions for
//! people. [`metrics_text`] reads what the guest serves, and [`wire`] turns what is said and heard into
//! bytes and back. A [`Vm`] is what is declared of one, by a file or by the objects of a cluster ([`declared`]), and the [`roster`] says
//! which VMs of a node are managed, let go, counted or forgotten.

pub mod backoff;
mod books_update;
pub mod declared;
pub mod event;
mod held_answers;
pub mod in_flight;
pub mod journal;
pub mod metrics_text;
pub mod own_pods;
pub mod resize_outcomes;
pub mod roster;
mod said;
pub mod scaler;
pub mod sentences;
pub mod session;
pub mod settings;
pub mod size_range;
mod version_fallback;
pub mod wire;

pub use books_update::BooksUpdate;
pub use event::{Action, Asking, Call, CallAnswer, Event, Failure, NotNow, Order};
pub use held_answers::HeldAnswers;
pub use in_flight::Plan;
pub use resize_outcomes::{Judged, Tally};
pub use roster::{Desired, Guest, Lifecycle, Roster, Vm};
pub use scaler::Scaler;
pub use scaler::charge::Charge;
pub use settings::{Periods, Settings, Times};
