//! What can go wrong in the lab.

use std::io;
use std::path::PathBuf;
use std::time::Duration;
use thiserror::Error;

/// Why the lab could not do something.
#[derive(Debug, Error)]
pub enum LabError {
    /// Something is not on this machine.
    #[error("{what} is missing: {how}")]
    Missing {
        /// What.
        what: String,
        /// How to get it.
        how: String,
    },
    /// A script of the project failed.
    #[error("{script} failed: {words}")]
    Script {
        /// Which one.
        script: String,
        /// Its last words.
        words: String,
    },
    /// A file could not be read or written.
    #[error("{path}")]
    File {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A process could not be started.
    #[error("cannot start {program}")]
    Start {
        /// Which one.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// The guest's QEMU has ended.
    #[error("the qemu of guest {guest} has ended: {words}")]
    Ended {
        /// Whose.
        guest: String,
        /// Its last words.
        words: String,
    },
    /// QEMU refused a command.
    #[error("qemu refused {command}: {words}")]
    Refused {
        /// Which one.
        command: String,
        /// QEMU's words.
        words: String,
    },
    /// The load program refused a request.
    #[error("the load program refused {request:?}: {words}")]
    Declined {
        /// Which one.
        request: String,
        /// Its words.
        words: String,
    },
    /// A peer said something that is not its protocol, or hung up.
    #[error("{peer} broke off: {words}")]
    Broken {
        /// Who.
        peer: String,
        /// What was found.
        words: String,
    },
    /// Something did not happen in time.
    #[error("no {what} within {limit:?}; last seen: {seen}")]
    Late {
        /// What was waited for.
        what: String,
        /// How long.
        limit: Duration,
        /// What there was instead.
        seen: String,
    },
}
