//! What an object says of the size of its VM, and what is to be written for another one.

use std::time::Duration;
use windlass_protocol::vm_object::{Machine, MachinePhase, Sizes};
use windlass_protocol::{
    Bytes, Capabilities, MemorySeen, MilliCpu, Promises, Resize, RunState, Seen, ShrinkCpu,
};

/// What this driver promises. NeonVM's controller looks at a VM once a second, and takes a step at a time.
pub const PROMISES: Promises = Promises {
    // A write carries a deadline of a second, after which the API server does not begin it.
    settles_within: Duration::from_secs(2),
    // What the watch of a busy API server is behind.
    lag: Duration::from_secs(1),
    look_again: Duration::from_millis(500),
    // A DIMM leaves within two steps, or its controller asks for it again.
    stuck_after: Duration::from_secs(30),
    answers_within: Duration::from_secs(5),
};

/// NeonVM limits a VM to what its spec asks for, in this step, and plugs the whole vCPUs for it.
const LIMIT_STEP: MilliCpu = MilliCpu::from_milli(1);
const VCPU: MilliCpu = MilliCpu::from_cores(1);

/// What the spec is to ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// `spec.guest.cpus.use`.
    Cpu(MilliCpu),
    /// `spec.guest.memorySlots.use`.
    Slots(u64),
}

/// What can be done with a VM.
///
/// # Errors
/// What the object says wrongly.
pub fn capabilities(machine: &Machine) -> Result<Capabilities, String> {
    let Sizes { min, max, .. } = sizes(machine)?;
    Ok(Capabilities {
        cpu_step: VCPU,
        limit_step: Some(LIMIT_STEP),
        memory_step: machine.slot,
        shrink_cpu: ShrinkCpu::ByLimit,
        shrink_memory: true,
        min,
        max,
        promises: PROMISES,
    })
}

/// What a VM has, and may have at any time: what its spec asks for is given without another word. Every vCPU counts as plugged, since
/// they come and go with what the spec asks for, which is the limit.
///
/// # Errors
/// What the object says wrongly.
pub(crate) fn seen(machine: &Machine) -> Result<Seen, String> {
    let Sizes { min, max, used } = sizes(machine)?;
    let boot = min.mem;
    Ok(Seen {
        plugged: max.cpu.round_up(VCPU),
        limit: Some(used.cpu.max(machine.shows.cpu)),
        found_limit: None,
        memory: MemorySeen {
            boot,
            requested: used.mem.saturating_sub(boot),
            size: machine.shows.mem.saturating_sub(boot),
        },
        state: match machine.phase {
            MachinePhase::Running | MachinePhase::Scaling => RunState::Running,
            // What is about to move keeps its size.
            MachinePhase::PreMigrating | MachinePhase::Migrating => RunState::Migrating,
            MachinePhase::Ended => RunState::ShutDown,
            MachinePhase::Pending | MachinePhase::Unknown => RunState::Unknown,
        },
    })
}

/// What is to be written for this size.
///
/// # Errors
/// Why the VM cannot have it.
pub fn change(machine: &Machine, resize: Resize) -> Result<Change, String> {
    let Sizes { min, max, .. } = sizes(machine)?;
    match resize {
        Resize::Limit(Some(cpu)) if cpu >= min.cpu && cpu <= max.cpu => Ok(Change::Cpu(cpu)),
        Resize::Limit(Some(cpu)) => {
            Err(format!("cpu = {cpu}: must be between {} and {}", min.cpu, max.cpu))
        }
        Resize::Memory(memory) if memory < min.mem || memory > max.mem => {
            Err(format!("memory = {memory}: must be between {} and {}", min.mem, max.mem))
        }
        // What a guest has may be a part of a slot, and it may keep that: then it keeps the whole slot.
        Resize::Memory(memory) => {
            let (slot, bytes) = (machine.slot, memory.bytes());
            let is_even = bytes.is_multiple_of(slot.bytes()) || memory <= machine.shows.mem;
            let uneven = || format!("memory = {memory}: must be a multiple of {slot}");
            is_even.then(|| Change::Slots(bytes.div_ceil(slot.bytes()))).ok_or_else(uneven)
        }
        Resize::Cpu(_) => Err("NeonVM plugs vCPUs by itself, for the limit of its CPU".to_owned()),
        Resize::Limit(None) => Err("NeonVM takes no limit of CPU away".to_owned()),
    }
}

/// What the spec says, if all that counts in the object is valid.
fn sizes(machine: &Machine) -> Result<Sizes, String> {
    if let Some(problem) = machine.problems.first() {
        return Err(problem.to_string());
    }
    let Sizes { min, max, .. } = machine.sizes;
    if machine.slot == Bytes::ZERO {
        return Err("spec.guest.memorySlotSize = 0: must be more than 0".to_owned());
    }
    if !max.covers(min) {
        return Err(format!("spec.guest: the maximum, {max}, is below the minimum, {min}"));
    }
    Ok(machine.sizes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use windlass_protocol::Resources;

    #[test]
    fn what_a_vm_may_have_is_what_its_spec_asks_for_until_its_status_shows_less() {
        for (used, shows, limit, requested, size) in [
            ((500, 2), (500, 2), 500, 1, 1),
            // It grows: it may have more at any time, and has not.
            ((1000, 4), (500, 2), 1000, 3, 1),
            // It shrinks: it has more.
            ((250, 1), (500, 2), 500, 0, 1),
            // Nothing is shown yet.
            ((250, 1), (0, 0), 250, 0, 0),
        ] {
            let machine = machine(used, shows, "Running");
            let seen = seen(&machine).unwrap();
            let memory = MemorySeen {
                boot: Bytes::from_mib(512),
                requested: Bytes::from_mib(512 * requested),
                size: Bytes::from_mib(512 * size),
            };
            let limit = Some(MilliCpu::from_milli(limit));
            assert_eq!((seen.limit, seen.memory), (limit, memory), "{used:?} {shows:?}");
            assert_eq!(seen.plugged, MilliCpu::from_cores(4));
        }
    }

    #[test]
    fn a_vm_that_moves_is_not_resized() {
        for (phase, state) in [
            ("Running", RunState::Running),
            ("Scaling", RunState::Running),
            ("PreMigrating", RunState::Migrating),
            ("Migrating", RunState::Migrating),
            ("Failed", RunState::ShutDown),
            ("", RunState::Unknown),
        ] {
            assert_eq!(seen(&machine((500, 2), (500, 2), phase)).unwrap().state, state, "{phase}");
        }
    }

    #[test]
    fn a_change_is_within_what_qemu_was_started_for() {
        let machine = machine((500, 2), (500, 2), "Running");
        let mib = |mib| Resize::Memory(Bytes::from_mib(mib));
        let cpu = |milli| Resize::Limit(Some(MilliCpu::from_milli(milli)));
        assert_eq!(change(&machine, cpu(1750)), Ok(Change::Cpu(MilliCpu::from_milli(1750))));
        assert_eq!(change(&machine, mib(2048)), Ok(Change::Slots(4)));
        assert_eq!(change(&machine, mib(700)), Ok(Change::Slots(2)), "it has that, and keeps it");
        for (resize, why) in [
            (cpu(200), "cpu = 0.2: must be between 0.25 and 4"),
            (cpu(4001), "cpu = 4.001: must be between 0.25 and 4"),
            (mib(256), "must be between 512MiB and 4GiB"),
            (mib(8192), "must be between 512MiB and 4GiB"),
            (mib(1300), "must be a multiple of 512MiB"),
            (Resize::Cpu(MilliCpu::from_cores(2)), "NeonVM plugs vCPUs by itself"),
            (Resize::Limit(None), "NeonVM takes no limit"),
        ] {
            let error = change(&machine, resize).unwrap_err();
            assert!(error.contains(why), "{resize:?}: {error}");
        }
    }

    #[test]
    fn what_an_object_says_wrongly_is_named() {
        for (guest, why) in [
            (json!({"cpus": {"min": "x"}}), "spec.guest.cpus.min"),
            (json!({"memorySlotSize": 0}), "spec.guest.memorySlotSize = 0: must be more than 0"),
            (json!({"cpus": {"min": 2, "max": 1}}), "spec.guest: the maximum"),
        ] {
            let machine = read(json!({"guest": guest}), json!({}));
            assert!(capabilities(&machine).unwrap_err().contains(why), "{guest}");
            assert!(seen(&machine).is_err() && change(&machine, Resize::Limit(None)).is_err());
        }
        let can = capabilities(&machine((500, 2), (500, 2), "Running")).unwrap();
        let size =
            |milli, mib| Resources { cpu: MilliCpu::from_milli(milli), mem: Bytes::from_mib(mib) };
        assert_eq!((can.min, can.max), (size(250, 512), size(4000, 4096)));
        assert_eq!(can.memory_step, Bytes::from_mib(512));
    }

    /// What its spec asks for and its status shows, in thousandths of a vCPU and slots.
    fn machine(used: (u64, u64), shows: (u64, u64), phase: &str) -> Machine {
        let guest = json!({
            "cpus": {"min": "250m", "max": 4, "use": format!("{}m", used.0)},
            "memorySlotSize": "512Mi",
            "memorySlots": {"min": 1, "max": 8, "use": used.1},
        });
        let (cpus, memory) = (format!("{}m", shows.0), format!("{}Mi", 512 * shows.1));
        let status = json!({"phase": phase, "cpus": cpus, "memorySize": memory});
        read(json!({"guest": guest}), status)
    }

    fn read(spec: Value, status: Value) -> Machine {
        let object = json!({"metadata": {"name": "a"}, "spec": spec, "status": status});
        serde_json::from_value(object).unwrap()
    }
}
