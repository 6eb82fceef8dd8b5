//! The program `windlass-informant`.

use std::io::Write;
use std::process::ExitCode;
use windlass_informant::config::{self, Command};
use windlass_informant::{log, run};

/// A command line that is not understood (`EX_USAGE`).
const USAGE: u8 = 64;

fn main() -> ExitCode {
    let result = match config::parse(std::env::args_os().skip(1)) {
        Ok(Command::Run(config)) => run::run(&config),
        Ok(Command::Help) => print(config::HELP),
        Ok(Command::Version) => {
            print(concat!("windlass-informant ", env!("CARGO_PKG_VERSION"), "\n"))
        }
        Err(error) => {
            log::warn(format_args!("{error}"));
            return ExitCode::from(USAGE);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log::warn(format_args!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn print(text: &str) -> anyhow::Result<()> {
    Ok(std::io::stdout().write_all(text.as_bytes())?)
}
