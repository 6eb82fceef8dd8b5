//! Where the machine is looked at: a test gives a folder and a program in place of the real ones.

use std::fs;
use std::path::PathBuf;

/// A machine that runs VMs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The folder that holds `proc`, `sys` and `run`.
    pub root: PathBuf,
    /// The program through which systemd is asked.
    pub systemctl: PathBuf,
}

// === impl Machine ===

impl Default for Machine {
    /// This machine.
    fn default() -> Self {
        Self { root: PathBuf::from("/"), systemctl: PathBuf::from("systemctl") }
    }
}

impl Machine {
    /// The folder of a process.
    pub(crate) fn process(&self, pid: i32) -> PathBuf {
        self.root.join("proc").join(pid.to_string())
    }

    /// What tells one run of the machine from the next; empty if the kernel does not say.
    pub(crate) fn boot(&self) -> String {
        let text = fs::read_to_string(self.root.join("proc/sys/kernel/random/boot_id"));
        text.map(|text| text.trim_end().to_owned()).unwrap_or_default()
    }
}
