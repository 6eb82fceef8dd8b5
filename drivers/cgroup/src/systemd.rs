//! What is asked of systemd, through `systemctl`: which cgroup a unit has, and a quota for it.
//!
//! systemd writes the quota of a unit's own cgroup anew whenever its files are read again, so a value
//! that is not its own does not last there. What is set is a runtime property: a reboot ends it.

use crate::quota::Quota;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};
use thiserror::Error;

/// How long `systemctl` may take. After that it is killed; what it asked of systemd may happen later.
pub const DEADLINE: Duration = Duration::from_secs(5);

/// Between two looks at whether it has ended.
const PAUSE: Duration = Duration::from_millis(5);

/// How much of its answer is kept, in bytes: the path of a cgroup fits.
const ANSWER: u64 = 8192;

/// How much of its complaint is kept, in bytes.
const COMPLAINT: u64 = 500;

/// How long a pipe may stay open after the process has ended: a process that it started may hold it.
const CLOSES: Duration = Duration::from_millis(200);

/// Why systemd did not do what was asked.
#[derive(Debug, Error)]
pub enum SystemdError {
    /// It cannot be started, or not be waited for.
    #[error("cannot run systemctl")]
    Run(#[source] io::Error),
    /// It has failed, in its own words.
    #[error("systemctl failed ({status}): {said}")]
    Failed {
        /// How it ended.
        status: ExitStatus,
        /// What it said on its standard error, at most 500 bytes of it.
        said: String,
    },
    /// It has not ended in time, and systemd may still act.
    #[error("systemctl did not end within {} s", DEADLINE.as_secs())]
    Silent,
}

/// The unit that a cgroup of this name would have: systemd puts a `_` before names that would be taken for
/// files of a cgroup.
pub(crate) fn unit_name(component: &str) -> Option<&str> {
    let name = component.strip_prefix('_').unwrap_or(component);
    let is_unit = [".scope", ".service", ".slice"].iter().any(|kind| name.ends_with(kind));
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b":-_.\\@".contains(&byte);
    (is_unit && name.bytes().all(plain)).then_some(name)
}

/// The cgroup of a unit; empty if there is no such unit, or none that runs.
pub(crate) fn group_of_unit(systemctl: &Path, unit: &str) -> Result<String, SystemdError> {
    let args = ["show", "-p", "ControlGroup", "--value", "--", unit];
    run(systemctl, &args, DEADLINE).map(|said| said.trim_end().to_owned())
}

/// Sets the quota of a unit until the next reboot.
pub(crate) fn set(systemctl: &Path, unit: &str, quota: Quota) -> Result<(), SystemdError> {
    let percent = format!("CPUQuota={}", quota.for_systemd().0);
    let period = if quota.period.is_multiple_of(1000) {
        format!("CPUQuotaPeriodSec={}ms", quota.period / 1000)
    } else {
        format!("CPUQuotaPeriodSec={}us", quota.period)
    };
    let args = ["--no-ask-password", "set-property", "--runtime", "--", unit, &percent, &period];
    run(systemctl, &args, DEADLINE).map(drop)
}

/// What a program says on its standard output, if it ends well and in time.
fn run(program: &Path, args: &[&str], deadline: Duration) -> Result<String, SystemdError> {
    let mut command = Command::new(program);
    command.args(args).env("LC_ALL", "C").env("SYSTEMD_PAGER", "").stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(SystemdError::Run)?;
    let out = child.stdout.take().map(|pipe| heard(pipe, ANSWER));
    let err = child.stderr.take().map(|pipe| heard(pipe, COMPLAINT));
    let ended = wait(&mut child, deadline);
    if !matches!(ended, Ok(Some(_))) {
        // It may have ended at this moment.
        let _ended = child.kill();
        let _status = child.wait();
    }
    let status = ended.map_err(SystemdError::Run)?.ok_or(SystemdError::Silent)?;
    let text = |pipe: Option<Receiver<String>>| {
        pipe.and_then(|pipe| pipe.recv_timeout(CLOSES).ok()).unwrap_or_default()
    };
    if status.success() {
        Ok(text(out))
    } else {
        Err(SystemdError::Failed { status, said: text(err).trim_end().to_owned() })
    }
}

/// How it ended, or nothing if it has not in time.
fn wait(child: &mut Child, deadline: Duration) -> io::Result<Option<ExitStatus>> {
    let started = Instant::now();
    loop {
        let ended = child.try_wait()?;
        if ended.is_some() || started.elapsed() >= deadline {
            return Ok(ended);
        }
        thread::sleep(PAUSE);
    }
}

/// The start of what comes over a pipe. All of it is read, so that the writer never waits.
fn heard(mut pipe: impl Read + Send + 'static, longest: u64) -> Receiver<String> {
    let (tell, heard) = channel();
    thread::spawn(move || {
        let mut start = Vec::new();
        // What could be read before an error is all that there is.
        let _read = (&mut pipe).take(longest).read_to_end(&mut start);
        let _rest = io::copy(&mut pipe, &mut io::sink());
        // The other side may have stopped waiting.
        let _told = tell.send(String::from_utf8_lossy(&start).into_owned());
    });
    heard
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_units_are_told_from_other_names() {
        for (component, unit) in [
            ("machine-qemu\\x2d1\\x2da.scope", Some("machine-qemu\\x2d1\\x2da.scope")),
            ("100.scope", Some("100.scope")),
            ("vm@1.service", Some("vm@1.service")),
            ("qemu.slice", Some("qemu.slice")),
            ("_cpu.scope", Some("cpu.scope")),
            ("libvirt", None),
            ("a b.scope", None),
            ("*.scope", None),
            ("", None),
        ] {
            assert_eq!(unit_name(component), unit, "{component}");
        }
    }

    #[test]
    fn what_a_program_says_is_bounded_and_so_is_its_time() {
        let shell = |script: &str, deadline| {
            run(Path::new("/bin/sh"), &["-c", script], Duration::from_millis(deadline))
        };
        assert_eq!(shell("echo yes; echo no >&2", 20_000).unwrap(), "yes\n");
        let long = shell("yes | head -c 1000000; yes no | head -c 1000000 >&2; exit 3", 20_000);
        let said = long.unwrap_err().to_string();
        assert!(said.starts_with("systemctl failed (exit status: 3): no\nno"), "{said}");
        assert!(said.len() < 600, "{said}");
        assert!(matches!(shell("exec sleep 600", 50), Err(SystemdError::Silent)));
        let absent = run(Path::new("/absent/systemctl"), &[], DEADLINE).unwrap_err();
        assert_eq!(absent.to_string(), "cannot run systemctl");
        // A process that goes on in the background holds the pipes, and is not waited for.
        let started = Instant::now();
        assert_eq!(shell("sleep 2 & echo x", 20_000).unwrap(), "");
        assert!(started.elapsed() < Duration::from_secs(20));
    }
}
