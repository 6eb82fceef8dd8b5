//! `windlass completions`: a script that completes commands, options and VM names in a shell.
//!
//! The script has the shell call this program with `WINDLASS_COMPLETE` in its environment; so what is offered
//! is never older than the program, and the VMs are those that the host knows at this moment. A person
//! waits with a finger on the key: a host that does not answer at once is one without VMs, and nothing is
//! said of it.

use crate::api::VmEntry;
use crate::client::{self, Client};
use crate::failure::Failure;
use crate::options::DEFAULT_SOCKET;
use crate::out;
use clap::Command;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use clap_complete::env::Shells;
use clap_complete::{CompleteEnv, Shell};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::timeout;

/// The variable by which a shell asks what may stand at the cursor.
const ANSWER: &str = "WINDLASS_COMPLETE";

/// What a shell calls, found where it finds commands.
const PROGRAM: &str = "windlass";

/// How long a person waits at most.
const WITHIN: Duration = Duration::from_secs(1);

#[derive(Debug, clap::Args)]
#[command(after_help = "\
VM names are those that the host knows, if it answers within a second at --socket, WINDLASS_SOCKET or
the default socket.

Examples:
  windlass completions bash > /etc/bash_completion.d/windlass
  windlass completions zsh > \"${fpath[1]}/_windlass\"
  windlass completions fish > ~/.config/fish/completions/windlass.fish")]
pub(crate) struct Args {
    /// For which shell.
    shell: Shell,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let name = args.shell.to_string();
    let mut script = Vec::new();
    let shells = Shells::builtins();
    let shell = shells
        .completer(&name)
        .ok_or_else(|| Failure::Failed(format!("there are no completions for {name}")))?;
    shell
        .write_registration(ANSWER, PROGRAM, PROGRAM, PROGRAM, &mut script)
        .map_err(|error| Failure::Failed(format!("cannot write the script: {error}")))?;
    out::text(&String::from_utf8_lossy(&script))
}

/// Answers a shell that asks what may stand at the cursor; says whether one did.
pub(crate) fn answer(line: fn() -> Command, folder: Option<&Path>) -> Result<bool, clap::Error> {
    CompleteEnv::with_factory(line).var(ANSWER).try_complete(std::env::args_os(), folder)
}

/// The VMs that the host knows, as what may stand for a VM.
pub(crate) fn of_vms() -> ArgValueCandidates {
    ArgValueCandidates::new(|| known().into_iter().map(CompletionCandidate::new).collect())
}

fn known() -> Vec<String> {
    let said = std::env::args_os().collect::<Vec<_>>();
    let socket = socket(&said)
        .or_else(|| std::env::var_os("WINDLASS_SOCKET").map(PathBuf::from))
        .unwrap_or_else(|| DEFAULT_SOCKET.into());
    let Ok(client) = Client::to(&socket) else { return Vec::new() };
    let asked =
        client::run(async { Ok(timeout(WITHIN, client.get::<Vec<VmEntry>>("/v1/vms")).await) });
    let entries = asked.ok().and_then(Result::ok).and_then(Result::ok).unwrap_or_default();
    entries.into_iter().map(|entry| entry.name.name).collect()
}

/// The socket that the line says.
fn socket(line: &[OsString]) -> Option<PathBuf> {
    let next = |at: usize| line.get(at + 1).map(PathBuf::from);
    let said = |(at, word): (usize, &OsString)| match word.to_str()? {
        "--socket" => next(at),
        word => word.strip_prefix("--socket=").map(PathBuf::from),
    };
    line.iter().enumerate().find_map(said)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_socket_is_the_one_of_the_line() {
        let said = |line: &str| socket(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert_eq!(said("windlass explain --socket /a d").as_deref(), Some(Path::new("/a")));
        assert_eq!(said("windlass explain --socket=/a d").as_deref(), Some(Path::new("/a")));
        assert_eq!(said("windlass explain --socket"), None);
        assert_eq!(said("windlass explain d"), None);
    }
}
