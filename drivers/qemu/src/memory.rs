//! Memory: boot memory, and what is above it.
//!
//! One of two ways is used, chosen at the first look: virtio-mem devices, where there are any;
//! else DIMMs of [`DIMM_SIZE`] each, where the machine has slots. Whatever is there and does
//! not belong to that way (a DIMM that another program plugged) counts as boot memory: it is had,
//! and Windlass never moves it.

mod dimm;
mod machine;
mod virtio;

pub(crate) use dimm::sweep;
pub(crate) use machine::{DIMM_SIZE, MEMORY, Memory, Way};

use crate::link::Link;
use machine::{COMMAND, refused};
use windlass_drivers::DriverError;
use windlass_protocol::Bytes;

/// Has `total` memory, boot memory included.
pub(crate) async fn resize(link: &mut Link, way: Way, total: Bytes) -> Result<(), DriverError> {
    let memory = Memory::fetch(link).await.map_err(|error| error.of(COMMAND))?;
    let (boot, most) = (memory.boot(way), memory.most(way));
    if total < boot {
        return Err(refused(format!("{total} is less than the {boot} that it was started with")));
    }
    if total > most {
        return Err(refused(format!("{total} is more than the {most} that it can have")));
    }
    let extra = total.saturating_sub(boot);
    let step = memory.step(way);
    if extra.round_down(step) != extra {
        return Err(refused(format!("{extra} above boot memory is no multiple of {step}")));
    }
    match way {
        Way::VirtioMem => virtio::resize(link, &memory, extra).await,
        Way::Dimms { .. } => dimm::resize(link, &memory, extra).await,
        // Between boot memory and the same there is nothing to do.
        Way::Fixed => Ok(()),
    }
}
