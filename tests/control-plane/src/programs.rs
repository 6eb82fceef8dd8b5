//! Where the programs of the control plane are, as `dev/control-plane` says.
//!
//! A test does not build them, as that takes minutes: it fails, and says how to have them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The path of a program.
///
/// # Panics
/// If it is not built.
pub fn path(name: &str) -> &'static Path {
    static PROGRAMS: OnceLock<Vec<PathBuf>> = OnceLock::new();
    let programs = PROGRAMS.get_or_init(|| find().unwrap_or_else(|words| panic!("{words}")));
    let found = programs.iter().find(|path| path.file_name().is_some_and(|file| file == name));
    found.unwrap_or_else(|| panic!("dev/control-plane has no {name}"))
}

fn find() -> Result<Vec<PathBuf>, String> {
    let script = script();
    let said = Command::new(&script).arg("--where").output();
    let said = said.map_err(|error| format!("{}: {error}", script.display()))?;
    if !said.status.success() {
        let words = String::from_utf8_lossy(&said.stderr);
        return Err(format!("there is no control plane for this test:\n{words}"));
    }
    Ok(String::from_utf8_lossy(&said.stdout).lines().map(PathBuf::from).collect())
}

/// Tests run in the folder of their package.
fn script() -> PathBuf {
    let here = std::env::current_dir().unwrap();
    let scripts = here.ancestors().map(|folder| folder.join("dev/control-plane"));
    let mut found = scripts.filter(|script| script.is_file());
    found.next().unwrap_or_else(|| panic!("{}: no dev/control-plane above it", here.display()))
}
