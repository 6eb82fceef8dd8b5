//! What a machine with vCPU slots and one device of virtio-mem has, and what it answers.

use serde_json::{Value, json};

const MIB: u64 = 1 << 20;

/// The sizes of a machine, which change as it is asked to. Memory is in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// vCPUs that are plugged; the first ones.
    pub plugged: u64,
    /// Slots for vCPUs.
    pub slots: u64,
    /// Memory that the machine booted with.
    pub boot: u64,
    /// Memory of virtio-mem that the guest has.
    pub added: u64,
    /// The same, as it was last asked for.
    pub requested: u64,
    /// The most of it.
    pub most_added: u64,
}

// === impl Sizes ===

impl Sizes {
    /// 2 of 4 vCPUs, 256 MiB, and so many of 1,024 MiB of virtio-mem.
    pub fn small(added_mib: u64) -> Self {
        let added = added_mib * MIB;
        let (boot, most_added) = (256 * MIB, 1024 * MIB);
        Self { plugged: 2, slots: 4, boot, added, requested: added, most_added }
    }

    /// What is answered to a command, which may change sizes; nothing if it is not known.
    pub fn answer(&mut self, command: &str, arguments: &Value) -> Option<Value> {
        match command {
            "device_add" => self.plugged += 1,
            "qom-set" => {
                self.requested = arguments["value"].as_u64()?;
                self.added = self.requested;
            }
            _ => {}
        }
        Some(match command {
            "query-hotpluggable-cpus" => (0..self.slots).rev().map(|slot| self.cpu(slot)).collect(),
            "query-memory-devices" => json!([{"type": "virtio-mem", "data": {
                "memdev": "/objects/vmem0", "memaddr": 1_u64 << 32, "block-size": 2 * MIB,
                "size": self.added, "node": 0, "max-size": self.most_added,
                "requested-size": self.requested, "id": "vm0",
            }}]),
            "query-memory-size-summary" => {
                json!({"base-memory": self.boot, "plugged-memory": self.added})
            }
            "query-memdev" => json!([{"id": "vmem0", "size": self.most_added}]),
            "query-kvm" => json!({"enabled": false, "present": true}),
            "query-status" => json!({"status": "running", "running": true, "singlestep": false}),
            "qom-list" => json!([]),
            "query-migrate" | "qmp_capabilities" | "qom-set" | "device_add" | "device_del"
            | "object-add" | "object-del" => json!({}),
            _ => return None,
        })
    }

    fn cpu(&self, slot: u64) -> Value {
        let mut cpu = json!({
            "type": "max-x86_64-cpu", "vcpus-count": 1,
            "props": {"socket-id": 0, "core-id": slot, "thread-id": 0, "node-id": 0},
        });
        if slot < self.plugged {
            cpu["qom-path"] = format!("/machine/unattached/device[{}]", 2 * slot).into();
        }
        cpu
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_there() {
        let mut sizes = Sizes::small(0);
        assert_eq!(sizes.answer("qom-set", &json!({"value": 8 * MIB})), Some(json!({})));
        sizes.answer("device_add", &Value::Null).unwrap();
        let slots = sizes.answer("query-hotpluggable-cpus", &Value::Null).unwrap();
        let plugged = slots.as_array().unwrap().iter().filter(|slot| slot["qom-path"].is_string());
        assert_eq!((plugged.count(), sizes.added, sizes.requested), (3, 8 * MIB, 8 * MIB));
        assert_eq!(sizes.answer("quit", &Value::Null), None);
    }
}
