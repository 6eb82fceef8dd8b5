//! How much memory and disk the programs take.

use anyhow::{Context, Result};
use std::fs;
use std::path::Path;
use windlass_lab::{Guest, Lab};

/// In bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resident {
    /// Now.
    pub(crate) now: u64,
    /// The most that it ever was.
    pub(crate) most: u64,
}

// === impl Resident ===

impl Resident {
    /// Of a process on this machine.
    pub(crate) fn of_process(pid: u32) -> Result<Self> {
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let read = |name: &str| field(&status, name).with_context(|| format!("no {name}"));
        Ok(Self { now: read("VmRSS:")?, most: read("VmHWM:")? })
    }

    /// Of the informant in a guest.
    pub(crate) async fn of_informant(guest: &Guest) -> Result<Self> {
        let inside = guest.inside().await?;
        let now = inside.informant_resident.context("the informant does not run")?;
        Ok(Self { now, most: inside.informant_peak.context("no peak of the informant")? })
    }
}

/// The informant on disk.
pub(crate) fn informant_file(lab: &Lab) -> Result<u64> {
    file(lab.informant().context("the lab has no informant")?)
}

/// A file.
pub(crate) fn file(path: &Path) -> Result<u64> {
    Ok(fs::metadata(path).with_context(|| path.display().to_string())?.len())
}

fn field(status: &str, name: &str) -> Option<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix(name))?;
    value.split_ascii_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_been_no_smaller_than_it_is() {
        let own = Resident::of_process(std::process::id()).unwrap();
        assert!(own.now > 0 && own.most >= own.now, "{own:?}");
        assert_eq!(field("VmRSS:\t    12 kB\n", "VmRSS:"), Some(12 << 10));
    }
}
