//! One device with memory, and whether Windlass plugged it.

use serde::Deserialize;
use windlass_protocol::Bytes;

/// The size of each DIMM that Windlass plugs: x86 Linux takes and gives memory in sections of 128 MiB. QEMU accepts less,
/// and the guest then fails without a word.
pub(crate) const DIMM_SIZE: Bytes = Bytes::from_mib(128);

/// What the ids of those begin with.
pub(super) const DIMM: &str = "windlass-dimm-";

/// One device with memory, as `query-memory-devices` says it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct Device {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) data: DeviceData,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct DeviceData {
    pub(crate) id: Option<String>,
    pub(crate) memdev: Option<String>,
    #[serde(default)]
    pub(crate) size: u64,
    #[serde(default, rename = "requested-size")]
    pub(crate) requested: u64,
    #[serde(default, rename = "max-size")]
    pub(crate) most: u64,
    #[serde(default, rename = "block-size")]
    pub(crate) block: u64,
}

// === impl Device ===

impl Device {
    pub(crate) fn size(&self) -> Bytes {
        Bytes::from_bytes(self.data.size)
    }
}

/// The id of this device, if it is a DIMM that Windlass plugged.
pub(super) fn ours(device: &Device) -> Option<&str> {
    let id = device.data.id.as_deref()?;
    (device.kind == "dimm" && number(id, DIMM).is_some() && device.size() == DIMM_SIZE)
        .then_some(id)
}

/// The number in an id that begins so.
pub(super) fn number(id: &str, prefix: &str) -> Option<u64> {
    id.strip_prefix(prefix)?.parse().ok()
}
