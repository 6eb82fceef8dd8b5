//! From the command line to a command, and from its result to an exit code.

use crate::args::{Cli, Command};
use crate::failure::Failure;
use crate::{command, host, out};
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use std::process::ExitCode;

/// Parses the command line, runs the command, says what went wrong, and gives the exit code.
pub fn main() -> ExitCode {
    match command::completions::answer(Cli::command, std::env::current_dir().ok().as_deref()) {
        Ok(true) => return ExitCode::SUCCESS,
        Ok(false) => {}
        Err(error) => return usage(&error),
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    match dispatch(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Reported) => Failure::Reported.code(),
        Err(failure) => {
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
        Command::Freeze(args) => command::freeze::freeze(&args),
        Command::Thaw(args) => command::freeze::thaw(&args),
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
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        ExitCode::SUCCESS
    } else {
        Failure::Usage(String::new()).code()
    }
}
