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
    stat: Option<PathBuf>,
}

// === impl Peer ===

impl Peer {
    pub(crate) fn of(stream: &UnixStream) -> Self {
        let pid = stream.peer_cred().ok().and_then(|credentials| credentials.pid());
        let stat = pid.map(|pid| PathBuf::from(format!("/proc/{pid}/stat")));
        Self { stat: stat.filter(|stat| stat.exists()) }
    }

    /// A process that cannot be seen.
    pub(crate) const fn unseen() -> Self {
        Self { stat: None }
    }

    /// Whether it is certainly dead. To be asked after its connection ended.
    pub(crate) async fn is_dead(&self) -> bool {
        let Some(stat) = &self.stat else { return false };
        for check in 0..CHECKS {
            if check > 0 {
                tokio::time::sleep(BETWEEN_CHECKS).await;
            }
            // Not there, or read while it vanished; a zombie waits only for its parent.
            let Ok(text) = std::fs::read_to_string(stat) else { return true };
            let state = text.rsplit(") ").next().and_then(|rest| rest.chars().next());
            if matches!(state, Some('Z' | 'X')) {
                return true;
            }
        }
        false
    }
}
