//! What can and cannot scale in a VM, and why, as far as its hypervisor knows.
//!
//! For a person who is about to put a VM under Windlass: each [`Finding`] is one plain sentence.
//! Checking changes nothing. What only the guest knows (its kernel, its onlining policy) is
//! found by others.

mod finding;

use crate::Qemu;
use crate::cpu::Vcpus;
use crate::limit::{self, STEP, Unlimited};
use crate::link::{CallError, Limits, Link, unless_refused};
use crate::memory::{DIMM_SIZE, Memory, Way};
use crate::wire::Version;
pub use finding::{Finding, Most, Topic, Verdict};
use serde::Deserialize;
use serde_json::Value;
use windlass_drivers::DriverError;
use windlass_drivers_cgroup::Group;
use windlass_protocol::{Bytes, CpuLimit, MilliCpu};

/// The oldest QEMU that is supported.
const OLDEST: Version = Version { major: 7, minor: 2, micro: 0 };

// === impl Qemu ===

impl Qemu {
    /// Looks at a VM, and says what can and cannot scale.
    pub async fn check(&self) -> Vec<Finding> {
        let found = self.try_check().await;
        found.unwrap_or_else(|error| vec![Finding::unreached(&error)])
    }

    /// The same, where a monitor that cannot be used is no finding but the answer.
    ///
    /// # Errors
    /// As an attach would fail; [`Finding::unreached`] says it to a person.
    pub async fn try_check(&self) -> Result<Vec<Finding>, DriverError> {
        self.check_within(Limits::default()).await
    }

    pub(crate) async fn check_within(&self, limits: Limits) -> Result<Vec<Finding>, DriverError> {
        let (mut link, _notices) = Link::open(&self.qmp, limits).await?;
        let mut findings = vec![version(link.version)];
        // The rest of the findings stands without the one that could not be had.
        if let Err(error) = look(&mut link, self, &mut findings).await {
            let text = format!("The monitor did not answer everything: {error}.");
            findings.push(Finding::new(Topic::Monitor, Verdict::Limited, text));
        }
        Ok(findings)
    }
}

async fn look(link: &mut Link, qemu: &Qemu, findings: &mut Vec<Finding>) -> Result<(), CallError> {
    let kvm = crate::kvm(link).await?;
    findings.push(accelerator(kvm));
    let vcpus = Vcpus::fetch(link).await?;
    findings.push(cpu(&vcpus, kvm, qemu.vcpu_removal));
    findings.push(limit_finding(limit::group(link).await?, qemu.cpu_limit));
    let memory = Memory::fetch(link).await?;
    let way = Way::fetch(link, &memory).await?;
    findings.push(memory_finding(&memory, way));
    let huge = huge_backends(link).await?;
    findings.extend(hugepages(&huge, &memory, way));
    findings.extend(vfio(&vfio_devices(link).await?, way));
    findings.extend(balloon(link, &memory).await?);
    Ok(())
}

fn version(version: Version) -> Finding {
    if version >= OLDEST {
        return Finding::new(Topic::Version, Verdict::Good, format!("QEMU {version}."));
    }
    let text = format!("QEMU {version} is older than {OLDEST}, the oldest that is supported.");
    Finding::new(Topic::Version, Verdict::Limited, text)
}

fn accelerator(kvm: bool) -> Finding {
    if kvm {
        return Finding::new(Topic::Accelerator, Verdict::Good, "KVM runs the guest.");
    }
    let text = "The guest is emulated (TCG): it scales, slowly, and its vCPUs are never taken out.";
    Finding::new(Topic::Accelerator, Verdict::Limited, text)
}

fn cpu(vcpus: &Vcpus, kvm: bool, vcpu_removal: bool) -> Finding {
    let (present, most) = (vcpus.plugged(), vcpus.most());
    let has =
        if present == MilliCpu::from_cores(1) { "1 vCPU" } else { &format!("{present} vCPUs") };
    let back = match (vcpu_removal, kvm) {
        (true, true) => "vCPUs that Windlass added are taken out again",
        (true, false) => "vCPUs are parked inside the guest, since removal needs KVM",
        (false, true | false) => "vCPUs are parked inside the guest when they are given back",
    };
    let (verdict, text) = if !vcpus.are_in_slots() {
        (Verdict::Blocked, format!("{has}, and this machine type cannot add any."))
    } else if most > present {
        (Verdict::Good, format!("{has}, which can grow to {most}; {back}."))
    } else {
        let text = format!(
            "{has}, and no place for more: start the VM with -smp {present},maxcpus=N to let it \
             grow; {back}."
        );
        (Verdict::Limited, text)
    };
    Finding::new(Topic::Cpu, verdict, text).with(Most::Cpu(most))
}

fn limit_finding(group: Result<Group, Unlimited>, choice: Option<CpuLimit>) -> Finding {
    let better = match &group {
        Ok(_) => "cpu_limit = \"cgroup\" has the host limit it, whatever the guest does".to_owned(),
        Err(why) => format!("the host cannot limit it: {}", why.and_causes()),
    };
    let finding = |verdict, text| Finding::new(Topic::Limit, verdict, text);
    match (choice, group) {
        (Some(CpuLimit::Trust), _) => finding(
            Verdict::Limited,
            format!(
                "cpu_limit = \"trust\": a vCPU that the guest says it has parked counts as given back, \
                 and a guest that lies uses it all the same; {better}."
            ),
        ),
        (Some(CpuLimit::None), _) => finding(
            Verdict::Limited,
            format!("cpu_limit = \"none\": every plugged vCPU counts, parked ones too; {better}."),
        ),
        (Some(CpuLimit::Cgroup) | None, Ok(group)) => {
            let (path, version) = (group.path(), group.version());
            let by =
                group.unit().map_or(String::new(), |unit| format!(", by systemd's unit {unit}"));
            let text = format!(
                "The host limits its CPU to what it is granted, down to {STEP} of a vCPU: the quota of \
                 cgroup {path} ({version}){by}."
            );
            finding(Verdict::Good, text)
        }
        (choice, Err(why)) => {
            let verdict = if choice.is_some() { Verdict::Blocked } else { Verdict::Limited };
            let text = format!(
                "The host does not limit its CPU, so every plugged vCPU counts, parked ones too: {}.",
                why.and_causes()
            );
            finding(verdict, text)
        }
    }
}

fn memory_finding(memory: &Memory, way: Way) -> Finding {
    let (boot, most, step) = (memory.boot(way), memory.most(way), memory.step(way));
    let (verdict, text) = match way {
        Way::VirtioMem => {
            let text = format!("{boot} to {most} by virtio-mem, in steps of {step}.");
            (Verdict::Good, text)
        }
        Way::Dimms { .. } => {
            let text = format!(
                "{boot} to {most} by DIMMs of {DIMM_SIZE}; a virtio-mem device would give finer \
                 steps and let a shrinkage be taken back."
            );
            (if most > boot { Verdict::Limited } else { Verdict::Blocked }, text)
        }
        Way::Fixed => {
            let text = format!(
                "{boot}, which cannot change: start the VM with -m SIZE,maxmem=MOST and a \
                 virtio-mem-pci device."
            );
            (Verdict::Blocked, text)
        }
    };
    Finding::new(Topic::Memory, verdict, text).with(Most::Memory(most))
}

fn hugepages(huge: &[String], memory: &Memory, way: Way) -> Option<Finding> {
    if huge.is_empty() {
        return None;
    }
    let backends = huge.join(", ");
    let text = match way {
        Way::VirtioMem => format!(
            "Huge pages back {backends}: memory moves in steps of {}, and grows only while the \
             host's pool has free pages.",
            memory.step(way)
        ),
        Way::Dimms { .. } | Way::Fixed => format!(
            "Huge pages back {backends}; DIMMs that Windlass adds are of ordinary pages, which may \
             be slower."
        ),
    };
    Some(Finding::new(Topic::Hugepages, Verdict::Limited, text))
}

fn vfio(devices: &[String], way: Way) -> Option<Finding> {
    if devices.is_empty() {
        return None;
    }
    let devices = devices.join(", ");
    let text = match way {
        Way::VirtioMem => format!(
            "{devices}: a device handed through pins all memory that the guest has and limits how \
             many blocks virtio-mem can map; a larger block-size helps."
        ),
        Way::Dimms { .. } | Way::Fixed => {
            format!("{devices}: a device handed through pins all memory that the guest has.")
        }
    };
    Some(Finding::new(Topic::Vfio, Verdict::Limited, text))
}

async fn balloon(link: &mut Link, memory: &Memory) -> Result<Option<Finding>, CallError> {
    #[derive(Deserialize)]
    struct Balloon {
        actual: Bytes,
    }
    let balloon = link.ask::<Balloon>("query-balloon", Value::Null).await;
    // None is there, or it can say nothing.
    let Some(Balloon { actual: inflated_to }) = unless_refused(balloon)? else { return Ok(None) };
    // QEMU's figure leaves virtio-mem out.
    let has = memory.boot(Way::VirtioMem);
    let (verdict, text) = if inflated_to < has {
        let taken = has.saturating_sub(inflated_to);
        let text = format!(
            "A balloon holds {taken} of the guest's memory: Windlass counts it as had, and whoever \
             inflates the balloon works against it."
        );
        (Verdict::Limited, text)
    } else {
        (Verdict::Good, "A balloon is there and empty; Windlass does not use it.".to_owned())
    };
    Ok(Some(Finding::new(Topic::Balloon, verdict, text)))
}

/// Memory backends of huge pages, by id.
async fn huge_backends(link: &mut Link) -> Result<Vec<String>, CallError> {
    let mut huge = Vec::new();
    for child in link.children("/objects").await? {
        let path = format!("/objects/{}", child.name);
        let is_huge = match child.kind.as_str() {
            "child<memory-backend-memfd>" => link.property::<bool>(&path, "hugetlb").await,
            "child<memory-backend-file>" => {
                let file = link.property::<String>(&path, "mem-path").await;
                file.map(|file| file.contains("huge"))
            }
            _ => continue,
        };
        if unless_refused(is_huge)? == Some(true) {
            huge.push(child.name);
        }
    }
    Ok(huge)
}

/// Devices handed through, by id.
async fn vfio_devices(link: &mut Link) -> Result<Vec<String>, CallError> {
    let mut found = Vec::new();
    for place in ["/machine/peripheral", "/machine/peripheral-anon"] {
        let vfio = link.children(place).await?.into_iter();
        let vfio = vfio.filter(|child| child.kind.starts_with("child<vfio-"));
        found.extend(vfio.map(|child| child.name));
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
