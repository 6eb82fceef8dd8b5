//! Between what a scaler says and hears, and the bytes that its peers read and write.
//!
//! Pure functions, so that a simulation carries the same bytes as a shell does. A shell
//! decides where they go, how long it waits, and what it logs. An answer by status is a
//! refusal: it did not happen. Everything else that is no whole answer leaves that open.
//!
//! What an agent says to a guest's informant is in [`informant`], to the plugin in [`plugin`],
//! and what its own call-back server is asked in [`callback`].

pub mod callback;
mod error;
pub mod informant;
pub mod plugin;

pub use callback::{Uncalled, call_answer, called};
pub use error::WireError;
pub use informant::{Offered, Said, from_informant, to_informant};
pub use plugin::{UNSAID, from_plugin, to_plugin, to_plugin_telling};
