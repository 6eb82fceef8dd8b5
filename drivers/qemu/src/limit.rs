//! The host's limit on a VM's CPU: the quota of the cgroup that QEMU's process has to itself.
//!
//! Which cgroup that is, is found at each attach: the threads of vCPUs that QEMU names must be those of the
//! process at the other end of the monitor. What stands there is read at each look. A process that has been
//! moved to another cgroup ends the connection: the next one finds where it is.

use crate::link::{CallError, Link, unless_refused};
use serde::Deserialize;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use thiserror::Error;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use windlass_drivers::DriverError;
use windlass_drivers_cgroup::{
    Group, Limiter, Look, Machine, NoGroup, SetError, Throttled, WriteError,
};
use windlass_protocol::{CpuLimit, LimitCounts, MilliCpu};

/// The step of a limit: 5 ms of each 100 ms.
pub(crate) const STEP: MilliCpu = MilliCpu::from_milli(50);

/// How long a cgroup may take to be found or set. What systemd is asked for has 5 s.
const ANSWER: Duration = Duration::from_secs(8);

const COMMAND: &str = "limit of cpu";

/// A cgroup whose quota is the VM's limit.
#[derive(Clone, Debug)]
pub(crate) struct HostLimit {
    limiter: Arc<Mutex<Limiter>>,
    /// Whether limits are set, and not only put back what was found.
    pub(crate) sets: bool,
}

/// Why the host does not limit a VM's CPU.
#[derive(Debug, Error)]
pub(crate) enum Unlimited {
    /// A person has chosen so.
    #[error("cpu_limit says so")]
    Chosen,
    /// What was found could not be kept over a restart.
    #[error("there is no folder for what is found")]
    NoFolder,
    /// The process at the other end of the monitor cannot be seen.
    #[error("the process of QEMU cannot be seen: it runs in another PID namespace, or is hidden")]
    NoProcess,
    /// There is no cgroup for it.
    #[error(transparent)]
    NoGroup(#[from] NoGroup),
    /// Its quota, or what an earlier agent kept of it, cannot be read.
    #[error("cannot read the CPU quota of QEMU's cgroup, or what was kept of it: {0}")]
    Unread(std::io::Error),
    /// It takes too long.
    #[error("QEMU's cgroup was not found within {} s", ANSWER.as_secs())]
    Late,
}

#[derive(Deserialize)]
struct Vcpu {
    #[serde(rename = "thread-id")]
    thread: Option<i32>,
}

// === impl HostLimit ===

impl HostLimit {
    /// Finds the cgroup of a VM and what was kept of it in a folder; changes nothing.
    pub(crate) async fn find(
        choice: Option<CpuLimit>,
        folder: Option<PathBuf>,
        link: &mut Link,
    ) -> Result<Result<Self, Unlimited>, CallError> {
        let chosen = chosen(choice);
        let Some(folder) = folder else {
            return Ok(Err(chosen.unwrap_or(Unlimited::NoFolder)));
        };
        let (sets, keeps) = (chosen.is_none(), keeps_any(&folder));
        if let Some(why) = chosen.filter(|_| !keeps) {
            return Ok(Err(why));
        }
        let group = group(link).await?;
        let open = move |group| within(move || Self::open(group, &folder, sets));
        Ok(match group {
            Ok(group) => open(group).await,
            Err(why) => Err(why),
        })
    }

    /// A limiter that is to set nothing is worth having while a limit of ours stands.
    fn open(group: Group, folder: &Path, sets: bool) -> Result<Self, Unlimited> {
        let limiter = Limiter::open(group, folder).map_err(Unlimited::Unread)?;
        if !sets && !limiter.has_set() {
            return Err(Unlimited::Chosen);
        }
        Ok(Self { limiter: Arc::new(Mutex::new(limiter)), sets })
    }

    /// What stands in the cgroup, what was found there, and what that came to. The kernel answers at once.
    pub(crate) fn look(&self) -> Result<(Look, LimitCounts), DriverError> {
        let Ok(mut limiter) = self.limiter.try_lock() else {
            return Err(DriverError::NoAnswer { command: COMMAND, limit: ANSWER });
        };
        match limiter.group().still_holds() {
            Ok(true) => {
                let look = limiter.look().map_err(|error| broken(&limiter, &error))?;
                let Throttled { periods, throttled, time } =
                    limiter.group().throttled().map_err(|error| broken(&limiter, &error))?;
                let resets = limiter.resets();
                Ok((look, LimitCounts { periods, throttled, waited: time, resets }))
            }
            Ok(false) => Err(broken(&limiter, &"QEMU is no longer in it")),
            Err(error) => Err(broken(&limiter, &error)),
        }
    }

    /// Sets a limit, or puts back what was found.
    pub(crate) async fn set(&self, limit: Option<MilliCpu>) -> Result<(), DriverError> {
        let limiter = self.limiter.clone();
        let set = spawn_blocking(move || {
            limiter.lock().unwrap_or_else(PoisonError::into_inner).set(limit).map(drop)
        });
        match timeout(ANSWER, set).await {
            Ok(Ok(done)) => done.map_err(|error| refused(&error)),
            Ok(Err(_)) | Err(_) => Err(DriverError::NoAnswer { command: COMMAND, limit: ANSWER }),
        }
    }
}

/// The cgroup that QEMU's process has to itself, if its quota can be changed.
pub(crate) async fn group(link: &mut Link) -> Result<Result<Group, Unlimited>, CallError> {
    let vcpus = link.ask::<Vec<Vcpu>>("query-cpus-fast", Value::Null).await;
    let vcpus = unless_refused(vcpus)?.unwrap_or_default();
    let threads: Vec<_> = vcpus.into_iter().filter_map(|vcpu| vcpu.thread).collect();
    let Some(pid) = link.pid() else { return Ok(Err(Unlimited::NoProcess)) };
    Ok(within(move || Ok(Machine::default().group_of(pid, &threads)?)).await)
}

/// Why a VM is not to be limited, if a person has chosen so.
fn chosen(choice: Option<CpuLimit>) -> Option<Unlimited> {
    match choice {
        Some(CpuLimit::Trust | CpuLimit::None) => Some(Unlimited::Chosen),
        Some(CpuLimit::Cgroup) | None => None,
    }
}

/// Whether an agent has set a limit, and kept what it found.
fn keeps_any(folder: &Path) -> bool {
    folder.read_dir().is_ok_and(|mut files| files.next().is_some())
}

/// Reads many small files of the kernel.
async fn within<T: Send + 'static>(
    find: impl FnOnce() -> Result<T, Unlimited> + Send + 'static,
) -> Result<T, Unlimited> {
    let found = timeout(ANSWER, spawn_blocking(find)).await;
    found.unwrap_or(Ok(Err(Unlimited::Late))).unwrap_or(Err(Unlimited::Late))
}

fn broken(limiter: &Limiter, why: &dyn std::fmt::Display) -> DriverError {
    DriverError::Broken(format!("cgroup {}: {why}", limiter.group().path()))
}

fn refused(error: &SetError) -> DriverError {
    let reason = chain(error);
    match error {
        SetError::TooSmall
        | SetError::Changed { .. }
        | SetError::Unkept { .. }
        | SetError::Unwritten { source: WriteError::Refused { .. }, .. } => {
            DriverError::Refused { command: COMMAND, reason }
        }
        SetError::Moved { .. } => DriverError::Broken(reason),
        SetError::Differs { .. }
        | SetError::DropIn { .. }
        | SetError::Unread { .. }
        | SetError::Unwritten { .. } => DriverError::Partly { command: COMMAND, reason },
    }
}

// === impl Unlimited ===

impl Unlimited {
    /// As one sentence, with what led to it.
    pub(crate) fn and_causes(&self) -> String {
        chain(self)
    }
}

/// An error and its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |error| error.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
