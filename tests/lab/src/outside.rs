//! What the hypervisor says that a guest has.

use crate::{LabError, Qmp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A guest as its hypervisor sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outside {
    /// vCPUs plugged.
    pub vcpus: u32,
    /// Memory at boot, in bytes.
    pub boot: u64,
    /// The virtio-mem device, if there is one.
    pub virtio_mem: Option<VirtioMem>,
    /// Sum of the DIMMs, in bytes.
    pub dimms: u64,
}

/// A virtio-mem device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VirtioMem {
    /// What the guest is asked to have, in bytes.
    pub requested: u64,
    /// What the guest has, in bytes.
    pub size: u64,
    /// What it can have at most, in bytes.
    pub max: u64,
}

// === impl Outside ===

impl Outside {
    /// The memory that the guest has.
    pub fn memory(&self) -> u64 {
        self.boot + self.dimms + self.virtio_mem.map_or(0, |device| device.size)
    }

    /// The most memory that the guest has or may take without asking.
    pub fn upper_memory(&self) -> u64 {
        let added = self.virtio_mem.map_or(0, |device| device.size.max(device.requested));
        self.boot + self.dimms + added
    }

    /// Asks.
    pub(crate) async fn ask(qmp: &Qmp) -> Result<Self, LabError> {
        let slots = qmp.execute("query-hotpluggable-cpus", json!({})).await?;
        let summary = qmp.execute("query-memory-size-summary", json!({})).await?;
        let devices = qmp.execute("query-memory-devices", json!({})).await?;
        Self::read(&slots, &summary, &devices)
            .ok_or_else(|| broken(format!("{slots} {summary} {devices}")))
    }

    fn read(slots: &Value, summary: &Value, devices: &Value) -> Option<Self> {
        let plugged = slots.as_array()?.iter().filter(|slot| slot.get("qom-path").is_some());
        let vcpus = plugged.map(|slot| slot["vcpus-count"].as_u64()).sum::<Option<u64>>()?;
        let mut outside = Self {
            vcpus: u32::try_from(vcpus).ok()?,
            boot: summary["base-memory"].as_u64()?,
            virtio_mem: None,
            dimms: 0,
        };
        for device in devices.as_array()? {
            let data = &device["data"];
            match device["type"].as_str()? {
                "dimm" => outside.dimms += data["size"].as_u64()?,
                "virtio-mem" => {
                    outside.virtio_mem = Some(VirtioMem {
                        requested: data["requested-size"].as_u64()?,
                        size: data["size"].as_u64()?,
                        max: data["max-size"].as_u64()?,
                    });
                }
                _ => return None,
            }
        }
        Some(outside)
    }
}

fn broken(words: String) -> LabError {
    LabError::Broken { peer: "qemu's monitor".to_owned(), words }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_slots_with_a_path_are_vcpus() {
        let slots = json!([
            {"type": "max-x86_64-cpu", "vcpus-count": 1, "props": {"core-id": 1}},
            {"type": "max-x86_64-cpu", "vcpus-count": 1, "qom-path": "/machine/unattached/x"}
        ]);
        let devices = json!([
            {"type": "dimm", "data": {"size": 128}},
            {"type": "virtio-mem", "data": {"requested-size": 8, "size": 4, "max-size": 64}}
        ]);
        let outside = Outside::read(&slots, &json!({"base-memory": 256}), &devices).unwrap();
        assert_eq!(outside.vcpus, 1);
        assert_eq!(outside.memory(), 256 + 128 + 4);
        assert_eq!(outside.upper_memory(), 256 + 128 + 8);
    }
}
