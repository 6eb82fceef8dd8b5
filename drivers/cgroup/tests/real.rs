//! The cgroups of this machine: a process is found, limited, and let go.
//!
//! Where no cgroup can be made, or none with a quota, the test says so and ends.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test that called it")]

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use std::{env, fs, thread};
use windlass_drivers_cgroup::{Limiter, Machine, NoGroup, SetError, Version, WriteError};
use windlass_protocol::MilliCpu;
use windlass_testkit::{Folder, Process, wait};

/// Set for the process that is limited.
const CHILD: &str = "WINDLASS_CGROUP_CHILD";

/// Where hierarchies that limit CPU are mounted, and the file that a cgroup with a quota has.
const HIERARCHIES: [(&str, &str); 3] = [
    ("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us"),
    ("/sys/fs/cgroup/cpu,cpuacct", "cpu.cfs_quota_us"),
    ("/sys/fs/cgroup", "cpu.max"),
];

/// A cgroup that is removed with the value, once nothing is in it.
struct Made {
    path: PathBuf,
}

// === impl Made ===

impl Made {
    /// Makes one that has a quota, or says why there is none.
    fn make() -> Result<Self, String> {
        let mut why = Vec::new();
        for (hierarchy, file) in HIERARCHIES {
            let path = Path::new(hierarchy).join(format!("windlass-test-{}", std::process::id()));
            match fs::create_dir(&path) {
                Err(error) => why.push(format!("{hierarchy}: {error}")),
                Ok(()) => {
                    let made = Self { path };
                    if made.path.join(file).exists() {
                        return Ok(made);
                    }
                    why.push(format!("{hierarchy}: a new cgroup has no {file}"));
                }
            }
        }
        Err(why.join("; "))
    }

    /// Makes one in it, for threads.
    fn inner(&self, name: &str) -> Self {
        let path = self.path.join(name);
        fs::create_dir(&path).unwrap();
        if path.join("cgroup.type").exists() {
            fs::write(path.join("cgroup.type"), "threaded").unwrap();
        }
        Self { path }
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.path.join(file), text).unwrap();
    }

    fn add_thread(&self, thread: i32) {
        let v1 = self.path.join("tasks").exists();
        self.write(if v1 { "tasks" } else { "cgroup.threads" }, &thread.to_string());
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        // The kernel may take a moment to see that its last process has ended.
        for _ in 0..100 {
            if fs::remove_dir(&self.path).is_ok() {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
        eprintln!("{} is left", self.path.display());
    }
}

#[test]
fn a_process_is_found_limited_and_let_go() {
    let group = match Made::make() {
        Ok(group) => group,
        Err(why) => {
            eprintln!("not run: {why}");
            return;
        }
    };
    let inner = [group.inner("a"), group.inner("b")];
    let process = Process::start(env::current_exe().unwrap(), |command| {
        command.args(["--exact", "child", "--nocapture"]).env(CHILD, "1").stdin(Stdio::piped());
    });
    let pid = i32::try_from(process.id()).unwrap();
    let machine = Machine::default();
    group.write("cgroup.procs", &pid.to_string());
    let threads = wait::until_some("the child has its threads", || {
        let threads = threads(pid);
        (threads.len() >= 4).then_some(threads)
    });
    inner[0].add_thread(threads[1]);
    inner[1].add_thread(threads[2]);

    let found = machine.group_of(pid, &threads[1..3]).unwrap();
    let name = group.path.file_name().unwrap().to_str().unwrap();
    assert_eq!((found.path(), found.unit()), (format!("/{name}").as_str(), None));
    let refused = machine.group_of(pid, &[i32::try_from(std::process::id()).unwrap()]);
    assert!(matches!(refused, Err(NoGroup::OtherThread { .. })), "{refused:?}");

    limits(&group, &found, &inner[0]);
    another_process_is_seen(&machine, &inner[1], pid, &threads);
    drop(process);
    assert!(found.still_holds().is_err());
    drop(inner);
}

/// Sets, reads back, is refused, and puts back.
fn limits(group: &Made, found: &windlass_drivers_cgroup::Group, inner: &Made) {
    let state = Folder::create().unwrap();
    let stood = found.read().unwrap();
    assert!(stood.is_none(), "{stood}");
    let mut limiter = Limiter::open(found.clone(), &state.at("limits")).unwrap();
    for milli in [250, 1050, 10] {
        assert_eq!(limiter.set(cpu(milli)).unwrap(), cpu(milli));
        let look = limiter.look().unwrap();
        assert_eq!((look.limit, look.found), (cpu(milli), None));
    }
    drop(limiter);

    let mut next = Limiter::open(found.clone(), &state.at("limits")).unwrap();
    assert!(next.has_set());
    next.set(None).unwrap();
    assert_eq!(found.read().unwrap(), stood);
    found.throttled().unwrap();

    if found.version() == Version::V1 {
        // The period is written before the quota that is refused, and is taken back.
        group.write("cpu.cfs_period_us", "50000");
        let stood = found.read().unwrap();
        next.look().unwrap();
        inner.write("cpu.cfs_quota_us", "50000");
        let refused = next.set(cpu(250)).unwrap_err();
        let is_the_kernels =
            matches!(&refused, SetError::Unwritten { source: WriteError::Refused { .. }, .. });
        assert!(is_the_kernels, "{refused}");
        assert_eq!((found.read().unwrap(), next.has_set()), (stood, false));
        assert!(state.at("limits").read_dir().unwrap().next().is_none());
        inner.write("cpu.cfs_quota_us", "-1");

        // Another period is found, and put back.
        group.write("cpu.cfs_quota_us", "40000");
        let stood = found.read().unwrap();
        assert_eq!(next.look().unwrap().found, cpu(800));
        assert_eq!(next.set(cpu(900)).unwrap(), cpu(800));
        assert_eq!(next.set(cpu(300)).unwrap(), cpu(300));
        next.set(None).unwrap();
        assert_eq!(found.read().unwrap(), stood);
    }
}

/// A thread of another process, in a cgroup below.
fn another_process_is_seen(machine: &Machine, inner: &Made, pid: i32, threads: &[i32]) {
    let other = Process::start("sleep", |sleep| {
        sleep.arg("600");
    });
    if inner.path.join("cgroup.type").exists() {
        fs::write(inner.path.parent().unwrap().join("cgroup.procs"), other.id().to_string())
            .unwrap();
    } else {
        inner.write("cgroup.procs", &other.id().to_string());
    }
    match machine.group_of(pid, &threads[1..3]) {
        Err(NoGroup::Shared { other: seen, .. }) => {
            assert_eq!(u32::try_from(seen).unwrap(), other.id());
        }
        found => panic!("{found:?}"),
    }
    drop(other);
    wait::until("the other process has left", || machine.group_of(pid, &threads[1..3]).is_ok());
}

/// The process that is limited: sleeps in several threads until its input ends.
#[test]
fn child() {
    if env::var_os(CHILD).is_none() {
        return;
    }
    for _ in 0..2 {
        thread::spawn(|| thread::sleep(Duration::from_secs(600)));
    }
    let mut all = Vec::new();
    std::io::stdin().read_to_end(&mut all).unwrap();
}

/// The threads of a process, the first one first.
fn threads(pid: i32) -> Vec<i32> {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut threads: Vec<i32> = names.map(|name| name.parse().unwrap()).collect();
    threads.sort_unstable();
    threads
}

fn cpu(milli: u64) -> Option<MilliCpu> {
    Some(MilliCpu::from_milli(milli))
}
