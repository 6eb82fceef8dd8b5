//! Memory by virtio-mem: the guest is asked to use this much of each device.
//!
//! The request can be taken back at any time by another one, and it outlives a reset. With
//! several devices (one per NUMA node) growth fills the first before the next, and shrinkage
//! empties the last before the one before it; at no moment is more asked for in all than before
//! or after.

use super::machine::{COMMAND, DeviceData, Memory, refused};
use crate::link::{CallError, Link};
use serde_json::{Value, json};
use windlass_drivers::DriverError;
use windlass_protocol::Bytes;

/// What is asked of one device, and the most it can have, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Share {
    requested: u64,
    most: u64,
    block: u64,
}

/// Asks for `extra` in all.
pub(super) async fn resize(
    link: &mut Link,
    memory: &Memory,
    extra: Bytes,
) -> Result<(), DriverError> {
    let share =
        |data: &DeviceData| Share { requested: data.requested, most: data.most, block: data.block };
    let shares: Vec<_> = memory.virtio().map(|device| share(&device.data)).collect();
    let wanted = spread(&shares, extra.bytes());
    if sum(&wanted) != extra.bytes() {
        return Err(refused(format!("{extra} cannot be had in whole blocks of its devices")));
    }
    let mut done = 0;
    for ((device, share), wanted) in memory.virtio().zip(&shares).zip(wanted) {
        if wanted == share.requested {
            continue;
        }
        let path = match device.data.id.as_deref().filter(|id| !id.is_empty()) {
            Some(id) => format!("/machine/peripheral/{id}"),
            None => match nameless(link, device.data.memdev.as_deref()).await {
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
fn spread(shares: &[Share], total: u64) -> Vec<u64> {
    let mut wanted: Vec<_> = shares.iter().map(|share| share.requested).collect();
    let asked = sum(&wanted);
    let mut missing = total.saturating_sub(asked);
    for (wanted, share) in wanted.iter_mut().zip(shares) {
        let more = whole(share.most.saturating_sub(*wanted).min(missing), share.block);
        *wanted += more;
        missing -= more;
    }
    let mut surplus = asked.saturating_sub(total);
    for (wanted, share) in wanted.iter_mut().zip(shares).rev() {
        let less = whole((*wanted).min(surplus), share.block);
        *wanted -= less;
        surplus -= less;
    }
    wanted
}

/// Of any figures that a hypervisor may name.
fn sum(amounts: &[u64]) -> u64 {
    amounts.iter().fold(0, |sum, amount| sum.saturating_add(*amount))
}

fn whole(amount: u64, block: u64) -> u64 {
    Bytes::from_bytes(amount).round_down(Bytes::from_bytes(block)).bytes()
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
        let shares = [share(0, 100), share(0, 100)];
        assert_eq!(spread(&shares, 40), [40, 0]);
        assert_eq!(spread(&shares, 160), [100, 60]);
        assert_eq!(spread(&[share(100, 100), share(60, 100)], 150), [100, 50]);
        assert_eq!(spread(&[share(100, 100), share(60, 100)], 30), [30, 0]);
    }

    #[test]
    fn a_device_that_somebody_else_filled_is_left_alone_while_there_is_room() {
        assert_eq!(spread(&[share(0, 100), share(50, 100)], 70), [20, 50]);
        assert_eq!(spread(&[share(10, 100), share(50, 100)], 60), [10, 50]);
    }

    #[test]
    fn more_than_there_is_cannot_be_had() {
        assert_eq!(spread(&[share(0, 100)], 500), [100]);
        let blocks = Share { requested: 0, most: 100, block: 64 };
        assert_eq!(spread(&[blocks], 70), [64]);
    }

    #[test]
    fn figures_of_any_size_overflow_nothing() {
        let full = share(u64::MAX, u64::MAX);
        assert_eq!(sum(&spread(&[full, full], u64::MAX)), u64::MAX);
        assert_eq!(spread(&[full, share(4, 4)], 4), [9, 0]);
    }

    fn share(requested: u64, most: u64) -> Share {
        Share { requested, most, block: 2 }
    }
}
