//! The process behind a monitor: whether it is still there.

use std::path::PathBuf;
use std::time::Duration;
use tokio::net::UnixStream;

/// A dying process closes its sockets some time before it is seen to be dead.
const CHECKS: u32 = 10;
const BETWEEN_CHECKS: Duration = Duration::from_millis(50);

/// The process that listens on a socket, if it can be seen.
#[derive(Debug)]
pub(crate) struct Peer {
    /// `None` in another namespace, or where other people's processes are hidden.
    seen: Option<Seen>,
}

#[derive(Debug)]
struct Seen {
    pid: i32,
    stat: PathBuf,
}

// === impl Peer ===

impl Peer {
    pub(crate) fn of(stream: &UnixStream) -> Self {
        let pid = stream.peer_cred().ok().and_then(|credentials| credentials.pid());
        let seen = pid.map(|pid| Seen { pid, stat: format!("/proc/{pid}/stat").into() });
        Self { seen: seen.filter(|seen| seen.stat.exists()) }
    }

    /// A process that cannot be seen.
    pub(crate) const fn unseen() -> Self {
        Self { seen: None }
    }

    /// Whether it is certainly dead. To be asked after its connection ended.
    pub(crate) async fn is_dead(&self) -> bool {
        let Some(seen) = &self.seen else { return false };
        for check in 0..CHECKS {
            if check > 0 {
                tokio::time::sleep(BETWEEN_CHECKS).await;
            }
            // Not there, or read while it vanished; a zombie waits only for its parent.
            let Ok(state) = seen.state() else { return true };
            if matches!(state, Some('Z' | 'X')) {
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
    /// The letter that the kernel has for what the process is doing.
    fn state(&self) -> std::io::Result<Option<char>> {
        let text = std::fs::read_to_string(&self.stat)?;
        Ok(text.rsplit(") ").next().and_then(|rest| rest.chars().next()))
    }
}
