//! vCPUs: which are plugged, and how more are.
//!
//! Free slots are filled in ascending order, under ids that Windlass recognises as its own, so
//! a plan that is carried out twice has the effect of once. vCPUs are taken out in descending
//! order, only those that Windlass put in, and only where that was chosen: elsewhere the
//! informant parks them. With TCG they are never taken out: QEMU 7.2 dies at the first change
//! after that, later ones when they run out of translation contexts.

use crate::link::{CallError, Link, read, unless_refused};
use crate::wire::{QmpError, Returned};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};
use windlass_drivers::DriverError;
use windlass_protocol::{MilliCpu, ShrinkCpu};

/// Ids of vCPUs that Windlass put in: this, and the number of the slot.
const ID: &str = "windlass-cpu-";
const PERIPHERAL: &str = "/machine/peripheral/";
/// Where vCPUs sit, from the largest part of a machine to the smallest.
const TOPOLOGY: [&str; 8] = [
    "drawer-id",
    "book-id",
    "socket-id",
    "die-id",
    "cluster-id",
    "module-id",
    "core-id",
    "thread-id",
];

const COMMAND: &str = "resize of vcpus";

/// What QEMU is asked for its vCPUs. A machine type without hotplug refuses it.
pub(crate) const SLOTS: &str = "query-hotpluggable-cpus";

/// One place for a vCPU, in the order in which they are filled.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct Slot {
    #[serde(rename = "type")]
    model: String,
    props: Map<String, Value>,
    /// Present if and only if there is a vCPU in it.
    #[serde(rename = "qom-path")]
    plugged: Option<String>,
}

/// The vCPUs of a machine.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Vcpus {
    /// They can come, in ascending order.
    Slots(Vec<Slot>),
    /// The machine type has no hotplug of vCPUs; it has this many.
    Fixed(u64),
}

/// A slot, as far as a look reads it: a machine may have hundreds, and each VM is looked at all the time.
#[derive(Deserialize)]
struct Occupied {
    #[serde(rename = "qom-path")]
    plugged: Option<IgnoredAny>,
}

// === impl Vcpus ===

impl Vcpus {
    /// Asks for them.
    pub(crate) async fn fetch(link: &mut Link) -> Result<Self, CallError> {
        let [slots] = link.ask_all([SLOTS]).await?;
        Self::read(link, slots).await
    }

    /// Reads the answer to [`SLOTS`].
    pub(crate) async fn read(
        link: &mut Link,
        slots: Result<Returned, QmpError>,
    ) -> Result<Self, CallError> {
        match unless_refused(read(SLOTS, slots))? {
            Some(slots) => Ok(Self::of(slots)),
            None => Ok(Self::Fixed(present(link).await?)),
        }
    }

    fn of(mut slots: Vec<Slot>) -> Self {
        slots.sort_by_key(Slot::place);
        Self::Slots(slots)
    }

    /// Whether any can come or go.
    pub(crate) fn are_in_slots(&self) -> bool {
        matches!(self, Self::Slots(_))
    }

    /// How many there are.
    pub(crate) fn plugged(&self) -> MilliCpu {
        MilliCpu::from_cores(match self {
            Self::Slots(slots) => count(slots.iter().filter(|slot| slot.plugged.is_some()).count()),
            Self::Fixed(present) => *present,
        })
    }

    /// How many there can be.
    pub(crate) fn most(&self) -> MilliCpu {
        MilliCpu::from_cores(match self {
            Self::Slots(slots) => count(slots.len()),
            Self::Fixed(present) => *present,
        })
    }

    /// How many there are at least: with parking, what the guest cannot do without.
    pub(crate) fn least(&self, shrink: ShrinkCpu) -> MilliCpu {
        match shrink {
            ShrinkCpu::Parking | ShrinkCpu::ByLimit => MilliCpu::from_cores(1),
            ShrinkCpu::Removal => MilliCpu::from_cores(match self {
                Self::Slots(slots) => {
                    count(slots.iter().filter(|slot| slot.is_not_ours()).count()).max(1)
                }
                Self::Fixed(present) => *present,
            }),
        }
    }

    /// The slots to fill, each with its id, so that there are `wanted`.
    fn missing(&self, wanted: u64) -> Vec<(String, &Slot)> {
        let Self::Slots(slots) = self else { return Vec::new() };
        let present = count(slots.iter().filter(|slot| slot.plugged.is_some()).count());
        let missing = usize::try_from(wanted.saturating_sub(present)).unwrap_or(usize::MAX);
        let free = slots.iter().enumerate().filter(|(_, slot)| slot.plugged.is_none());
        free.take(missing).map(|(index, slot)| (format!("{ID}{index}"), slot)).collect()
    }

    /// The ids to take out so that there are `wanted`; `None` if too few of them are ours.
    fn surplus(&self, wanted: u64) -> Option<Vec<String>> {
        let Self::Slots(slots) = self else { return None };
        let present = count(slots.iter().filter(|slot| slot.plugged.is_some()).count());
        let surplus = usize::try_from(present.saturating_sub(wanted)).ok()?;
        let ours = slots.iter().rev().filter_map(Slot::ours);
        let ids: Vec<_> = ours.take(surplus).map(str::to_owned).collect();
        (ids.len() == surplus).then_some(ids)
    }
}

// === impl Slot ===

impl Slot {
    fn place(&self) -> [i64; TOPOLOGY.len()] {
        TOPOLOGY.map(|name| self.props.get(name).and_then(Value::as_i64).unwrap_or(0))
    }

    /// The id of the vCPU in it, if Windlass put it there.
    fn ours(&self) -> Option<&str> {
        let id = self.plugged.as_deref()?.strip_prefix(PERIPHERAL)?;
        id.starts_with(ID).then_some(id)
    }

    fn is_not_ours(&self) -> bool {
        self.plugged.is_some() && self.ours().is_none()
    }

    fn arguments(&self, id: &str) -> Value {
        let mut arguments = self.props.clone();
        arguments.insert("driver".to_owned(), self.model.clone().into());
        arguments.insert("id".to_owned(), id.into());
        Value::Object(arguments)
    }
}

/// How many vCPUs are plugged, from the answer to [`SLOTS`].
pub(crate) async fn plugged(
    link: &mut Link,
    slots: Result<Returned, QmpError>,
) -> Result<MilliCpu, CallError> {
    Ok(MilliCpu::from_cores(match unless_refused(read::<Vec<Occupied>>(SLOTS, slots))? {
        Some(slots) => count(slots.iter().filter(|slot| slot.plugged.is_some()).count()),
        // Boxed, as few machines have none.
        None => Box::pin(present(link)).await?,
    }))
}

/// How many vCPUs a machine without hotplug has.
async fn present(link: &mut Link) -> Result<u64, CallError> {
    let vcpus: Vec<IgnoredAny> = link.ask("query-cpus-fast", Value::Null).await?;
    Ok(count(vcpus.len()))
}

/// Has `wanted` vCPUs plugged.
pub(crate) async fn resize(
    link: &mut Link,
    shrink: ShrinkCpu,
    wanted: MilliCpu,
) -> Result<(), DriverError> {
    let vcpus = Vcpus::fetch(link).await.map_err(|error| error.of(COMMAND))?;
    let cores = wanted.whole(MilliCpu::from_cores(1));
    if MilliCpu::from_cores(cores) != wanted {
        return Err(refused(format!("{wanted} is no whole number of vcpus")));
    }
    if wanted > vcpus.most() {
        let most = vcpus.most();
        return Err(refused(format!("{wanted} vcpus, and the machine has places for {most}")));
    }
    let mut done = 0;
    for (id, slot) in vcpus.missing(cores) {
        match link.call("device_add", slot.arguments(&id)).await {
            Ok(_) => done += 1,
            // "CPU[1] with APIC ID 1 exists", "Duplicate device ID": it came in between.
            Err(CallError::Said(said)) if came_already(&said.desc) => {}
            Err(error) => return Err(error.after(done, COMMAND)),
        }
    }
    if wanted >= vcpus.plugged() {
        return Ok(());
    }
    if shrink == ShrinkCpu::Parking {
        return Err(refused("vcpus are parked by the guest here, not taken out".to_owned()));
    }
    let Some(ids) = vcpus.surplus(cores) else {
        let least = vcpus.least(shrink);
        return Err(refused(format!("{least} vcpus were not put in by windlass")));
    };
    for id in ids {
        match link.call("device_del", json!({ "id": id })).await {
            Ok(_) => done += 1,
            Err(CallError::Said(said)) if left_already(&said) => {}
            Err(error) => return Err(error.after(done, COMMAND)),
        }
    }
    Ok(())
}

fn came_already(words: &str) -> bool {
    words.ends_with(" exists") || words.starts_with("Duplicate ")
}

fn left_already(said: &QmpError) -> bool {
    said.class == "DeviceNotFound" || said.desc.contains("already in the process of unplug")
}

fn refused(reason: String) -> DriverError {
    DriverError::Refused { command: COMMAND, reason }
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_slots_are_filled_in_ascending_order_whatever_the_order_of_the_answer() {
        let vcpus = machine(&[(3, None), (2, None), (1, Some(BOOT)), (0, Some(BOOT))]);
        let ids = |wanted| vcpus.missing(wanted).into_iter().map(|(id, _)| id).collect::<Vec<_>>();
        assert_eq!(ids(2), Vec::<String>::new());
        assert_eq!(ids(3), ["windlass-cpu-2"]);
        assert_eq!(ids(4), ["windlass-cpu-2", "windlass-cpu-3"]);
        assert_eq!(vcpus.plugged(), MilliCpu::from_cores(2));
        assert_eq!(vcpus.most(), MilliCpu::from_cores(4));
    }

    #[test]
    fn a_vcpu_is_added_with_the_model_and_all_of_the_place_that_qemu_named() {
        let vcpus = machine(&[(1, None), (0, Some(BOOT))]);
        let (id, slot) = vcpus.missing(2).remove(0);
        assert_eq!(
            slot.arguments(&id),
            json!({"socket-id": 0, "core-id": 1, "node-id": 0, "driver": "max-x86_64-cpu",
                   "id": "windlass-cpu-1"})
        );
    }

    #[test]
    fn only_vcpus_that_windlass_put_in_are_taken_out_the_last_first() {
        let vcpus = machine(&[
            (0, Some(BOOT)),
            (1, Some("/machine/peripheral/windlass-cpu-1")),
            (2, Some("/machine/peripheral/someone")),
            (3, Some("/machine/peripheral/windlass-cpu-3")),
        ]);
        assert_eq!(vcpus.surplus(3), Some(vec!["windlass-cpu-3".to_owned()]));
        assert_eq!(vcpus.surplus(2).map(|ids| ids.len()), Some(2));
        assert_eq!(vcpus.surplus(1), None);
        assert_eq!(vcpus.least(ShrinkCpu::Removal), MilliCpu::from_cores(2));
        assert_eq!(vcpus.least(ShrinkCpu::Parking), MilliCpu::from_cores(1));
    }

    #[test]
    fn a_machine_without_hotplug_keeps_what_it_has() {
        let vcpus = Vcpus::Fixed(2);
        assert_eq!(vcpus.plugged(), vcpus.most());
        assert!(vcpus.missing(4).is_empty());
        assert_eq!(vcpus.surplus(1), None);
    }

    #[test]
    fn a_refusal_half_way_is_told_apart_from_one_that_changed_nothing() {
        let said = || {
            CallError::Said(QmpError { class: "GenericError".to_owned(), desc: "no".to_owned() })
        };
        assert!(!said().after(0, COMMAND).may_have_happened());
        assert!(said().after(1, COMMAND).may_have_happened());
    }

    const BOOT: &str = "/machine/unattached/device[0]";

    fn machine(cores: &[(u64, Option<&str>)]) -> Vcpus {
        let slot = |(core, plugged): &(u64, Option<&str>)| {
            let props = json!({"socket-id": 0, "core-id": core, "node-id": 0});
            let slot = json!({"type": "max-x86_64-cpu", "props": props, "qom-path": plugged});
            serde_json::from_value(slot).unwrap()
        };
        Vcpus::of(cores.iter().map(slot).collect())
    }
}
