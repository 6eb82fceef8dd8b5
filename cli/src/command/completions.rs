//! `windlass completions`: a script that completes commands and options in a shell.

use crate::failure::Failure;
use crate::out;
use clap::Command;
use clap_complete::Shell;

/// Options of `windlass completions`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  windlass completions bash > /etc/bash_completion.d/windlass
  windlass completions zsh > \"${fpath[1]}/_windlass\"
  windlass completions fish > ~/.config/fish/completions/windlass.fish")]
pub struct Args {
    /// For which shell.
    pub shell: Shell,
}

/// Prints the script for this command line.
///
/// # Errors
/// Standard output cannot be written.
pub fn run(args: &Args, mut line: Command) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut line, "windlass", &mut script);
    out::text(&String::from_utf8_lossy(&script))
}
