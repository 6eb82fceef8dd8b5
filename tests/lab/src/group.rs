//! A cgroup that a guest's QEMU has to itself, on a machine that lets us make one.
//!
//! It lies at the top of the hierarchy: on cgroup v1 once below `cpu` and once below `cpuacct`, on v2 once.
//! It goes with this value, once nothing is in it any more; one that a killed process has left is removed by
//! the next that is made.

use crate::{LabError, leash};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// How the name of each begins; the id of this process and a number follow.
const PREFIX: &str = "windlass-lab-";

/// How long the kernel may take to let go of one whose processes have ended.
const EMPTIES: Duration = Duration::from_secs(2);

/// One that is older than this and whose process is gone was left behind.
const LEFT: Duration = Duration::from_secs(600);

/// How much more of a crowded machine a guest gets that is preferred.
const PREFERRED: u32 = 16;

/// Enters the cgroups of the first two words, and becomes the program of the rest.
const ENTER: &str =
    r#"echo $$ >"$0/cgroup.procs" && echo $$ >"$1/cgroup.procs" && shift && exec "$@""#;

static MADE: AtomicU32 = AtomicU32::new(0);

/// A cgroup.
#[derive(Debug)]
pub struct Group {
    /// Where its quota stands.
    folder: PathBuf,
    /// Where the kernel accounts for what it uses; the same on cgroup v2.
    accounts: PathBuf,
    version: Version,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    V1,
    V2,
}

/// Where cgroups are made.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    quota: PathBuf,
    accounts: PathBuf,
    version: Version,
}

/// Whether a guest can have a cgroup of its own here; if not, why.
///
/// # Errors
/// What this machine lacks or refuses.
pub fn groups_can_be_made() -> Result<(), String> {
    let made = Group::make().and_then(|group| group.can_be_entered());
    made.map_err(|error| {
        let source = std::error::Error::source(&error).map(|source| format!(": {source}"));
        format!("{error}{}", source.unwrap_or_default())
    })
}

// === impl Group ===

impl Group {
    /// Makes one.
    pub(crate) fn make() -> Result<Self, LabError> {
        let mounts =
            fs::read_to_string("/proc/self/mounts").map_err(of(Path::new("/proc/self")))?;
        let place =
            Place::of(&mounts).ok_or_else(|| missing("no cgroup hierarchy has CPU quotas"))?;
        sweep(&place);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{}-{number}", std::process::id());
        let group = Self {
            folder: place.quota.join(&name),
            accounts: place.accounts.join(&name),
            version: place.version,
        };
        for folder in group.folders() {
            fs::create_dir(folder).map_err(of(folder))?;
        }
        let file = group.folder.join(group.version.quota());
        if !file.is_file() {
            return Err(missing("the CPU controller is off at the top of the cgroup hierarchy"));
        }
        fs::File::options().write(true).open(&file).map_err(of(&file))?;
        Ok(group)
    }

    /// A command for a program that runs in it, and dies with this process.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = leash::command("sh");
        command.args(["-c", ENTER]).arg(&self.folder).arg(&self.accounts).arg(program);
        command
    }

    fn can_be_entered(&self) -> Result<(), LabError> {
        let start = |source| LabError::Start { program: "sh".to_owned(), source };
        let mut command = self.command(Path::new("true"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let status = leash::spawn(command).and_then(|mut child| child.wait()).map_err(start)?;
        if status.success() { Ok(()) } else { Err(missing("no process may enter a cgroup")) }
    }

    /// The folder that has its quota.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// The CPU quota that stands, in thousandths of a CPU, rounded up; `None` if there is none.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn quota(&self) -> io::Result<Option<u64>> {
        let text = match self.version {
            Version::V1 => {
                let quota = self.read("cpu.cfs_quota_us")?;
                format!("{} {}", quota.trim(), self.read("cpu.cfs_period_us")?)
            }
            Version::V2 => self.read("cpu.max")?,
        };
        milli(&text).ok_or_else(|| io::Error::other(format!("{text:?} is no CPU quota")))
    }

    /// The CPU time that it has used since it was made, as the host accounts for it.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn usage(&self) -> io::Result<Duration> {
        match self.version {
            Version::V1 => {
                let text = fs::read_to_string(self.accounts.join("cpuacct.usage"))?;
                text.trim().parse().map(Duration::from_nanos).map_err(io::Error::other)
            }
            Version::V2 => {
                let text = self.read("cpu.stat")?;
                let line = text.lines().find_map(|line| line.strip_prefix("usage_usec "));
                let usage = line.and_then(|usage| usage.trim().parse().ok());
                usage.map(Duration::from_micros).ok_or_else(|| io::Error::other(text.clone()))
            }
        }
    }

    /// Has everything else on the machine give way to it: what it is granted, it gets.
    ///
    /// # Errors
    /// If the kernel refuses it.
    pub fn prefer(&self) -> io::Result<()> {
        let (file, usual) = match self.version {
            Version::V1 => ("cpu.shares", 1024),
            Version::V2 => ("cpu.weight", 100),
        };
        fs::write(self.folder.join(file), (usual * PREFERRED).to_string())
    }

    fn folders(&self) -> Vec<&Path> {
        let mut folders = vec![self.folder.as_path()];
        if self.accounts != self.folder {
            folders.push(&self.accounts);
        }
        folders
    }

    fn read(&self, file: &str) -> io::Result<String> {
        fs::read_to_string(self.folder.join(file))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let start = Instant::now();
        for folder in self.folders() {
            while fs::remove_dir(folder).is_err() && folder.exists() && start.elapsed() < EMPTIES {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }
}

// === impl Version ===

impl Version {
    const fn quota(self) -> &'static str {
        match self {
            Self::V1 => "cpu.cfs_quota_us",
            Self::V2 => "cpu.max",
        }
    }
}

// === impl Place ===

impl Place {
    /// By what is mounted: a hierarchy of v1 that has the CPU controller, or else that of v2.
    fn of(mounts: &str) -> Option<Self> {
        let mount = |kind: &str, controller: Option<&str>| {
            mounts.lines().find_map(|line| {
                let words: Vec<&str> = line.split(' ').collect();
                let (place, found) = (words.get(1)?, words.get(2)?);
                let mut options = words.get(3)?.split(',');
                let fits = controller.is_none_or(|wanted| options.any(|option| option == wanted));
                (*found == kind && fits).then(|| PathBuf::from(place))
            })
        };
        if let Some(quota) = mount("cgroup", Some("cpu")) {
            let accounts = mount("cgroup", Some("cpuacct"))?;
            return Some(Self { quota, accounts, version: Version::V1 });
        }
        let top = mount("cgroup2", None)?;
        Some(Self { quota: top.clone(), accounts: top, version: Version::V2 })
    }
}

/// Removes what processes left behind that are gone.
fn sweep(place: &Place) {
    for folder in [&place.quota, &place.accounts] {
        let Ok(entries) = fs::read_dir(folder) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
            let Some((pid, _)) = owner.and_then(|owner| owner.split_once('-')) else { continue };
            let made = entry.metadata().and_then(|found| found.modified());
            let age = made.ok().and_then(|made| SystemTime::now().duration_since(made).ok());
            if !Path::new("/proc").join(pid).exists() && age.is_some_and(|age| age > LEFT) {
                // Something may be in it, or somebody was faster.
                let _left = fs::remove_dir(entry.path());
            }
        }
    }
}

/// `max 100000`, `-1 100000` or `25000 100000`, in thousandths of a CPU.
fn milli(text: &str) -> Option<Option<u64>> {
    let (quota, period) = text.trim().split_once(' ')?;
    let period: u64 = period.trim().parse().ok().filter(|period| *period > 0)?;
    match quota {
        "max" | "-1" => Some(None),
        quota => Some(Some(quota.parse::<u64>().ok()?.checked_mul(1000)?.div_ceil(period))),
    }
}

fn of(path: &Path) -> impl Fn(io::Error) -> LabError {
    let path = path.to_owned();
    move |source| LabError::File { path: path.clone(), source }
}

fn missing(why: &str) -> LabError {
    let (what, how) = ("a cgroup for a guest".to_owned(), why.to_owned());
    LabError::Missing { what, how }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_are_read_in_the_forms_of_both_versions() {
        assert_eq!(milli("max 100000\n"), Some(None));
        assert_eq!(milli("-1 100000\n"), Some(None));
        assert_eq!(milli("25000 100000\n"), Some(Some(250)));
        assert_eq!(milli("1 3000"), Some(Some(1)));
        assert_eq!(milli("25000"), None);
        assert_eq!(milli("x 100000"), None);
    }

    #[test]
    fn the_hierarchy_with_the_cpu_controller_is_the_place() {
        let v2 = "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n";
        let place = Place::of(v2).unwrap();
        assert_eq!(place.version, Version::V2);
        assert_eq!(place.quota, Path::new("/sys/fs/cgroup"));
        let v1 = "cgroup /c/cpuset cgroup rw,cpuset 0 0\ncgroup /c/cpu cgroup rw,cpu 0 0\n\
                  cgroup /c/acct cgroup rw,cpuacct 0 0\ncgroup2 /c/unified cgroup2 rw 0 0\n";
        let place = Place::of(v1).unwrap();
        assert_eq!((place.quota, place.accounts), ("/c/cpu".into(), "/c/acct".into()));
        assert_eq!(Place::of("proc /proc proc rw 0 0\n"), None);
    }
}
