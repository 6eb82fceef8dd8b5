//! The command line: every command, its options, and an example of each; from it to a command, and from
//! its result to an exit code.

use crate::failure::Failure;
use crate::{command, host, out};
use clap::{CommandFactory, Parser, Subcommand};
use std::process::ExitCode;

/// Sizes running VMs by their load: vCPUs and memory, within seconds, never beyond the node.
#[derive(Debug, Parser)]
#[command(name = "windlass", version, max_term_width = 100, after_help = EXAMPLES, after_long_help = LONG)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run Windlass on this host: an agent and the books, in one process.
    Host(host::Args),
    /// Show every VM live: load, goal, permit, size, and what each waits for.
    Top(command::top::Args),
    /// Say why a VM has the size that it has, what it waits for, and how it came to that.
    Explain(command::explain::Args),
    /// Add, list, check, release and remove VMs.
    Vm(command::vm::Args),
    /// Keep one VM at its size for a while.
    Pause(command::pause::PauseArgs),
    /// Let a paused VM follow its load again.
    Resume(command::pause::ResumeArgs),
    /// Keep every VM of the host at its size, also after a restart, until `thaw`.
    Freeze(command::pause::FreezeArgs),
    /// Let the VMs of a frozen host follow their load again.
    Thaw(command::pause::FreezeArgs),
    /// Show or change what a running host logs.
    LogLevel(command::log_level::Args),
    /// Say what is right and wrong, from the machine to each guest, and what to do about it.
    Doctor(command::doctor::Args),
    /// Check host.toml and VM files, or a folder of them, without using them.
    Check(command::check::Args),
    /// Try whether an informant, a plugin or an agent keeps to its protocol.
    Conformance(command::conformance::Args),
    /// Print a completion script for a shell.
    Completions(command::completions::Args),
}

const EXAMPLES: &str = "\
Examples:
  windlass host --config /etc/windlass/host.toml run it here
  windlass vm add db1 --file db1.toml            let a VM follow its load
  windlass top                                   look at all VMs
  windlass doctor                                what is wrong, and what to do?
  windlass explain db1                           why has db1 this size, and what does it wait for?
  windlass freeze                                stop everything where it is

`windlass help COMMAND` has more examples; `windlass --help` explains the words.";

const LONG: &str = "\
How it works:
  Each guest runs windlass-informant, which reports its load. `windlass host` computes a *goal*
  from it, has the *books* grant and reserve more before a VM grows, and asks the guest for its
  *consent* before memory is taken. It attaches to running VMs by their QMP monitor; it never
  starts or stops one.

Examples:
  windlass host --config /etc/windlass/host.toml
  windlass check /etc/windlass/host.toml /etc/windlass/vms.d/db1.toml
  windlass vm add db1 --file db1.toml
  windlass top
  windlass top --output json | jq '.vms[].upper'
  windlass explain db1
  windlass pause db1 --for 2h
  windlass freeze

Exit codes:
  0   done
  1   the host refused, or what was checked does not hold
  64  the command line makes no sense
  65  a file is invalid; every problem is named with field, value and limit
  66  there is no such file or VM
  69  no answer at the socket or the target
  73  something could not be written
  77  this user may not
  130 Ctrl-C ended the watching of an order, which goes on";

/// Parses the command line, runs the command, says what went wrong, and gives the exit code.
pub fn main() -> ExitCode {
    let folder = std::env::current_dir().ok();
    let cli = match command::completions::answer(Cli::command, folder.as_deref()) {
        Ok(true) => return ExitCode::SUCCESS,
        Ok(false) => Cli::try_parse(),
        Err(error) => Err(error),
    };
    match cli.map(|cli| dispatch(cli.command)) {
        Err(error) => usage(&error),
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(Failure::Reported)) => Failure::Reported.code(),
        Ok(Err(failure)) => {
            out::aside(&format!("windlass: {failure}"));
            failure.code()
        }
    }
}

fn dispatch(command: Command) -> Result<(), Failure> {
    match command {
        Command::Host(args) => host::run(&args),
        Command::Top(args) => command::top::run(&args),
        Command::Explain(args) => command::explain::run(&args),
        Command::Vm(args) => command::vm::run(&args),
        Command::Pause(args) => command::pause::pause(&args),
        Command::Resume(args) => command::pause::resume(&args),
        Command::Freeze(args) => command::pause::freeze(&args),
        Command::Thaw(args) => command::pause::thaw(&args),
        Command::LogLevel(args) => command::log_level::run(&args),
        Command::Doctor(args) => command::doctor::run(&args),
        Command::Check(args) => command::check::run(&args),
        Command::Conformance(args) => command::conformance::run(&args),
        Command::Completions(args) => command::completions::run(&args),
    }
}

/// Help and version are answers; everything else is a usage error, 64.
fn usage(error: &clap::Error) -> ExitCode {
    // Nothing is left to tell to whom, if the terminal is gone.
    let _ = error.print();
    if error.use_stderr() { Failure::Usage(String::new()).code() } else { ExitCode::SUCCESS }
}
