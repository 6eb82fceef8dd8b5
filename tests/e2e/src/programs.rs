//! The programs under test: `windlass` and what the lab needs.
//!
//! `WINDLASS_BIN` and `WINDLASS_INFORMANT` name them; without these, cargo builds `windlass`
//! into the folder that this test was built into, and `dev/static` the informant. `windlass-agent`
//! and `windlass-plugin` lie beside `windlass`, and are built there if it is.

use anyhow::{Context, Result, ensure};
use std::env;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use windlass_lab::Lab;

/// What a test runs.
#[derive(Clone, Debug)]
pub(crate) struct Programs {
    /// The command under test.
    pub(crate) windlass: PathBuf,
    /// What guests are made of.
    pub(crate) lab: Lab,
}

/// What the programs for the host are built from.
const PACKAGES: [&str; 3] = ["windlass", "windlass-agent-program", "windlass-plugin-program"];

static FOUND: OnceLock<Result<Programs, String>> = OnceLock::new();

// === impl Programs ===

impl Programs {
    /// Finds them, and builds them if need be; once per process. Blocks.
    pub(crate) fn find() -> Result<Self> {
        let found = FOUND.get_or_init(|| {
            let find = || Ok(Self { windlass: windlass()?, lab: Lab::prepared()? });
            find().map_err(|error: anyhow::Error| format!("{error:#}"))
        });
        found.clone().map_err(anyhow::Error::msg)
    }
}

/// A program that lies beside `windlass`.
pub(crate) fn beside(name: &str) -> Result<PathBuf> {
    let path = Programs::find()?.windlass.with_file_name(name);
    ensure!(path.is_file(), "{} is no file", path.display());
    Ok(path)
}

fn windlass() -> Result<PathBuf> {
    if let Some(named) = env::var_os("WINDLASS_BIN") {
        let path = PathBuf::from(named);
        ensure!(path.is_file(), "WINDLASS_BIN: {} is no file", path.display());
        return Ok(path.canonicalize()?);
    }
    // …/target/debug/deps/guests-0123456789abcdef
    let test = env::current_exe()?;
    let profile = test.ancestors().nth(2).context("a test lies in target/PROFILE/deps")?;
    let target = profile.parent().context("a profile lies in target")?;
    let status = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--quiet"])
        .args(PACKAGES.iter().flat_map(|package| ["--package", *package]))
        .env("CARGO_TARGET_DIR", target)
        .status()?;
    ensure!(status.success(), "cargo build of {PACKAGES:?}: {status}");
    let path = target.join("debug/windlass");
    ensure!(path.is_file(), "{} was not built", path.display());
    Ok(path)
}
