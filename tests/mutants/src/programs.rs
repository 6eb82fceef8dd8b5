//! Which test programs a build has made.

use anyhow::{Context, Result};
use serde::Deserialize;
use std::io::BufRead;
use std::path::{Path, PathBuf};

/// A message of cargo, as far as it is of use.
#[derive(Debug, Deserialize)]
struct Message {
    manifest_path: Option<PathBuf>,
    package_id: Option<String>,
    target: Option<Target>,
    profile: Option<Profile>,
    executable: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
struct Target {
    kind: Vec<String>,
    name: String,
}

#[derive(Debug, Deserialize)]
struct Profile {
    test: bool,
}

/// A line for each test program: its package, its target, the folder that it runs in, the program.
pub(crate) fn programs(said: impl BufRead) -> Result<String> {
    let mut lines = String::new();
    for line in said.lines() {
        let line = line?;
        let message: Message = serde_json::from_str(&line).with_context(|| line.clone())?;
        if let Some(program) = message.program() {
            lines.push_str(&program);
        }
    }
    Ok(lines)
}

// === impl Message ===

impl Message {
    fn program(&self) -> Option<String> {
        let program = self.executable.as_deref()?;
        let target = self.target.as_ref().filter(|_| self.profile.as_ref().is_some_and(|p| p.test));
        let target = target?;
        let name = match target.kind.first()?.as_str() {
            kind @ ("lib" | "bin") => kind,
            _ => &target.name,
        };
        let folder = self.manifest_path.as_deref().and_then(Path::parent)?;
        let package = package(self.package_id.as_deref()?)?;
        Some(format!("{package} {name} {} {}\n", folder.display(), program.display()))
    }
}

/// The name in a package id: behind `#`, or that of the folder where they are the same.
fn package(id: &str) -> Option<&str> {
    let (source, version) = id.rsplit_once('#')?;
    match version.split_once('@') {
        Some((name, _)) => Some(name),
        None => source.rsplit('/').next(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_test_programs_are_told() {
        let said = concat!(
            r#"{"reason":"compiler-artifact","package_id":"path+file:///w/cli#windlass@0.1.0","manifest_path":"/w/cli/Cargo.toml","target":{"kind":["test"],"name":"host"},"profile":{"test":true},"executable":"/t/host-1"}"#,
            "\n",
            r#"{"reason":"compiler-artifact","package_id":"path+file:///w/kit#0.1.0","manifest_path":"/w/kit/Cargo.toml","target":{"kind":["lib"],"name":"kit"},"profile":{"test":true},"executable":"/t/kit-2"}"#,
            "\n",
            r#"{"reason":"compiler-artifact","package_id":"path+file:///w/kit#0.1.0","manifest_path":"/w/kit/Cargo.toml","target":{"kind":["bin"],"name":"kit"},"profile":{"test":false},"executable":"/t/kit"}"#,
            "\n",
            r#"{"reason":"build-finished","success":true}"#,
            "\n"
        );
        let programs = programs(said.as_bytes()).unwrap();
        assert_eq!(programs, "windlass host /w/cli /t/host-1\nkit lib /w/kit /t/kit-2\n");
    }
}
