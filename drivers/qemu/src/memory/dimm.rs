//! Memory by DIMMs, for machines that have slots and no virtio-mem.
//!
//! Each DIMM is [`DIMM_SIZE`], the least that a Linux guest can take. Its ids say that it is
//! Windlass's: `windlass-dimm-3` on `windlass-mem-3`. The guest gives one back in its own time
//! and cannot be told to stop; the host has the memory back only when the backend behind it is
//! deleted too, which [`sweep`] does.

use super::machine::{COMMAND, DIMM, DIMM_SIZE, Memory, number};
use crate::link::{CallError, Link, unless_refused};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use windlass_drivers::DriverError;
use windlass_protocol::Bytes;

const BACKEND: &str = "windlass-mem-";

#[derive(Deserialize)]
struct Backend {
    id: Option<String>,
}

/// Has `extra` in DIMMs, a multiple of [`DIMM_SIZE`].
pub(super) async fn resize(
    link: &mut Link,
    memory: &Memory,
    extra: Bytes,
) -> Result<(), DriverError> {
    let numbers = memory.dimms().filter_map(|(id, _)| number(id, DIMM));
    let plugged: BTreeSet<u64> = numbers.collect();
    let staying = |number: &&u64| !link.unplugging.has(&format!("{DIMM}{number}"));
    let staying: Vec<u64> = plugged.iter().filter(staying).copied().collect();
    let mut done = 0;
    for number in added(&plugged, extra.whole(DIMM_SIZE)) {
        add(link, number).await.map_err(|error| error.after(done, COMMAND))?;
        done += 1;
    }
    for number in removed(&staying, extra.whole(DIMM_SIZE)) {
        let id = format!("{DIMM}{number}");
        match link.call("device_del", json!({ "id": id })).await {
            Ok(_) => link.unplugging.ask(&id),
            Err(CallError::Said(said)) if said.class == "DeviceNotFound" => {}
            Err(error) => return Err(error.after(done, COMMAND)),
        }
        done += 1;
    }
    Ok(())
}

/// Deletes backends that no DIMM uses any more.
pub(crate) async fn sweep(link: &mut Link, memory: &Memory) -> Result<(), CallError> {
    let used: BTreeSet<u64> = memory.dimms().filter_map(|(id, _)| number(id, DIMM)).collect();
    let backends: Vec<Backend> = link.ask("query-memdev", Value::Null).await?;
    for id in backends.into_iter().filter_map(|backend| backend.id) {
        if number(&id, BACKEND).is_some_and(|number| !used.contains(&number)) {
            // "in use": a device that is not quite gone; the next look sees to it.
            unless_refused(link.call("object-del", json!({ "id": id })).await)?;
        }
    }
    Ok(())
}

/// The lowest free numbers, as many as are missing to `wanted`.
fn added(plugged: &BTreeSet<u64>, wanted: u64) -> Vec<u64> {
    let missing = usize::try_from(wanted).unwrap_or(usize::MAX).saturating_sub(plugged.len());
    (0..).filter(|number| !plugged.contains(number)).take(missing).collect()
}

/// The highest numbers, as many as are too much of those that are not leaving already.
fn removed(staying: &[u64], wanted: u64) -> Vec<u64> {
    let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
    let surplus = staying.len().saturating_sub(wanted);
    staying.iter().rev().take(surplus).copied().collect()
}

async fn add(link: &mut Link, number: u64) -> Result<(), CallError> {
    let (dimm, backend) = (format!("{DIMM}{number}"), format!("{BACKEND}{number}"));
    let object = json!({
        "qom-type": "memory-backend-ram",
        "id": backend,
        "size": DIMM_SIZE.bytes(),
    });
    match link.call("object-add", object).await {
        Ok(_) => {}
        // Left by an attempt that got no further.
        Err(CallError::Said(said)) if said.desc.starts_with("attempt to add duplicate") => {}
        Err(error) => return Err(error),
    }
    let device = json!({ "driver": "pc-dimm", "id": dimm, "memdev": backend });
    match link.call("device_add", device).await {
        Ok(_) => Ok(()),
        Err(CallError::Said(said)) if said.desc.starts_with("Duplicate ") => Ok(()),
        Err(CallError::Said(said)) => {
            // A backend without a device takes memory of the host, and no guest has it.
            link.call("object-del", json!({ "id": backend })).await.ok();
            Err(CallError::Said(said))
        }
        Err(lost @ CallError::Lost(_)) => Err(lost),
    }
}

#[cfg(test)]
mod tests {
    use super::super::machine::{Device, ours};
    use super::*;

    #[test]
    fn free_numbers_are_used_again_the_lowest_first() {
        assert_eq!(added(&BTreeSet::from([0, 2]), 4), [1, 3]);
        assert_eq!(added(&BTreeSet::from([0, 2]), 2), [0; 0]);
    }

    #[test]
    fn those_that_are_leaving_already_are_not_asked_for_twice() {
        assert_eq!(removed(&[0, 1, 2, 3], 2), [3, 2]);
        assert_eq!(removed(&[0, 1], 2), [0; 0]);
        assert_eq!(removed(&[0, 1], 1), [1]);
    }

    #[test]
    fn only_dimms_of_our_name_and_size_are_ours() {
        for (kind, id, size, is_ours) in [
            ("dimm", Some("windlass-dimm-0"), DIMM_SIZE, true),
            ("dimm", Some("windlass-dimm-0"), Bytes::from_mib(256), false),
            ("dimm", Some("windlass-dimm-x"), DIMM_SIZE, false),
            ("dimm", Some("dimm0"), DIMM_SIZE, false),
            ("dimm", None, DIMM_SIZE, false),
            ("nvdimm", Some("windlass-dimm-0"), DIMM_SIZE, false),
        ] {
            let device: Device = serde_json::from_value(
                json!({"type": kind, "data": {"id": id, "size": size.bytes(), "slot": 0}}),
            )
            .unwrap();
            assert_eq!(ours(&device).is_some(), is_ours, "{kind} {id:?} {size}");
        }
    }
}
