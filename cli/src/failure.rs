//! How a command fails: what is said, and the exit code that goes with it.
//!
//! Codes follow sysexits where one fits, so that a script can tell a broken file (65) from a
//! host that does not answer (69).

use std::path::PathBuf;
use std::process::ExitCode;
use thiserror::Error;
use windlass_kit::program;

/// Why a command did not do what it was asked for.
#[derive(Debug, Error)]
#[error("{0}")]
pub enum Failure {
    /// The command line makes no sense.
    Usage(String),
    /// A file is invalid; every problem on a line of its own.
    Invalid(String),
    /// There is no such file or VM.
    Missing(String),
    /// The host does not answer on its socket.
    #[error("no host answers at {socket}: {why}")]
    Unreachable {
        /// Where it was looked for.
        socket: PathBuf,
        /// What happened.
        why: String,
    },
    /// No server listens where something is to be tried.
    Absent(String),
    /// The host answered that it will not.
    Refused(String),
    /// Something could not be written or created.
    CannotCreate(String),
    /// This user may not.
    Forbidden(String),
    /// A person stopped waiting for what was ordered, which goes on.
    Unwatched(String),
    /// What was checked does not hold.
    Failed(String),
    /// As every program of Windlass fails.
    #[error(transparent)]
    Program(#[from] program::Failure),
    /// What was checked does not hold, and everything was said.
    #[error("")]
    Reported,
}

// === impl Failure ===

impl Failure {
    /// The exit code.
    pub fn code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Program(failure) => return failure.code(),
            Self::Failed(_) | Self::Reported | Self::Refused(_) => 1,
            Self::Usage(_) => 64,
            Self::Invalid(_) => 65,
            Self::Missing(_) => 66,
            Self::Unreachable { .. } | Self::Absent(_) => 69,
            Self::CannotCreate(_) => 73,
            Self::Forbidden(_) => 77,
            // As a shell spells the end by Ctrl-C.
            Self::Unwatched(_) => 130,
        })
    }
}
