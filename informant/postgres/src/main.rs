//! The program `windlass-informant-postgres`.

use std::process::ExitCode;
use windlass_informant::run;
use windlass_informant_postgres::config::{self, Command};
use windlass_informant_postgres::postgres::Postgres;

fn main() -> ExitCode {
    run::end(config::parse(std::env::args_os().skip(1)).map(|command| match command {
        Command::Run(informant, names) => run::run(&informant, Postgres::new(&informant, *names)),
        Command::Print(text) => run::print(&text),
    }))
}
