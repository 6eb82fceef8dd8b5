//! `windlass-plugin`: see the library beside this file.

use std::process::ExitCode;

fn main() -> ExitCode {
    windlass_plugin_program::run::main()
}
