//! A directory that looks like procfs and sysfs of a guest, and can be told what to look like.

use std::fs;
use std::path::{Path, PathBuf};
use windlass_testkit::Folder;

/// Removed when dropped.
pub(crate) struct Guest {
    folder: Folder,
}

impl Guest {
    /// 512 MiB less the kernel's share, 100 MiB in use, one vCPU, idle.
    pub(crate) fn new() -> Self {
        let guest = Self { folder: Folder::create().unwrap() };
        fs::create_dir(guest.folder.at("run")).unwrap();
        guest.memory(462, 362, 362);
        guest.load("0.00 0.01 0.05 1/80 11206");
        guest.write("proc/stat", "cpu 1 2 3\nintr 9 9 9\nprocs_running 1\nprocs_blocked 0\n");
        // 12,800 pages are 50 MiB.
        let zone = "Node 0, zone    DMA32\n        present  131072\n        managed  118272\n";
        let movable = "Node 0, zone  Movable\n        present  32768\n        managed  16384\n";
        guest.write("proc/zoneinfo", &format!("{zone}{movable}"));
        let stall = "some avg10=1.50 avg60=0.80 avg300=0.10 total=1234567\n";
        for resource in ["cpu", "memory", "io"] {
            guest.write(&format!("proc/pressure/{resource}"), stall);
        }
        fs::create_dir_all(guest.folder.at("sys/devices/system/cpu/cpu0")).unwrap();
        fs::create_dir_all(guest.folder.at("sys/devices/system/cpu/cpufreq")).unwrap();
        guest.write("sys/devices/system/memory/auto_online_blocks", "offline\n");
        guest.block(0, "online");
        guest
    }

    pub(crate) fn root(&self) -> &Path {
        self.folder.path()
    }

    /// In MiB.
    pub(crate) fn memory(&self, total: u64, available: u64, free: u64) {
        let line = |name: &str, mib: u64| format!("{name:<16}{:>8} kB\n", mib * 1024);
        let text = line("MemTotal:", total)
            + &line("MemFree:", free)
            + &line("MemAvailable:", available)
            + "Buffers:               0 kB\nHugePages_Total:       0\n";
        self.write("proc/meminfo", &text);
    }

    pub(crate) fn load(&self, line: &str) {
        self.write("proc/loadavg", &format!("{line}\n"));
    }

    pub(crate) fn cpu(&self, number: u32, online: bool) {
        self.write(&cpu(number), if online { "1\n" } else { "0\n" });
    }

    pub(crate) fn cpu_online(&self, number: u32) -> bool {
        self.read(&cpu(number)).trim() == "1"
    }

    pub(crate) fn block(&self, number: u32, state: &str) {
        self.write(&block(number), &format!("{state}\n"));
    }

    pub(crate) fn block_state(&self, number: u32) -> String {
        self.read(&block(number)).trim().to_owned()
    }

    pub(crate) fn policy(&self) -> String {
        self.read("sys/devices/system/memory/auto_online_blocks").trim().to_owned()
    }

    /// What is remembered as parked.
    pub(crate) fn parked(&self) -> String {
        fs::read_to_string(self.folder.at("run/windlass-informant/parked")).unwrap_or_default()
    }

    /// Every file with its content.
    pub(crate) fn everything(&self) -> Vec<(PathBuf, String)> {
        let mut found = Vec::new();
        let mut todo = vec![self.root().to_owned()];
        while let Some(directory) = todo.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    todo.push(path);
                } else {
                    let text = fs::read_to_string(&path).unwrap();
                    found.push((path, text));
                }
            }
        }
        found.sort();
        found
    }

    /// Replaces the file at once: a reader never sees half of it.
    pub(crate) fn write(&self, name: &str, text: &str) {
        self.folder.put(name, text);
    }

    pub(crate) fn remove(&self, name: &str) {
        fs::remove_file(self.folder.at(name)).unwrap();
    }

    fn read(&self, name: &str) -> String {
        self.folder.read(name)
    }
}

fn cpu(number: u32) -> String {
    format!("sys/devices/system/cpu/cpu{number}/online")
}

fn block(number: u32) -> String {
    format!("sys/devices/system/memory/memory{number}/state")
}
