//! Memory by virtio-mem: the guest is asked to use this much of each device.
//!
//! The request can be taken back at any time by another one, and it outlives a reset. With
//! several devices (one per NUMA node) growth fills the first before the next, and shrinkage
//! empties the last before the one before it; at no moment is more asked for in all than before
//! or after.

use super::machine::{COMMAND, DeviceData, Memory, refused, sum};
use crate::link::{CallError, Link};
use serde_json::{Value, json};
use windlass_drivers::DriverError;
use windlass_protocol::Bytes;

/// Asks for `extra` in all.
pub(super) async fn resize(
    link: &mut Link,
    memory: &Memory,
    extra: Bytes,
) -> Result<(), DriverError> {
    let devices: Vec<_> = memory.virtio().map(|device| &device.data).collect();
    let wanted = spread(&devices, extra);
    if sum(wanted.iter().copied()) != extra {
        return Err(refused(format!("{extra} cannot be had in whole blocks of its devices")));
    }
    let mut done = 0;
    for (device, wanted) in devices.into_iter().zip(wanted) {
        if wanted == device.requested {
            continue;
        }
        let path = match device.id.as_deref().filter(|id| !id.is_empty()) {
            Some(id) => format!("/machine/peripheral/{id}"),
            None => match nameless(link, device.memdev.as_deref()).await {
                Ok(Some(path)) => path,
                Ok(None) => return Err(refused("a virtio-mem device is not found".to_owned())),
                Err(error) => return Err(error.after(done, COMMAND)),
            },
        };
        let request = json!({ "path": path, "property": "requested-size", "value": wanted });
        link.call("qom-set", request).await.map_err(|error| error.after(done, COMMAND))?;
        done += 1;
    }
    Ok(())
}

/// How much to ask of each device so that it is `total` in all, or as near below as they can.
fn spread(devices: &[&DeviceData], total: Bytes) -> Vec<Bytes> {
    let mut wanted: Vec<_> = devices.iter().map(|device| device.requested).collect();
    let asked = sum(wanted.iter().copied());
    let mut missing = total.saturating_sub(asked);
    for (wanted, device) in wanted.iter_mut().zip(devices) {
        let more = device.most.saturating_sub(*wanted).min(missing).round_down(device.block);
        *wanted = wanted.saturating_add(more);
        missing = missing.saturating_sub(more);
    }
    let mut surplus = asked.saturating_sub(total);
    for (wanted, device) in wanted.iter_mut().zip(devices).rev() {
        let less = (*wanted).min(surplus).round_down(device.block);
        *wanted = wanted.saturating_sub(less);
        surplus = surplus.saturating_sub(less);
    }
    wanted
}

/// The path of a device that was given no id, by the backend that it alone has.
async fn nameless(link: &mut Link, memdev: Option<&str>) -> Result<Option<String>, CallError> {
    const ANONYMOUS: &str = "/machine/peripheral-anon";
    let children = link.children(ANONYMOUS).await?;
    for child in children.iter().filter(|child| child.kind.starts_with("child<virtio-mem-")) {
        let path = format!("{ANONYMOUS}/{}", child.name);
        let backend: Value = link.property(&path, "memdev").await?;
        if backend.as_str() == memdev {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_fills_the_first_device_and_shrinkage_empties_the_last() {
        let empty = [device(0, 100), device(0, 100)];
        assert_eq!(spread_bytes(&empty, 40), [40, 0]);
        assert_eq!(spread_bytes(&empty, 160), [100, 60]);
        assert_eq!(spread_bytes(&[device(100, 100), device(60, 100)], 150), [100, 50]);
        assert_eq!(spread_bytes(&[device(100, 100), device(60, 100)], 30), [30, 0]);
    }

    #[test]
    fn a_device_that_somebody_else_filled_is_left_alone_while_there_is_room() {
        assert_eq!(spread_bytes(&[device(0, 100), device(50, 100)], 70), [20, 50]);
        assert_eq!(spread_bytes(&[device(10, 100), device(50, 100)], 60), [10, 50]);
    }

    #[test]
    fn more_than_there_is_cannot_be_had() {
        assert_eq!(spread_bytes(&[device(0, 100)], 500), [100]);
        let blocks = DeviceData { block: Bytes::from_bytes(64), ..device(0, 100) };
        assert_eq!(spread_bytes(&[blocks], 70), [64]);
    }

    #[test]
    fn figures_of_any_size_overflow_nothing() {
        let full = device(u64::MAX, u64::MAX);
        let most = spread_bytes(&[full.clone(), full.clone()], u64::MAX);
        assert_eq!(sum(most.into_iter().map(Bytes::from_bytes)), Bytes::from_bytes(u64::MAX));
        assert_eq!(spread_bytes(&[full, device(4, 4)], 4), [9, 0]);
    }

    fn spread_bytes(devices: &[DeviceData], total: u64) -> Vec<u64> {
        let devices: Vec<_> = devices.iter().collect();
        spread(&devices, Bytes::from_bytes(total)).into_iter().map(Bytes::bytes).collect()
    }

    fn device(requested: u64, most: u64) -> DeviceData {
        let [size, requested, most, block] = [0, requested, most, 2].map(Bytes::from_bytes);
        DeviceData { id: None, memdev: None, size, requested, most, block }
    }
}
