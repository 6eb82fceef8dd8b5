//! A page of commands, and a shell that runs them as a reader does: one fenced block after the other, in one folder.

use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use windlass_lab::leash;

/// One block takes no longer; `kubectl wait` ends earlier, and says what it waited for.
const LIMIT: Duration = Duration::from_secs(900);

/// How often it is looked whether it has ended.
const EVERY: Duration = Duration::from_millis(50);

/// A fenced block.
#[derive(Debug)]
pub struct Block {
    /// The words behind its first fence.
    pub info: String,
    /// What is in it.
    pub text: String,
    /// The line of its first fence.
    pub line: usize,
}

/// A shell of a person who reads the page.
pub struct Shell {
    folder: PathBuf,
    variables: BTreeMap<String, String>,
}

/// The blocks of a page, in their order.
///
/// # Errors
/// A fence has no end.
pub fn blocks(page: &str) -> Result<Vec<Block>> {
    let (mut blocks, mut open): (Vec<Block>, Option<Block>) = (Vec::new(), None);
    for (at, line) in page.lines().enumerate() {
        match (line.strip_prefix("```"), open.take()) {
            (Some(info), None) => {
                let (info, text) = (info.to_owned(), String::new());
                open = Some(Block { info, text, line: at + 1 });
            }
            (Some(_), Some(block)) => blocks.push(block),
            (None, Some(mut block)) => {
                block.text.push_str(line);
                block.text.push('\n');
                open = Some(block);
            }
            (None, None) => {}
        }
    }
    ensure!(open.is_none(), "a fence without an end: {open:?}");
    Ok(blocks)
}

// === impl Shell ===

impl Shell {
    /// A shell in this folder, with these variables; of the variables of the test it keeps none but `PATH`.
    pub fn new(folder: &Path, variables: &[(&str, String)]) -> Self {
        let own = |(name, value): &(&str, String)| ((*name).to_owned(), value.clone());
        Self { folder: folder.to_owned(), variables: variables.iter().map(own).collect() }
    }

    /// Runs these commands, and gives what they print. The first that fails ends them.
    ///
    /// # Errors
    /// A command failed, or they take too long; with all that they printed.
    pub async fn run(&self, commands: &str) -> Result<String> {
        let log = self.folder.join("block.log");
        let out = File::create(&log)?;
        let mut command = leash::command("bash");
        command.args(["-e", "-u", "-x", "-o", "pipefail", "-c", commands]);
        command.current_dir(&self.folder).env_clear().envs(&self.variables);
        command.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(out);
        let mut process =
            tokio::task::spawn_blocking(move || leash::spawn(command)).await?.context("bash")?;
        let start = Instant::now();
        let status = loop {
            if let Some(status) = process.try_wait()? {
                break status;
            }
            if start.elapsed() > LIMIT {
                process.kill()?;
                process.wait()?;
                bail!("not done within {LIMIT:?}:\n{}", fs::read_to_string(&log)?);
            }
            tokio::time::sleep(EVERY).await;
        };
        let said = fs::read_to_string(&log)?;
        ensure!(status.success(), "{status}:\n{said}");
        Ok(said)
    }
}
