//! The program `windlass`.

use std::process::ExitCode;

fn main() -> ExitCode {
    windlass_cli::args::main()
}
