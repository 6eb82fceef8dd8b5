//! vCPUs and memory blocks in `/sys`: what is there, and how it is changed.
//!
//! Each vCPU and block has a directory with a file that says whether it is in use, and takes
//! the wish. vCPU 0 has no such file where it cannot be taken offline. A write returns when
//! it is done; with a busy guest that takes up to a second.

use crate::proc;
use crate::tree::Tree;
use std::collections::BTreeSet;
use std::io;
use std::time::Duration;
use windlass_informant_core::{Change, MachineSeen};
use windlass_protocol::timing::CALL_LEASE_GIVEN;

const CPUS: &str = "sys/devices/system/cpu";
const MEMORY: &str = "sys/devices/system/memory";

/// What is parked, as a list. `/run` survives a restart of the informant, and not a reboot.
const PARKED: &str = "run/windlass-informant/parked";

/// For how long an agent that registered may act, in milliseconds.
const LEASED: &str = "run/windlass-informant/leased";

/// The longest lease: what is not understood, or longer, counts as this.
const LONGEST: Duration = CALL_LEASE_GIVEN;

/// What a change that did not fail came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The machine is as desired.
    Done,
    /// The memory block is gone: the hypervisor took it back.
    Gone,
}

/// What the machine has; `None` if it does not say.
pub fn look(tree: &Tree) -> Option<MachineSeen> {
    let (present, online) = cpus(tree)?;
    // A kernel without memory hotplug has no blocks.
    let blocks = tree.numbered(MEMORY, "memory").unwrap_or_default();
    let offline = |block: &u32| {
        tree.read(&format!("{MEMORY}/memory{block}/state")).is_ok_and(|s| s.trim() == "offline")
    };
    let offline_blocks = blocks.into_iter().filter(offline).collect();
    Some(MachineSeen { present, online, offline_blocks })
}

/// vCPUs that are there, and those in use.
pub fn cpus(tree: &Tree) -> Option<(BTreeSet<u32>, BTreeSet<u32>)> {
    let present: BTreeSet<u32> = tree.numbered(CPUS, "cpu").ok()?.into_iter().collect();
    let in_use = |cpu: &u32| match tree.read(&format!("{CPUS}/cpu{cpu}/online")) {
        Ok(text) => text.trim() == "1",
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    let online: BTreeSet<u32> = present.iter().copied().filter(in_use).collect();
    (!online.is_empty()).then_some((present, online))
}

/// Carries out one change.
pub fn change(tree: &Tree, change: &Change) -> io::Result<Outcome> {
    let written = match change {
        Change::AddedIsMovable => {
            tree.write(&format!("{MEMORY}/auto_online_blocks"), "online_movable")
        }
        Change::OnlineMemory(block) => return online(tree, *block),
        Change::OnlineCpu(cpu) => tree.write(&format!("{CPUS}/cpu{cpu}/online"), "1"),
        Change::OfflineCpu(cpu) => tree.write(&format!("{CPUS}/cpu{cpu}/online"), "0"),
        Change::Note(lease) => tree.replace(LEASED, &format!("{}\n", lease.as_millis())),
        Change::Remember(parked) => tree.replace(PARKED, &list(parked)),
    };
    written.map(|()| Outcome::Done)
}

/// The kernel may have been quicker, by the policy that was set, and the block may be gone
/// again: then there is nothing left to do. A block that virtio-mem takes back is offline for a
/// moment first; the kernel lets nothing bring it online in between, as one lock covers both steps.
fn online(tree: &Tree, block: u32) -> io::Result<Outcome> {
    let path = format!("{MEMORY}/memory{block}/state");
    let written = tree.write(&path, "online_movable").map(|()| Outcome::Done);
    written.or_else(|refused| match tree.read(&path) {
        Ok(state) if state.trim() == "online" => Ok(Outcome::Done),
        Err(gone) if gone.kind() == io::ErrorKind::NotFound => Ok(Outcome::Gone),
        Ok(_) | Err(_) => Err(refused),
    })
}

/// What an earlier informant parked since the guest booted.
///
/// # Errors
/// There is something that is not a list of vCPUs.
pub fn remembered(tree: &Tree) -> io::Result<BTreeSet<u32>> {
    match tree.read(PARKED) {
        Ok(text) => proc::list(&text).ok_or_else(|| io::Error::other("not a list of vcpus")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeSet::new()),
        Err(error) => Err(error),
    }
}

/// For how long an agent of an earlier informant may still act.
pub fn leased(tree: &Tree) -> Duration {
    match tree.read(LEASED) {
        Ok(text) => text.trim().parse().map_or(LONGEST, Duration::from_millis).min(LONGEST),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Duration::ZERO,
        Err(_) => LONGEST,
    }
}

fn list(numbers: &BTreeSet<u32>) -> String {
    let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
    numbers.join(",") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_testkit::Folder;

    /// A directory that looks like the machine's `sys`, and goes with this value.
    struct Sys(Folder);

    impl Sys {
        fn new() -> Self {
            let root = Folder::create().unwrap();
            std::fs::create_dir_all(root.at(MEMORY)).unwrap();
            Self(root)
        }

        fn tree(&self) -> Tree {
            Tree::new(Some(self.0.path()))
        }
    }

    #[test]
    fn an_offline_block_is_brought_online_movable() {
        let sys = Sys::new();
        std::fs::create_dir_all(sys.0.at(MEMORY).join("memory9")).unwrap();
        let state = sys.0.at(MEMORY).join("memory9/state");
        std::fs::write(&state, "offline\n").unwrap();
        let done = change(&sys.tree(), &Change::OnlineMemory(9)).unwrap();
        assert_eq!(done, Outcome::Done);
        assert_eq!(std::fs::read_to_string(state).unwrap(), "online_movable");
    }

    #[test]
    fn a_block_that_is_gone_again_needs_nothing() {
        let sys = Sys::new();
        assert_eq!(change(&sys.tree(), &Change::OnlineMemory(9)).unwrap(), Outcome::Gone);
    }

    #[test]
    fn how_long_an_agent_may_act_survives_the_informant() {
        let sys = Sys::new();
        assert_eq!(leased(&sys.tree()), Duration::ZERO, "nobody has registered");
        change(&sys.tree(), &Change::Note(Duration::from_secs(10))).unwrap();
        assert_eq!(leased(&sys.tree()), Duration::from_secs(10));
        for odd in ["", "-1", "soon", "999999999999"] {
            std::fs::write(sys.0.at(LEASED), odd).unwrap();
            assert_eq!(leased(&sys.tree()), LONGEST, "{odd:?}");
        }
        std::fs::remove_file(sys.0.at(LEASED)).unwrap();
        std::fs::create_dir(sys.0.at(LEASED)).unwrap();
        assert_eq!(leased(&sys.tree()), LONGEST, "it is there, and cannot be read");
    }

    #[test]
    fn a_refusal_of_the_kernel_is_an_error() {
        let sys = Sys::new();
        // A directory can be neither written nor read as a file.
        std::fs::create_dir_all(sys.0.at(MEMORY).join("memory9/state")).unwrap();
        change(&sys.tree(), &Change::OnlineMemory(9)).unwrap_err();
    }
}
