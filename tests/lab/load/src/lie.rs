//! A world for an informant that lies: one vCPU in use, no load, and nothing that it changes is changed.
//!
//! It is a root directory that has the machine's own files, but for those of load and vCPUs: these are plain
//! files, which take every wish and do nothing.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

/// Where it is.
pub(crate) const ROOT: &str = "/run/lie";

const LOAD: &str = "loadavg";

const SYSTEM: &str = "sys/devices/system";

/// Makes it anew, with the vCPUs that are plugged now.
pub(crate) fn prepare() -> io::Result<()> {
    build(Path::new("/"), Path::new(ROOT))
}

fn build(machine: &Path, root: &Path) -> io::Result<()> {
    if root.exists() {
        fs::remove_dir_all(root)?;
    }
    let cpus = root.join(SYSTEM).join("cpu");
    fs::create_dir_all(&cpus)?;
    fs::create_dir(root.join("proc"))?;
    for entry in fs::read_dir(machine.join("proc"))? {
        let name = entry?.file_name();
        let is_process = name.to_str().is_some_and(|name| name.parse::<u32>().is_ok());
        if !is_process && name != LOAD {
            symlink(machine.join("proc").join(&name), root.join("proc").join(&name))?;
        }
    }
    fs::write(root.join("proc").join(LOAD), "0.00 0.00 0.00 1/50 1\n")?;
    symlink(machine.join(SYSTEM).join("memory"), root.join(SYSTEM).join("memory"))?;
    for entry in fs::read_dir(machine.join(SYSTEM).join("cpu"))? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("cpu")?.parse::<u32>().ok());
        if let Some(number) = number {
            let folder = cpus.join(&name);
            fs::create_dir(&folder)?;
            fs::write(folder.join("online"), if number == 0 { "1\n" } else { "0\n" })?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_testkit::Folder;

    #[test]
    fn all_vcpus_but_the_first_are_said_to_be_offline_and_idle() {
        let folder = Folder::create().unwrap();
        let (machine, root) = (folder.path().join("machine"), folder.path().join("lie"));
        for name in ["cpu0", "cpu1", "cpufreq"] {
            fs::create_dir_all(machine.join(SYSTEM).join("cpu").join(name)).unwrap();
        }
        fs::create_dir_all(machine.join("proc/1")).unwrap();
        fs::write(machine.join("proc/loadavg"), "4.00 4.00 4.00 1/50 1\n").unwrap();
        fs::write(machine.join("proc/meminfo"), "x").unwrap();
        for _again in 0..2 {
            build(&machine, &root).unwrap();
        }
        let online =
            |cpu: &str| fs::read_to_string(root.join(SYSTEM).join("cpu").join(cpu).join("online"));
        assert_eq!(
            (online("cpu0").unwrap(), online("cpu1").unwrap()),
            ("1\n".into(), "0\n".into())
        );
        assert!(online("cpufreq").is_err());
        let proc = |name: &str| fs::read_to_string(root.join("proc").join(name));
        assert!(proc("loadavg").unwrap().starts_with("0.00 ") && proc("meminfo").unwrap() == "x");
    }
}
