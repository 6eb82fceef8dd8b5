//! A loopback address per guest, so that all can have the informant's port at once.
//!
//! A file lock holds the address against other processes; the kernel lets go of it however
//! this process ends.

use crate::LabError;
use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// A loopback address that no other guest of this machine has.
#[derive(Debug)]
pub(crate) struct Address {
    ip: Ipv4Addr,
    _lock: File,
}

// === impl Address ===

impl Address {
    /// Takes the first that is free, below 127.0.0.0/16 and off the ones that people use.
    pub(crate) fn claim(ports: &[u16]) -> Result<Self, LabError> {
        let folder = folder()?;
        for (net, host) in (1..=250).flat_map(|net| (1..=250).map(move |host| (net, host))) {
            let ip = Ipv4Addr::new(127, 0, net, host);
            let path = folder.join(ip.to_string());
            let lock = File::create(&path).map_err(|source| LabError::File { path, source })?;
            let free = |&port| TcpListener::bind((ip, port)).is_ok();
            if lock.try_lock().is_ok() && ports.iter().all(free) {
                return Ok(Self { ip, _lock: lock });
            }
        }
        Err(LabError::Missing {
            what: "a free loopback address".to_owned(),
            how: "end some of the guests on this machine".to_owned(),
        })
    }

    /// The address.
    pub(crate) fn ip(&self) -> Ipv4Addr {
        self.ip
    }
}

fn folder() -> Result<PathBuf, LabError> {
    let error = |path: &PathBuf, source| LabError::File { path: path.clone(), source };
    let own = PathBuf::from("/proc/self");
    let user = fs::metadata(&own).map_err(|source| error(&own, source))?.uid();
    let path = std::env::temp_dir().join(format!("windlass-lab-{user}"));
    fs::create_dir_all(&path).map_err(|source| error(&path, source))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_guests_share_an_address() {
        let first = Address::claim(&[10301]).unwrap();
        let second = Address::claim(&[10301]).unwrap();
        assert_ne!(first.ip(), second.ip());
        assert!(first.ip().is_loopback() && second.ip().is_loopback());
    }
}
