//! The program `windlass-demo`.

use clap::Parser;
use std::process::ExitCode;
use windlass_cli::out;
use windlass_demo::Args;

fn main() -> ExitCode {
    match windlass_demo::run(Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            out::aside(&format!("windlass-demo: {failure}"));
            failure.code()
        }
    }
}
