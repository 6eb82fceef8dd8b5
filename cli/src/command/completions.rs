//! `windlass completions`: a script that completes commands, options and VM names in a shell.
//!
//! The script has the shell call this program with `WINDLASS_COMPLETE` in its environment; so what is offered
//! is never older than the program, and the VMs are those that the host knows at this moment.

use crate::failure::Failure;
use crate::out;
use clap::Command;
use clap_complete::env::Shells;
use clap_complete::{CompleteEnv, Shell};
use std::path::Path;

/// The variable by which a shell asks what may stand at the cursor.
const ANSWER: &str = "WINDLASS_COMPLETE";

/// What a shell calls, found where it finds commands.
const PROGRAM: &str = "windlass";

/// Options of `windlass completions`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
VM names are those that the host knows, if it answers within a second at --socket, WINDLASS_SOCKET or
the default socket.

Examples:
  windlass completions bash > /etc/bash_completion.d/windlass
  windlass completions zsh > \"${fpath[1]}/_windlass\"
  windlass completions fish > ~/.config/fish/completions/windlass.fish")]
pub struct Args {
    /// For which shell.
    pub shell: Shell,
}

/// Prints the script.
///
/// # Errors
/// Standard output cannot be written.
pub fn run(args: &Args) -> Result<(), Failure> {
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
///
/// # Errors
/// The shell is not known, or standard output cannot be written.
pub fn answer(line: fn() -> Command, folder: Option<&Path>) -> Result<bool, clap::Error> {
    CompleteEnv::with_factory(line).var(ANSWER).try_complete(std::env::args_os(), folder)
}
