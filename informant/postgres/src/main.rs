//! The program `windlass-informant-postgres`.

use std::io::Write;
use std::process::ExitCode;
use windlass_informant::{log, run};
use windlass_informant_postgres::config::{self, Command};
use windlass_informant_postgres::postgres::Postgres;

/// A command line that is not understood (`EX_USAGE`).
const USAGE: u8 = 64;

fn main() -> ExitCode {
    let result = match config::parse(std::env::args_os().skip(1)) {
        Ok(Command::Run(informant, names)) => {
            let postgres = Postgres::new(&informant, *names);
            run::run_beside(&informant, postgres)
        }
        Ok(Command::Print(text)) => print(&text),
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
