//! The process behind a monitor: whether it is still there.
//!
//! A monitor whose queue is full accepts no connection, so its process is the one that was there at
//! the last connection, if that one still runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::net::UnixStream;

/// A dying process closes its sockets some time before it is seen to be dead.
const CHECKS: u32 = 10;
const BETWEEN_CHECKS: Duration = Duration::from_millis(50);
/// Fewer processes than this are never looked through for those that ended.
const MANY: usize = 256;

/// The process at the last connection to each monitor.
static LAST: Mutex<Last> = Mutex::new(Last { of: BTreeMap::new(), sweep_at: MANY });

/// Processes by their monitors. Those that ended are swept out once there are twice as many as lived at
/// the last sweep, so a process costs the same however many there are.
#[derive(Debug)]
struct Last {
    of: BTreeMap<PathBuf, Seen>,
    sweep_at: usize,
}

/// The process that listens on a socket, if it can be seen.
#[derive(Debug)]
pub(crate) struct Peer {
    /// `None` in another namespace, or where other people's processes are hidden.
    seen: Option<Seen>,
}

#[derive(Clone, Debug)]
struct Seen {
    pid: i32,
    stat: PathBuf,
    /// When it was started: a number may become that of another process.
    started: String,
}

// === impl Peer ===

impl Peer {
    /// The process that `stream` leads to, which is kept in mind for `monitor`.
    pub(crate) fn of(stream: &UnixStream, monitor: &Path) -> Self {
        let pid = stream.peer_cred().ok().and_then(|credentials| credentials.pid());
        Self::keep(monitor, pid.and_then(Seen::of))
    }

    /// The process at the last connection to `monitor`, if it is there.
    pub(crate) fn last_of(monitor: &Path) -> Self {
        let last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = last.of.get(monitor).cloned();
        Self { seen: seen.filter(Seen::lives) }
    }

    fn keep(monitor: &Path, seen: Option<Seen>) -> Self {
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        if last.of.len() >= last.sweep_at && !last.of.contains_key(monitor) {
            last.of.retain(|_, seen| seen.lives());
            last.sweep_at = MANY.max(2 * last.of.len());
        }
        match &seen {
            Some(seen) => drop(last.of.insert(monitor.to_owned(), seen.clone())),
            None => drop(last.of.remove(monitor)),
        }
        Self { seen }
    }

    /// As if a connection to `monitor` had led to this process.
    #[cfg(test)]
    pub(crate) fn pretend(monitor: &Path, pid: u32) {
        Self::keep(monitor, Seen::of(i32::try_from(pid).unwrap()));
    }

    /// A process that cannot be seen.
    pub(crate) const fn unseen() -> Self {
        Self { seen: None }
    }

    /// Its number.
    pub(crate) fn pid(&self) -> Option<i32> {
        self.seen.as_ref().map(|seen| seen.pid)
    }

    /// Whether its state can be told.
    pub(crate) fn is_seen(&self) -> bool {
        self.seen.is_some()
    }

    /// Whether it is certainly dead. To be asked after its connection ended.
    pub(crate) async fn is_dead(&self) -> bool {
        let Some(seen) = &self.seen else { return false };
        for check in 0..CHECKS {
            if check > 0 {
                tokio::time::sleep(BETWEEN_CHECKS).await;
            }
            if !seen.lives() {
                return true;
            }
        }
        false
    }

    /// The process, if it is stopped at this moment.
    pub(crate) fn stopped(&self) -> Option<i32> {
        let seen = self.seen.as_ref()?;
        matches!(seen.state(), Ok(Some('T' | 't'))).then_some(seen.pid)
    }
}

// === impl Seen ===

impl Seen {
    fn of(pid: i32) -> Option<Self> {
        let stat = PathBuf::from(format!("/proc/{pid}/stat"));
        let text = std::fs::read_to_string(&stat).ok()?;
        let started = fields(&text).1?.to_owned();
        Some(Self { pid, stat, started })
    }

    /// Whether it is there: not gone, nor read while it vanished, nor a zombie, which waits only for
    /// its parent.
    fn lives(&self) -> bool {
        self.state().is_ok_and(|state| !matches!(state, Some('Z' | 'X')))
    }

    /// The letter that the kernel has for what the process is doing.
    fn state(&self) -> std::io::Result<Option<char>> {
        let text = std::fs::read_to_string(&self.stat)?;
        let (state, started) = fields(&text);
        if started != Some(&self.started) {
            return Err(std::io::ErrorKind::NotFound.into());
        }
        Ok(state)
    }
}

/// The state and the start of a process in its `stat`, behind the name, which may hold anything.
fn fields(stat: &str) -> (Option<char>, Option<&str>) {
    let rest = stat.rsplit(") ").next().unwrap_or_default();
    (rest.chars().next(), rest.split(' ').nth(19))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::Instant;

    #[tokio::test(start_paused = true)]
    async fn a_process_that_lives_is_looked_at_for_half_a_second() {
        let alive = Peer { seen: Seen::of(i32::try_from(std::process::id()).unwrap()) };
        let started = Instant::now();
        assert!(alive.is_seen() && !alive.is_dead().await);
        assert_eq!(started.elapsed(), BETWEEN_CHECKS * (CHECKS - 1));
        let started = Instant::now();
        assert!(Peer { seen: Some(ended()) }.is_dead().await);
        assert!(!Peer::unseen().is_dead().await, "nobody knows");
        assert_eq!(started.elapsed(), Duration::ZERO);
    }

    #[test]
    fn processes_that_ended_are_forgotten() {
        for nth in 0..3 * MANY {
            Peer::keep(Path::new(&format!("/forgotten/{nth}")), Some(ended()));
        }
        let last = LAST.lock().unwrap();
        let kept = last.of.keys().filter(|monitor| monitor.starts_with("/forgotten")).count();
        assert!(kept <= MANY, "{kept}");
    }

    fn ended() -> Seen {
        Seen { pid: 1, stat: PathBuf::from("/nonexistent"), started: "1".to_owned() }
    }
}
