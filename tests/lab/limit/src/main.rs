//! Limits a process inside a lab guest as the QEMU driver limits a VM, and tells what it used.
//!
//! The guest's kernel has cgroup v2, which the machine that runs the tests may not have. The process is a busy
//! loop of the load program in a cgroup of its own; the cgroup is found, limited and put back by the driver's
//! own code.

use std::error::Error;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Child, Command, ExitCode};
use std::time::{Duration, Instant};
use windlass_drivers_cgroup::{Limiter, Machine, Version};
use windlass_protocol::MilliCpu;

const TOP: &str = "/sys/fs/cgroup";
const GROUP: &str = "/sys/fs/cgroup/limited";
const LOAD: &str = "/bin/windlass-lab-load";

/// What the driver keeps.
const KEPT: &str = "/run/limits";

/// A busy loop that ends with this value.
struct Busy(Child);

fn main() -> ExitCode {
    let arguments: Vec<u64> = std::env::args().skip(1).flat_map(|word| word.parse()).collect();
    let done = match arguments.as_slice() {
        [milli, seconds] => run(MilliCpu::from_milli(*milli), Duration::from_secs(*seconds)),
        _ => Err("usage: windlass-lab-limit MILLI-CPU SECONDS".into()),
    };
    match done {
        Ok(line) => match writeln!(io::stdout(), "{line}") {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        Err(error) => {
            eprintln!("windlass-lab-limit: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(limit: MilliCpu, time: Duration) -> Result<String, Box<dyn Error>> {
    fs::write(Path::new(TOP).join("cgroup.subtree_control"), "+cpu")?;
    fs::create_dir_all(GROUP)?;
    let busy = Busy(Command::new(LOAD).arg("spin").spawn()?);
    let pid = i32::try_from(busy.0.id())?;
    fs::write(Path::new(GROUP).join("cgroup.procs"), pid.to_string())?;

    let group = Machine::default().group_of(pid, &[pid])?;
    let version = match group.version() {
        Version::V1 => "v1",
        Version::V2 => "v2",
    };
    let mut limiter = Limiter::open(group, Path::new(KEPT))?;
    limiter.set(Some(limit))?;
    let stands = limiter.look()?.limit.map_or(0, MilliCpu::milli);
    let (start, before) = (Instant::now(), usage()?);
    std::thread::sleep(time);
    let used = (usage()? - before).as_secs_f64() / start.elapsed().as_secs_f64();
    let throttled = limiter.group().throttled()?.throttled;
    limiter.set(None)?;
    let after = fs::read_to_string(Path::new(GROUP).join("cpu.max"))?;
    let after = after.trim();
    Ok(format!(
        "{{\"version\":\"{version}\",\"limit\":{stands},\"used\":{used:.3},\
         \"throttled\":{throttled},\"after\":\"{after}\"}}"
    ))
}

/// What the cgroup has used, as the guest's kernel accounts for it.
fn usage() -> Result<Duration, Box<dyn Error>> {
    let text = fs::read_to_string(Path::new(GROUP).join("cpu.stat"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("usage_usec "));
    Ok(Duration::from_micros(line.ok_or("no usage_usec")?.parse()?))
}

// === impl Busy ===

impl Drop for Busy {
    fn drop(&mut self) {
        // It can only have ended already.
        let _ended = self.0.kill();
        let _status = self.0.wait();
    }
}
