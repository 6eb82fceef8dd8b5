//! What an object of a cluster says of how its VM is scaled: each annotation with its last valid value.

use std::collections::BTreeMap;
use windlass_protocol::annotations::{Annotations, Defaults};
use windlass_protocol::config::Problem;
use windlass_protocol::{Bounds, Bytes, CpuLimit, ScaleDownSaid, Usual, VmInfo, VmName};

/// What was said last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Said {
    /// By which object.
    uid: String,
    annotations: Annotations,
}

/// An object, as far as it says how its VM is scaled.
#[derive(Clone, Copy)]
pub(crate) struct Object<'a> {
    pub(crate) uid: &'a str,
    pub(crate) annotations: &'a BTreeMap<String, String>,
    /// The bounds, where no annotation says them.
    pub(crate) bounds: Option<Bounds>,
    /// The step of memory.
    pub(crate) slot: Bytes,
    /// How the VM's CPU is limited.
    pub(crate) cpu_limit: Option<CpuLimit>,
}

// === impl Said ===

impl Said {
    /// What the object says of the VM of this name now, if that is enough to scale it, and what is not valid.
    pub(crate) fn read(
        &mut self,
        vm: &VmName,
        object: Object<'_>,
        usual: Usual,
    ) -> (Option<VmInfo>, Vec<Problem>) {
        let Object { uid, annotations, bounds, slot, cpu_limit } = object;
        // Another object of the same name has said nothing yet.
        if self.uid != uid {
            *self = Self { uid: uid.to_owned(), annotations: Annotations::default() };
        }
        let mut problems = self.annotations.update(annotations, slot);
        // What counts in place of bounds that were never understood may be far more.
        if let Some(name) = self.annotations.unread_bounds(annotations) {
            let limit = "was not valid since this agent started: the vm keeps its size";
            problems.push(Problem::without_value(name, limit));
            return (None, problems);
        }
        let defaults = Defaults {
            bounds,
            policy: None,
            load_window: None,
            priority: None,
            mode: None,
            memory_slot: slot,
            scale_down: ScaleDownSaid::default(),
            cpu_limit,
            usual,
        };
        match self.annotations.info(vm.clone(), &defaults) {
            Ok(info) => (Some(info), problems),
            Err(more) => {
                problems.extend(more);
                (None, problems)
            }
        }
    }
}
