//! What the load program does to the guest as a whole.

use std::fs;
use std::io;
use std::process::Command;
use std::time::Duration;

const CPUS: &str = "/sys/devices/system/cpu";
const POLICY: &str = "/sys/devices/system/memory/auto_online_blocks";
const MOMENT: Duration = Duration::from_millis(300);

/// Brings every vCPU online that is plugged and offline.
pub(crate) fn online() -> io::Result<()> {
    for entry in fs::read_dir(CPUS)? {
        let path = entry?.path().join("online");
        if fs::read_to_string(&path).is_ok_and(|state| state.trim() == "0") {
            fs::write(path, "1")?;
        }
    }
    Ok(())
}

/// Has added memory come online by itself, in the zone that can be given back.
pub(crate) fn movable() -> io::Result<()> {
    fs::write(POLICY, "online_movable")
}

/// Has a busy loop limited, and gives what is told of it.
pub(crate) fn limit(milli: u32, seconds: u32) -> io::Result<String> {
    let words = [milli.to_string(), seconds.to_string()];
    let output = Command::new("/bin/windlass-lab-limit").args(words).output()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().replace('\n', " ");
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(io::Error::other(text(&output.stderr)))
    }
}

/// Restarts the guest in a moment: the answer to the request is to get out first.
pub(crate) fn reboot() {
    std::thread::spawn(|| {
        std::thread::sleep(MOMENT);
        busybox(&["reboot", "-f"])
    });
}

/// Puts this process back to ordinary priority: the load program runs at a higher one, so that it still answers
/// when every vCPU is taken. No other process does it: a loop that is limited has its cgroup to itself.
pub(crate) fn step_back() -> io::Result<()> {
    rustix::process::nice(5)?;
    Ok(())
}

fn busybox(arguments: &[&str]) -> io::Result<()> {
    let status = Command::new("/bin/busybox").args(arguments).status()?;
    if status.success() {
        Ok(())
    } else {
        Err(io::Error::other(format!("{}: {status}", arguments.join(" "))))
    }
}
