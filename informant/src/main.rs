//! The program `windlass-informant`.

use std::process::ExitCode;
use windlass_informant::config::{self, Command};
use windlass_informant::run;

fn main() -> ExitCode {
    run::end(config::parse(std::env::args_os().skip(1)).map(|command| match command {
        Command::Run(config) => run::run(&config, ()),
        Command::Help => run::print(config::HELP),
        Command::Version => {
            run::print(concat!("windlass-informant ", env!("CARGO_PKG_VERSION"), "\n"))
        }
    }))
}
