//! A program that is measured: its process, its folder, its log.

use crate::sizes::Resident;
use anyhow::{Context, Result, ensure};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use windlass_lab::{Folder, leash};

/// However busy the machine is.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A running program. It ends with this value.
pub(crate) struct Program {
    process: Child,
    folder: Folder,
}

// === impl Program ===

impl Program {
    /// Starts one that lies beside this benchmark, with `--config` and a file of this text in a
    /// folder of its own.
    pub(crate) fn start(name: &str, folder: Folder, config: &str) -> Result<Self> {
        Self::run(&beside(name)?, &[""; 0], folder, config)
    }

    /// Starts this one with these words before the same.
    pub(crate) fn run(
        binary: &Path,
        words: &[impl AsRef<OsStr>],
        folder: Folder,
        config: &str,
    ) -> Result<Self> {
        let file = folder.path().join("config.toml");
        fs::write(&file, config)?;
        let log = File::create(folder.path().join("log"))?;
        let mut command = leash::command(binary);
        command.args(words).arg("--config").arg(file);
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        Ok(Self { process: leash::spawn(command)?, folder })
    }

    /// Waits for something; fails at once if the program ends.
    pub(crate) fn until<T>(&mut self, what: &str, look: impl Fn(&Self) -> Option<T>) -> Result<T> {
        let begun = Instant::now();
        loop {
            if let Some(seen) = look(self) {
                return Ok(seen);
            }
            self.check()?;
            ensure!(begun.elapsed() < PATIENCE, "no {what}\n{}", self.log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Fails if it has ended.
    pub(crate) fn check(&mut self) -> Result<()> {
        let ended = self.process.try_wait()?;
        ensure!(ended.is_none(), "it ended: {ended:?}\n{}", self.log());
        Ok(())
    }

    /// What it said.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Where its files are.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The id of its process.
    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Its memory.
    pub(crate) fn resident(&self) -> Result<Resident> {
        Resident::of_process(self.process.id())
    }

    /// How many files and sockets it has open.
    pub(crate) fn descriptors(&self) -> Result<usize> {
        Ok(fs::read_dir(format!("/proc/{}/fd", self.process.id()))?.count())
    }

    /// How long its threads have had a core.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        cpu(self.process.id())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ended = self.process.kill();
        let _status = self.process.wait();
    }
}

/// How long the threads of a process have had a core.
pub(crate) fn cpu(process: u32) -> Result<Duration> {
    let mut time = Duration::ZERO;
    for thread in fs::read_dir(format!("/proc/{process}/task"))? {
        let text = fs::read_to_string(thread?.path().join("schedstat"))?;
        let nanos = text.split(' ').next().context("an empty schedstat")?;
        time += Duration::from_nanos(nanos.trim().parse()?);
    }
    Ok(time)
}

/// The file of a program that `make bench` builds.
pub(crate) fn beside(name: &str) -> Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name(name);
    ensure!(Path::is_file(&path), "{} is not there: `make bench` builds it", path.display());
    Ok(path)
}
