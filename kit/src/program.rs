//! What all our programs share: exit codes, listening, output, shutdown.
//!
//! Exit codes follow sysexits, so that a script can tell an invalid file (65) from an address in use (73).

use crate::config::{Unread, read_text};
use crate::tasks::Tasks;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{self, ErrorKind, Write};
use std::net::SocketAddr;
use std::num::NonZero;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tracing::warn;

/// Why a program failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Failure {
    /// The command line is invalid.
    #[error("{0}")]
    Usage(String),
    /// A file is invalid; one line per problem.
    #[error("{0}")]
    Invalid(String),
    /// A file is missing.
    #[error("{0}")]
    Missing(String),
    /// An address, a folder or a file cannot be created.
    #[error("{0}")]
    CannotCreate(String),
    /// A part of the program failed.
    #[error("{0}")]
    Failed(String),
}

// === impl Failure ===

impl Failure {
    /// The exit code.
    pub fn code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Failed(_) => 1,
            Self::Usage(_) => 64,
            Self::Invalid(_) => 65,
            Self::Missing(_) => 66,
            Self::CannotCreate(_) => 73,
        })
    }
}

/// Prints a failure of `name` on standard error, and returns the exit code.
pub fn end(name: &str, result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // Without standard error there is no place left to report to.
            let _ = writeln!(io::stderr(), "{name}: {failure}");
            failure.code()
        }
    }
}

/// How long disk work may take after everything else has ended.
const LAST: Duration = Duration::from_millis(500);

/// The most threads for tasks, with one per core: our programs mostly wait.
const MOST_WORKERS: usize = 8;

/// Runs a program's future on a new runtime. The program ends even if a disk hangs.
///
/// # Errors
/// The future's error, or the runtime cannot start.
pub fn block_on<E: From<Failure>>(run: impl Future<Output = Result<(), E>>) -> Result<(), E> {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let mut builder = Builder::new_multi_thread();
    block_with(builder.worker_threads(cores.min(MOST_WORKERS)), run)
}

/// The same on one thread, for a program whose work is so short that to pass it between threads
/// would cost more. Work on a disk has threads of its own all the same.
///
/// # Errors
/// As the future says, or there is no runtime.
pub fn block_on_one_thread<E: From<Failure>>(
    run: impl Future<Output = Result<(), E>>,
) -> Result<(), E> {
    block_with(&mut Builder::new_current_thread(), run)
}

fn block_with<E: From<Failure>>(
    builder: &mut Builder,
    run: impl Future<Output = Result<(), E>>,
) -> Result<(), E> {
    let runtime = builder
        .enable_all()
        .build()
        .map_err(|error| Failure::Failed(format!("cannot start: {error}")))?;
    take_all_descriptors();
    let result = runtime.block_on(run);
    runtime.shutdown_timeout(LAST);
    result
}

/// Raises the limit of descriptors to the maximum: an agent of 1,000 VMs needs more than the usual 1,024. On
/// failure, later errors report the missing descriptors.
fn take_all_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// The text of a configuration file.
///
/// # Errors
/// It is missing or cannot be read.
pub fn config_text(path: &Path) -> Result<String, Failure> {
    read_text(path).map_err(|unread| {
        let is_missing = matches!(unread, Unread::Missing);
        let failure = if is_missing { Failure::Missing } else { Failure::Invalid };
        failure(format!("{}: {unread}", path.display()))
    })
}

/// Listens at an address; port 0 takes a free port.
///
/// # Errors
/// The system cannot listen there.
pub async fn listen(what: &str, at: SocketAddr) -> Result<(TcpListener, SocketAddr), Failure> {
    let listened = async {
        let listener = TcpListener::bind(at).await?;
        let address = listener.local_addr()?;
        io::Result::Ok((listener, address))
    };
    listened
        .await
        .map_err(|error| Failure::CannotCreate(format!("cannot serve {what} at {at}: {error}")))
}

/// Prints text on standard output. A closed pipe is not an error.
///
/// # Errors
/// Standard output cannot be written.
pub fn say(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::CannotCreate(format!("cannot write to standard output: {error}")))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Stops all tasks, within `grace`.
///
/// # Errors
/// A vital task had failed.
pub async fn drain(tasks: &Tasks, grace: Duration) -> Result<(), Failure> {
    if let Err(stuck) = tasks.drain(grace).await {
        warn!(%stuck, "ended without them");
    }
    match tasks.failure() {
        Some(failed) => Err(Failure::Failed(failed.to_string())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;

    #[tokio::test(start_paused = true)]
    async fn a_program_fails_with_its_vital_tasks_and_with_no_other() {
        let tasks = Tasks::default();
        tasks.minor("odd", async { Err("odd") });
        tasks.minor("deaf", pending::<Result<(), String>>());
        assert_eq!(drain(&tasks, LAST).await, Ok(()));
        tasks.vital("heart", async { Err("no pulse") });
        let failed = Failure::Failed("heart: no pulse".to_owned());
        assert_eq!(drain(&tasks, LAST).await, Err(failed));
    }
}
