//! The names of the VMs of a host, for a shell that completes one.
//!
//! A person waits with a finger on the key: a host that does not answer at once is one without VMs,
//! and nothing is said of it.

use crate::api::VmEntry;
use crate::client::{self, Client};
use crate::options::DEFAULT_SOCKET;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::timeout;

/// How long a person waits at most.
const WITHIN: Duration = Duration::from_secs(1);

/// The VMs that the host knows, as what may stand for a VM.
pub fn of_vms() -> ArgValueCandidates {
    ArgValueCandidates::new(|| known().into_iter().map(CompletionCandidate::new).collect())
}

fn known() -> Vec<String> {
    let said = std::env::args_os().collect::<Vec<_>>();
    let socket = socket(&said)
        .or_else(|| std::env::var_os("WINDLASS_SOCKET").map(PathBuf::from))
        .unwrap_or_else(|| DEFAULT_SOCKET.into());
    let Ok(client) = Client::to(&socket) else { return Vec::new() };
    let asked =
        client::run(async { Ok(timeout(WITHIN, client.get::<Vec<VmEntry>>("/v1/vms")).await) });
    let entries = asked.ok().and_then(Result::ok).and_then(Result::ok).unwrap_or_default();
    entries.into_iter().map(|entry| entry.name.name).collect()
}

/// The socket that the line says.
fn socket(line: &[OsString]) -> Option<PathBuf> {
    let next = |at: usize| line.get(at + 1).map(PathBuf::from);
    let said = |(at, word): (usize, &OsString)| match word.to_str()? {
        "--socket" => next(at),
        word => word.strip_prefix("--socket=").map(PathBuf::from),
    };
    line.iter().enumerate().find_map(said)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_socket_is_the_one_of_the_line() {
        let said = |line: &str| socket(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert_eq!(said("windlass explain --socket /a d").as_deref(), Some(Path::new("/a")));
        assert_eq!(said("windlass explain --socket=/a d").as_deref(), Some(Path::new("/a")));
        assert_eq!(said("windlass explain --socket"), None);
        assert_eq!(said("windlass explain d"), None);
    }
}
