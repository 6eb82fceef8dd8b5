//! Reports to systemd: the program is ready, alive, or about to end.
//!
//! A report is a datagram to the socket that `NOTIFY_SOCKET` names; without it, there are no reports. Sending
//! never blocks: a full socket loses the report, and the next one repeats it. So each report that the program
//! is alive repeats that it is ready, as sd_notify(3) allows.

use std::ffi::OsString;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tracing::{debug, warn};

/// The socket of systemd, if any, and whether the program is ready, which all clones share.
#[derive(Clone, Debug, Default)]
pub struct Notify {
    address: Option<SocketAddr>,
    ready: Arc<AtomicBool>,
}

// === impl Notify ===

impl Notify {
    /// Reads the environment.
    pub fn from_env() -> Self {
        std::env::var_os("NOTIFY_SOCKET").map_or_else(Self::default, Self::to)
    }

    /// Reports to this socket; a leading `@` makes its name abstract.
    pub fn to(socket: OsString) -> Self {
        let address = match socket.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
            _ => SocketAddr::from_pathname(&socket),
        };
        if let Err(error) = &address {
            warn!(%error, socket = %socket.display(), "NOTIFY_SOCKET is no name of a socket; systemd is told nothing");
        }
        Self { address: address.ok(), ready: Arc::default() }
    }

    /// The program has started.
    pub fn ready(&self) {
        self.ready.store(true, Ordering::Relaxed);
        self.say("READY=1");
    }

    /// No part of the program hangs.
    pub fn alive(&self) {
        match self.ready.load(Ordering::Relaxed) {
            true => self.say("READY=1\nWATCHDOG=1"),
            false => self.say("WATCHDOG=1"),
        }
    }

    /// The program is about to end.
    pub fn stopping(&self) {
        self.say("STOPPING=1");
    }

    fn say(&self, word: &str) {
        let Some(address) = &self.address else { return };
        let said = || -> io::Result<()> {
            let socket = UnixDatagram::unbound()?;
            socket.set_nonblocking(true)?;
            socket.send_to_addr(word.as_bytes(), address).map(drop)
        };
        if let Err(error) = said() {
            debug!(%error, word, "systemd was not told");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systemd_gets_reports_by_path_and_by_abstract_name() {
        let folder = windlass_testkit::Folder::create().unwrap();
        let path = folder.at("notify.sock");
        let name = format!("windlass-notify-{}", std::process::id());
        let by_path = UnixDatagram::bind(&path).unwrap();
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let by_name = UnixDatagram::bind_addr(&address).unwrap();
        for (socket, at) in [(by_path, path.into()), (by_name, format!("@{name}").into())] {
            let notify = Notify::to(at);
            notify.alive();
            notify.ready();
            notify.clone().alive();
            notify.stopping();
            let words = [(); 4].map(|()| {
                let mut word = [0; 40];
                let length = socket.recv(&mut word).unwrap();
                String::from_utf8(word[..length].to_vec()).unwrap()
            });
            assert_eq!(words, ["WATCHDOG=1", "READY=1", "READY=1\nWATCHDOG=1", "STOPPING=1"]);
        }
    }

    #[test]
    fn a_missing_or_invalid_socket_is_ignored() {
        for socket in ["/nonexistent/notify", "", "@", "vsock:2:1"] {
            Notify::to(socket.into()).ready();
        }
        Notify::default().ready();
    }
}
