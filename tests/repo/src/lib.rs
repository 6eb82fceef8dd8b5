//! The repository, as the tests beside this crate read it.
//!
//! Rules about the repository are ordinary tests in `tests/`; here is only what they share:
//! which files there are, what is in them, and what git and cargo say. A rule reads files; only
//! `skew` writes tables, when it is told to.

pub mod cargo;
pub mod imports;
pub mod lexed;
pub mod markdown;
pub mod pages;
pub mod patches;
pub mod source;

use std::path::PathBuf;
use std::process::{Command, Output};

/// The top of the repository.
pub fn root() -> PathBuf {
    // As cargo says now: what was built for another checkout may be run for this one.
    let here = std::env::var_os("CARGO_MANIFEST_DIR");
    let here = here.map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    here.ancestors().nth(2).expect("this crate is two folders below the top").to_owned()
}

/// The files of the repository, relative to its top, sorted: what git tracks, or, where there
/// is no git, everything outside of build output.
pub fn files() -> Vec<String> {
    let mut files = git(&["ls-files", "-z"]).map_or_else(walk, |listing| {
        listing.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect()
    });
    files.retain(|name| root().join(name).is_file());
    files.sort();
    files
}

/// The files whose names end so.
pub fn files_ending(suffix: &str) -> Vec<String> {
    files().into_iter().filter(|name| name.ends_with(suffix)).collect()
}

/// The text of a file of the repository.
pub fn read(name: &str) -> String {
    let path = root().join(name);
    std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{} cannot be read: {error}", path.display()))
}

/// What a git command prints; `None` where there is no git, or it fails.
pub fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).current_dir(root()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a program at the top of the repository.
pub fn run(program: &str, arguments: &[&str]) -> Output {
    Command::new(program)
        .args(arguments)
        .current_dir(root())
        .output()
        .unwrap_or_else(|error| panic!("{program} cannot be run: {error}"))
}

/// Fails with each complaint on a line of its own.
///
/// # Panics
/// If there is a complaint.
pub fn assert_none(rule: &str, complaints: &[String]) {
    assert!(complaints.is_empty(), "{rule}\n  {}", complaints.join("\n  "));
}

fn walk() -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for path in entries.flatten().map(|entry| entry.path()) {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
            let skipped = matches!(name.as_deref(), None | Some("target" | "dist" | ".git"));
            if path.is_dir() && !skipped {
                folders.push(path);
            } else if let Ok(relative) = path.strip_prefix(root())
                && path.is_file()
            {
                found.push(relative.to_string_lossy().into_owned());
            }
        }
    }
    found
}
