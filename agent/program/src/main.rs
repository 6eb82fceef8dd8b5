//! `windlass-agent`: see the library beside this file.

use std::process::ExitCode;

fn main() -> ExitCode {
    windlass_agent_program::run::main()
}
