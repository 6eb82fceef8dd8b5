//! The memory of a machine: boot memory, and what is above it in one of the ways.

use crate::link::{CallError, Link, read, unless_refused};
use crate::wire::{QmpError, Returned};
use serde::Deserialize;
use windlass_drivers::DriverError;
use windlass_protocol::{Bytes, MemorySeen};

pub(super) const COMMAND: &str = "resize of memory";

/// What QEMU is asked for its memory.
pub(crate) const MEMORY: [&str; 2] = ["query-memory-size-summary", "query-memory-devices"];

/// The size of each DIMM that Windlass plugs: x86 Linux takes and gives memory in sections of 128 MiB. QEMU accepts less,
/// and the guest then fails without a word.
pub(crate) const DIMM_SIZE: Bytes = Bytes::from_mib(128);

/// What the ids of those begin with.
pub(super) const DIMM: &str = "windlass-dimm-";

/// How memory is added to this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// By asking the guest to use more or less of virtio-mem devices.
    VirtioMem,
    /// By DIMMs.
    Dimms {
        /// How many may be plugged, other people's too.
        slots: u64,
        /// Boot memory and DIMMs, at most.
        most: Bytes,
    },
    /// Not at all.
    Fixed,
}

/// All memory of a machine.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Memory {
    base: Bytes,
    devices: Vec<Device>,
}

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
    pub(crate) size: Bytes,
    #[serde(default, rename = "requested-size")]
    pub(crate) requested: Bytes,
    #[serde(default, rename = "max-size")]
    pub(crate) most: Bytes,
    #[serde(default, rename = "block-size")]
    pub(crate) block: Bytes,
}

#[derive(Deserialize)]
struct Summary {
    #[serde(rename = "base-memory")]
    base: Bytes,
}

/// `-m size,slots=…,maxmem=…`
#[derive(Deserialize)]
struct Configured {
    slots: Option<u64>,
    #[serde(rename = "max-size")]
    most: Option<Bytes>,
}

// === impl Memory ===

impl Memory {
    /// Asks for it.
    pub(crate) async fn fetch(link: &mut Link) -> Result<Self, CallError> {
        let [summary, devices] = link.ask_all(MEMORY).await?;
        Self::read([summary, devices])
    }

    /// Reads the answers to [`MEMORY`].
    pub(crate) fn read(
        [summary, devices]: [Result<Returned, QmpError>; 2],
    ) -> Result<Self, CallError> {
        let Summary { base } = read(MEMORY[0], summary)?;
        Ok(Self { base, devices: read(MEMORY[1], devices)? })
    }

    /// The virtio-mem devices.
    pub(crate) fn virtio(&self) -> impl Iterator<Item = &Device> {
        self.devices.iter().filter(|device| device.kind == "virtio-mem")
    }

    /// The DIMMs that Windlass plugged.
    pub(crate) fn dimms(&self) -> impl Iterator<Item = (&str, &Device)> {
        self.devices.iter().filter_map(|device| Some((ours(device)?, device)))
    }

    /// What is there and is not moved.
    pub(crate) fn boot(&self, way: Way) -> Bytes {
        let kept = |device: &&Device| match way {
            Way::VirtioMem => device.kind != "virtio-mem",
            Way::Dimms { .. } => ours(device).is_none(),
            Way::Fixed => true,
        };
        let kept = self.devices.iter().filter(kept);
        self.base.saturating_add(sum(kept.map(|device| device.data.size)))
    }

    /// The three figures.
    pub(crate) fn seen(&self, way: Way, link: &Link) -> MemorySeen {
        let boot = self.boot(way);
        match way {
            Way::VirtioMem => MemorySeen {
                boot,
                requested: sum(self.virtio().map(|device| device.data.requested)),
                size: sum(self.virtio().map(|device| device.data.size)),
            },
            Way::Dimms { .. } => {
                let stays = |id: &str| !link.unplugging.has(id);
                let staying = self.dimms().filter(|(id, _)| stays(id));
                MemorySeen {
                    boot,
                    requested: sum(staying.map(|(_, device)| device.data.size)),
                    size: sum(self.dimms().map(|(_, device)| device.data.size)),
                }
            }
            Way::Fixed => MemorySeen { boot, ..MemorySeen::default() },
        }
    }

    /// The most that there can be.
    pub(crate) fn most(&self, way: Way) -> Bytes {
        let boot = self.boot(way);
        boot.saturating_add(match way {
            Way::VirtioMem => sum(self.virtio().map(|device| device.data.most)),
            Way::Dimms { slots, most } => {
                let others = self.devices.iter().filter(|device| ours(device).is_none());
                let free = slots.saturating_sub(others.count() as u64);
                let room = most.saturating_sub(boot).round_down(DIMM_SIZE);
                DIMM_SIZE.saturating_mul(free).min(room)
            }
            Way::Fixed => Bytes::ZERO,
        })
    }

    /// In which steps it moves.
    pub(crate) fn step(&self, way: Way) -> Bytes {
        match way {
            // Powers of two, so that the largest is a multiple of each.
            Way::VirtioMem => {
                let largest = self.virtio().map(|device| device.data.block).max();
                largest.unwrap_or_default().max(Bytes::from_bytes(1))
            }
            Way::Dimms { .. } | Way::Fixed => DIMM_SIZE,
        }
    }
}

// === impl Way ===

impl Way {
    /// Finds out how memory is added.
    pub(crate) async fn fetch(link: &mut Link, memory: &Memory) -> Result<Self, CallError> {
        if memory.virtio().next().is_some() {
            return Ok(Self::VirtioMem);
        }
        // A machine that has no such property has no slots either.
        let configured = link.property::<Configured>("/machine", "memory").await;
        Ok(match unless_refused(configured)? {
            Some(Configured { slots: Some(slots), most: Some(most) }) if slots > 0 => {
                Self::Dimms { slots, most }
            }
            _ => Self::Fixed,
        })
    }
}

/// Of any figures that a hypervisor may name.
pub(super) fn sum(sizes: impl IntoIterator<Item = Bytes>) -> Bytes {
    sizes.into_iter().fold(Bytes::ZERO, Bytes::saturating_add)
}

/// That a resize of memory cannot be.
pub(super) fn refused(reason: String) -> DriverError {
    DriverError::Refused { command: COMMAND, reason }
}

/// The id of this device, if it is a DIMM that Windlass plugged.
pub(super) fn ours(device: &Device) -> Option<&str> {
    let id = device.data.id.as_deref()?;
    (device.kind == "dimm" && number(id, DIMM).is_some() && device.data.size == DIMM_SIZE)
        .then_some(id)
}

/// The number in an id that begins so.
pub(super) fn number(id: &str, prefix: &str) -> Option<u64> {
    id.strip_prefix(prefix)?.parse().ok()
}
