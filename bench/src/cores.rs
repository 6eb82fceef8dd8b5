//! Which core runs what: a server on the first, those that ask it on the second.
//!
//! Where both share cores, a faster server is slowed by its own clients, and a ratio says little.

use anyhow::{Result, ensure};
use std::ffi::OsStr;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

/// Found out before this process takes one of them for itself.
static SHARED: LazyLock<bool> =
    LazyLock::new(|| std::thread::available_parallelism().is_ok_and(|cores| cores.get() < 2));

/// The words that a server's command begins with; none on a machine with one core.
pub(crate) fn server() -> &'static [&'static str] {
    if is_shared() { &[] } else { &["taskset", "--cpu-list", "0"] }
}

/// All threads of this process run on the second core from here on.
pub(crate) fn take_second() -> Result<()> {
    if is_shared() { Ok(()) } else { run_on("1") }
}

/// They run on any core again.
pub(crate) fn take_any() -> Result<()> {
    if is_shared() { Ok(()) } else { run_on("0-1023") }
}

/// Whether there is only one for all.
pub(crate) fn is_shared() -> bool {
    *SHARED
}

fn run_on(cores: impl AsRef<OsStr>) -> Result<()> {
    let mut command = Command::new("taskset");
    command.args(["--all-tasks", "--cpu-list", "--pid"]).arg(cores.as_ref());
    let done = command.arg(std::process::id().to_string()).stdout(Stdio::null()).status()?;
    ensure!(done.success(), "taskset: {done}");
    Ok(())
}
