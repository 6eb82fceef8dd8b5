//! Plays schedules, and says which broke a law.

use clap::Parser;
use std::process::ExitCode;
use windlass_sim::arguments::Arguments;
use windlass_sim::run;

fn main() -> ExitCode {
    match run::run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("windlass-sim: {error:#}");
            ExitCode::from(64)
        }
    }
}
