//! `windlass completions`: a script that completes commands, options and VM names in a shell.
//!
//! The script has the shell call this program with `WINDLASS_COMPLETE` in its environment; so what is offered
//! is never older than the program, and the VMs are those that the host, or the plugin of a cluster, knows at this
//! moment. A person waits with a finger on the key: what does not answer at once has no VMs, and nothing is said of it.

use crate::api::VmEntry;
use crate::client::{self, Client};
use crate::failure::Failure;
use crate::options::DEFAULT_SOCKET;
use crate::out;
use crate::server::ServerOptions;
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
the default socket. Of `windlass explain` with --server or WINDLASS_SERVER they are those that the plugin of the
cluster shows, if it answers as soon; bash takes `:` for the end of a word, and knows WINDLASS_SERVER alone.

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
    candidates(of_host)
}

/// The same of a command that asks the plugin of a cluster, where one is said.
pub(crate) fn of_vms_anywhere() -> ArgValueCandidates {
    candidates(|| {
        let server = ServerOptions::of(given);
        match &server.server {
            Some(url) => server.names(url, WITHIN),
            None => of_host(),
        }
    })
}

fn candidates(names: fn() -> Vec<String>) -> ArgValueCandidates {
    ArgValueCandidates::new(move || names().into_iter().map(CompletionCandidate::new).collect())
}

fn of_host() -> Vec<String> {
    let socket = given(&["--socket"], Some("WINDLASS_SOCKET"));
    let socket = socket.map_or_else(|| DEFAULT_SOCKET.into(), PathBuf::from);
    let Ok(client) = Client::to(&socket) else { return Vec::new() };
    let asked =
        client::run(async { Ok(timeout(WITHIN, client.get::<Vec<VmEntry>>("/v1/vms")).await) });
    let entries = asked.ok().and_then(Result::ok).and_then(Result::ok).unwrap_or_default();
    entries.into_iter().map(|entry| entry.name.name).collect()
}

/// What stands behind one of these options of the line, or else in the variable.
fn given(options: &[&str], variable: Option<&str>) -> Option<OsString> {
    let line: Vec<OsString> = std::env::args_os().collect();
    said(&line, options).or_else(|| std::env::var_os(variable?).filter(|said| !said.is_empty()))
}

/// What stands behind one of these options.
fn said(line: &[OsString], options: &[&str]) -> Option<OsString> {
    let behind = |(at, word): (usize, &OsString)| {
        let word = word.to_str()?;
        if options.contains(&word) {
            return line.get(at + 1).cloned();
        }
        let (option, value) = word.split_once('=')?;
        options.contains(&option).then(|| value.into())
    };
    line.iter().enumerate().find_map(behind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_has_what_stands_behind_it_in_the_line() {
        for (line, socket, namespace) in [
            ("windlass explain --socket /a -n shop d", Some("/a"), Some("shop")),
            ("windlass explain --namespace=shop --socket=/a=b d", Some("/a=b"), Some("shop")),
            ("windlass explain --socket", None, None),
            ("windlass explain d", None, None),
        ] {
            let line: Vec<_> = line.split(' ').map(OsString::from).collect();
            let said = |options: &[&str]| said(&line, options);
            assert_eq!(said(&["--socket"]), socket.map(OsString::from), "{line:?}");
            assert_eq!(said(&["--namespace", "-n"]), namespace.map(OsString::from), "{line:?}");
        }
    }
}
