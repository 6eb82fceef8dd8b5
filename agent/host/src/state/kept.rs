//! What survives a restart, and what can become of it.
//!
//! Whatever changes it says whether anything is another than before, so that a state that stayed as it
//! was is not written again.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use windlass_agent::Lifecycle;
use windlass_protocol::status::Ordered;
use windlass_protocol::{CpuLimit, Moment, Resources, VmRecord};

/// What survives a restart, by the name of the VM.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    /// The form of this file.
    pub version: u32,
    /// Since when the host is frozen.
    pub frozen: Option<Moment>,
    /// The last order to freeze or thaw, and who gave it.
    pub ordered: Option<Ordered>,
    /// The last order about each VM that is known, and who gave it.
    #[serde(default)]
    pub orders: BTreeMap<String, Ordered>,
    /// Until when VMs are paused.
    pub pauses: BTreeMap<String, Moment>,
    /// At which port the informant of a VM calls back.
    pub ports: BTreeMap<String, u16>,
    /// VMs whose hypervisor was not seen to be gone.
    pub vms: BTreeMap<String, Known>,
}

/// A VM that counts in the books.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// How it stands.
    #[serde(rename = "hold")]
    pub standing: Lifecycle,
    /// Its monitor.
    pub monitor: PathBuf,
    /// Whether its vCPUs can be removed.
    pub vcpu_removal: bool,
    /// How its file says that its CPU is limited; not written where it says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_limit: Option<CpuLimit>,
    /// The most it was last seen to have; absent while it is not there.
    pub size: Option<Resources>,
    /// The most that it may be promised.
    pub max: Resources,
    /// What else the books know of it.
    pub record: VmRecord,
}

// === impl Kept ===

impl Kept {
    /// Freezes the host since then, or thaws it.
    pub fn freeze(&mut self, since: Option<Moment>) -> bool {
        std::mem::replace(&mut self.frozen, since) != since
    }

    /// Pauses a VM until then, or ends its pause.
    pub fn pause(&mut self, vm: &str, until: Option<Moment>) -> bool {
        match until {
            Some(until) => put(&mut self.pauses, vm, until),
            None => self.pauses.remove(vm).is_some(),
        }
    }

    /// A VM that counts in the books stands like this.
    pub fn stand(&mut self, vm: &str, standing: Lifecycle) -> bool {
        let known = self.vms.get_mut(vm);
        known.is_some_and(|known| std::mem::replace(&mut known.standing, standing) != standing)
    }

    /// A VM that counts in the books was last seen to have this.
    pub fn see(&mut self, vm: &str, size: Option<Resources>) -> bool {
        let known = self.vms.get_mut(vm);
        known.is_some_and(|known| std::mem::replace(&mut known.size, size) != size)
    }
}

/// Lets go of what does not hold. Whether anything goes.
pub fn shrink<T>(map: &mut BTreeMap<String, T>, holds: impl Fn(&str, &T) -> bool) -> bool {
    let before = map.len();
    map.retain(|vm, value| holds(vm, value));
    map.len() != before
}

/// Has this value stand there. Whether another stood there, or none.
pub fn put<T: PartialEq>(map: &mut BTreeMap<String, T>, vm: &str, value: T) -> bool {
    let changes = map.get(vm) != Some(&value);
    if changes {
        map.insert(vm.to_owned(), value);
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A release that knows no such key reads the file, unless a VM file has it.
    #[test]
    fn a_limit_that_no_vm_file_names_is_not_written() {
        let known = |cpu_limit| Known {
            standing: Lifecycle::Managed,
            monitor: "/run/vms/a/qmp.sock".into(),
            vcpu_removal: false,
            cpu_limit,
            size: None,
            max: Resources::ZERO,
            record: VmRecord::default(),
        };
        for (limit, written) in [
            (None, None),
            (Some(CpuLimit::Trust), Some("trust")),
            (Some(CpuLimit::None), Some("none")),
        ] {
            let json = serde_json::to_value(known(limit)).unwrap();
            assert_eq!(json.get("cpu_limit").and_then(|word| word.as_str()), written);
            assert_eq!(serde_json::from_value::<Known>(json).unwrap(), known(limit));
        }
    }

    #[test]
    fn each_change_says_whether_it_changed_anything() {
        let (now, size) = (Moment::from_millis(1_000), Some(Resources::ZERO));
        let known = Known {
            standing: Lifecycle::Managed,
            monitor: "/run/vms/a/qmp.sock".into(),
            vcpu_removal: false,
            cpu_limit: None,
            size: None,
            max: Resources::ZERO,
            record: VmRecord::default(),
        };
        let changes: [&dyn Fn(&mut Kept) -> bool; 10] = [
            &|kept| kept.freeze(Some(now)),
            &|kept| kept.pause("a", Some(now)),
            &|kept| kept.pause("a", Some(now.after(std::time::Duration::from_secs(1)))),
            &|kept| put(&mut kept.ports, "a", 10_310),
            &|kept| put(&mut kept.vms, "a", known.clone()),
            &|kept| kept.see("a", size),
            &|kept| kept.stand("a", Lifecycle::Released),
            &|kept| kept.pause("a", None),
            &|kept| shrink(&mut kept.vms, |vm, _| vm != "a"),
            &|kept| kept.freeze(None),
        ];
        let mut kept = Kept::default();
        for (nth, change) in changes.iter().enumerate() {
            let before = kept.clone();
            assert!(change(&mut kept), "{nth}");
            assert_ne!(kept, before, "{nth}");
            let after = kept.clone();
            assert!(!change(&mut kept), "{nth} again");
            assert_eq!(kept, after, "{nth} again");
        }
        // Of a VM that does not count in the books nothing is kept.
        assert!(!kept.see("a", size) && !kept.stand("a", Lifecycle::Removed));
    }
}
