//! A cgroup that a VM's process has to itself: its quota, and how often the quota held it back.
//!
//! It is found by [`Machine::group_of`]. A unit's own cgroup is written through systemd, any other one by
//! file. A [`Limiter`](crate::Limiter) decides what is written.

use crate::machine::Machine;
use crate::mounts::{below, cpu_group};
use crate::no_group::NoGroup;
use crate::quota::{Quota, Step};
use crate::subtree::holds_only;
use crate::systemd::{self, SystemdError};
use crate::version::Version;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};
use thiserror::Error;

/// How long the kernel may take to show what systemd has been asked for: systemd answers before it writes.
pub const SETTLES: Duration = Duration::from_secs(1);

/// Between two looks at whether it shows it.
const PAUSE: Duration = Duration::from_millis(5);

const MAX: &str = "cpu.max";
const QUOTA: &str = "cpu.cfs_quota_us";
const PERIOD: &str = "cpu.cfs_period_us";
const STAT: &str = "cpu.stat";

/// The cgroup of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    pub(crate) machine: Machine,
    pub(crate) pid: i32,
    pub(crate) version: Version,
    pub(crate) path: String,
    pub(crate) folder: PathBuf,
    pub(crate) unit: Option<String>,
}

/// What the quota has done since the cgroup was made. Both counts are of periods in which the cgroup had
/// something to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Throttled {
    /// Periods that have passed.
    pub periods: u64,
    /// Those of them in which the quota was used up.
    pub throttled: u64,
    /// How long it waited for the next period, summed over the CPUs.
    pub time: Duration,
}

/// Why a quota was not written.
#[derive(Debug, Error)]
pub enum WriteError {
    /// The kernel has refused it. On cgroup v1 a quota below that of a cgroup within, and one above that
    /// of the cgroup around it, is invalid.
    #[error("cannot write {text} to {}", file.display())]
    Refused {
        /// The file.
        file: PathBuf,
        /// What was to be written.
        text: String,
        /// Why.
        source: io::Error,
    },
    /// systemd has not set it, or not in time.
    #[error("cannot set the CPU quota of unit {unit}")]
    Systemd {
        /// The unit.
        unit: String,
        /// Why.
        source: SystemdError,
    },
    /// What stands cannot be read.
    #[error("cannot read what stands")]
    Unread(#[source] io::Error),
}

// === impl Group ===

impl Group {
    /// The path by which the kernel names it: `/machine.slice/machine-qemu\x2d1\x2da.scope/libvirt`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Whose files it has.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The unit of systemd whose own cgroup it is. `None`: a cgroup below a unit's, or without systemd.
    pub fn unit(&self) -> Option<&str> {
        self.unit.as_deref()
    }

    /// The quota that stands.
    ///
    /// # Errors
    /// The file system's; [`ErrorKind::NotFound`] or the kernel's `ENODEV` if the cgroup is gone.
    pub fn read(&self) -> io::Result<Quota> {
        let (quota, said) = match self.version {
            Version::V2 => {
                let text = self.text(MAX)?;
                (Quota::parse_v2(&text), text)
            }
            Version::V1 => {
                let (quota, period) = (self.text(QUOTA)?, self.text(PERIOD)?);
                (Quota::parse_v1(&quota, &period), format!("{quota} {period}"))
            }
        };
        quota.ok_or_else(|| {
            let said = said.trim_end().replace('\n', "");
            self.invalid(&format!("{said:?} is no CPU quota"))
        })
    }

    /// How often the quota held the VM back.
    ///
    /// # Errors
    /// The file system's; [`ErrorKind::InvalidData`] if the kernel does not say it.
    pub fn throttled(&self) -> io::Result<Throttled> {
        let text = self.text(STAT)?;
        let (time, unit) = match self.version {
            Version::V1 => ("throttled_time", Duration::from_nanos as fn(u64) -> Duration),
            Version::V2 => ("throttled_usec", Duration::from_micros as fn(u64) -> Duration),
        };
        let figure = |name: &str| {
            let mut lines = text.lines().filter_map(|line| line.split_once(' '));
            let figure = lines.find_map(|(key, figure)| (key == name).then(|| figure.parse().ok()));
            figure.flatten().ok_or_else(|| self.invalid(&format!("{STAT} has no {name}")))
        };
        Ok(Throttled {
            periods: figure("nr_periods")?,
            throttled: figure("nr_throttled")?,
            time: unit(figure(time)?),
        })
    }

    /// Whether the process is still in it, or in one below it. This reads one file.
    ///
    /// # Errors
    /// The file system's; [`ErrorKind::NotFound`] if the process is gone.
    pub fn still_holds(&self) -> io::Result<bool> {
        let text = fs::read_to_string(self.machine.process(self.pid).join("cgroup"))?;
        let now = cpu_group(&text);
        Ok(now.is_some_and(|(version, path)| {
            version == self.version && below(path, &self.path).is_some()
        }))
    }

    /// Looks again for another process in it or below it.
    ///
    /// # Errors
    /// There is one, or it cannot be looked for.
    pub fn alone(&self) -> Result<(), NoGroup> {
        holds_only(&self.path, &self.folder, self.pid, &self.machine.process(self.pid).join("task"))
    }

    /// Changes what stands, of which `from` was read last. Afterwards the caller looks at what stands: a
    /// failure of systemd leaves that open.
    pub(crate) fn write(&self, from: Quota, to: Quota) -> Result<(), WriteError> {
        match (&self.unit, self.version) {
            (Some(unit), _) => self.write_unit(unit, to),
            (None, _) => self.write_files(from, to),
        }
    }

    /// What stands once that is `quota`, or once the time for it is over.
    pub(crate) fn settled(&self, quota: Quota) -> io::Result<Quota> {
        let started = Instant::now();
        loop {
            let stands = self.read()?;
            // A file shows at once what was written to it.
            if stands == quota || self.unit.is_none() || started.elapsed() >= SETTLES {
                return Ok(stands);
            }
            thread::sleep(PAUSE);
        }
    }

    /// Refuses a cgroup that has no quota, or whose quota cannot be changed. Nothing is written.
    pub(crate) fn can_be_written(&self) -> Result<(), NoGroup> {
        let files: &[&'static str] = match self.version {
            Version::V1 => &[QUOTA, PERIOD],
            Version::V2 => &[MAX],
        };
        for file in files {
            let path = self.folder.join(file);
            match OpenOptions::new().write(true).open(&path) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    return Err(NoGroup::NoController { path: self.path.clone(), file });
                }
                Err(source) => return Err(NoGroup::NotWritable { file: path, source }),
            }
        }
        Ok(())
    }

    fn write_unit(&self, unit: &str, to: Quota) -> Result<(), WriteError> {
        let failed = |source| WriteError::Systemd { unit: unit.to_owned(), source };
        systemd::set(&self.machine.systemctl, unit, to).map_err(failed)?;
        let (_, made) = to.for_systemd();
        if made == to {
            return Ok(());
        }
        // systemd keeps hundredths of a percent: the rest of what was found is written beside it.
        let stands = self.settled(made).map_err(WriteError::Unread)?;
        self.write_files(stands, to)
    }

    fn write_files(&self, from: Quota, to: Quota) -> Result<(), WriteError> {
        if self.version == Version::V2 {
            return self.put(MAX, &to.text_v2());
        }
        let steps = from.steps_to(to);
        for (at, step) in steps.iter().enumerate() {
            if let Err(error) = self.take(*step) {
                // Half of a change is none: what was written before is taken back.
                for done in &steps[..at] {
                    let _back = self.take(match done {
                        Step::Quota(_) => Step::Quota(from.quota),
                        Step::Period(_) => Step::Period(from.period),
                    });
                }
                return Err(error);
            }
        }
        Ok(())
    }

    fn take(&self, step: Step) -> Result<(), WriteError> {
        match step {
            Step::Quota(Some(quota)) => self.put(QUOTA, &quota.to_string()),
            Step::Quota(None) => self.put(QUOTA, "-1"),
            Step::Period(period) => self.put(PERIOD, &period.to_string()),
        }
    }

    fn put(&self, file: &str, text: &str) -> Result<(), WriteError> {
        let file = self.folder.join(file);
        // The file is never made: without it there is no such cgroup.
        let open = OpenOptions::new().write(true).truncate(true).open(&file);
        let written = open.and_then(|mut open: File| open.write_all(text.as_bytes()));
        written.map_err(|source| WriteError::Refused { file, text: text.to_owned(), source })
    }

    fn text(&self, file: &str) -> io::Result<String> {
        fs::read_to_string(self.folder.join(file))
    }

    fn invalid(&self, what: &str) -> io::Error {
        io::Error::new(ErrorKind::InvalidData, format!("cgroup {}: {what}", self.path))
    }
}
