//! What can and cannot scale in a VM, and why, as far as its hypervisor knows.
//!
//! For a person who is about to put a VM under Windlass: each [`Finding`] is one plain sentence.
//! Checking changes nothing. What only the guest knows (its kernel, its onlining policy) is
//! found by others.

use crate::Qemu;
use crate::cpu::Vcpus;
use crate::link::{CallError, Limits, Link};
use crate::memory::{DIMM_SIZE, Memory, Way};
use crate::wire::Version;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fmt;
use windlass_drivers::DriverError;
use windlass_protocol::{Bytes, MilliCpu, Resources};

/// The oldest QEMU that is supported.
const OLDEST: Version = Version { major: 7, minor: 2, micro: 0 };

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What it is about.
    pub topic: Topic,
    /// What it means for scaling.
    pub verdict: Verdict,
    /// One sentence, and what to do about it where something can be done.
    pub text: String,
    /// The most that QEMU was started to give, where this says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<Most>,
}

/// The most that QEMU was started to give on one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Most {
    /// vCPUs, of `-smp maxcpus`.
    Cpu(MilliCpu),
    /// Memory, of `-m maxmem` and a virtio-mem device or DIMMs.
    Memory(Bytes),
}

/// What a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Topic {
    /// Whether the monitor can be used.
    Monitor,
    /// The version of QEMU.
    Version,
    /// KVM or emulation.
    Accelerator,
    /// vCPUs.
    Cpu,
    /// Memory.
    Memory,
    /// Memory backed by huge pages.
    Hugepages,
    /// Devices handed through to the guest.
    Vfio,
    /// A balloon.
    Balloon,
    /// The informant in the guest; found by those who can reach it.
    Informant,
}

/// What a finding means for scaling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// As it should be.
    Good,
    /// Works, within limits that the text names.
    Limited,
    /// This does not scale.
    Blocked,
}

#[derive(Deserialize)]
struct Child {
    name: String,
    #[serde(rename = "type")]
    kind: String,
}

// === impl Qemu ===

impl Qemu {
    /// Looks at a VM, and says what can and cannot scale.
    pub async fn check(&self) -> Vec<Finding> {
        self.check_within(Limits::default()).await
    }

    /// The same, where a monitor that cannot be used is no finding but the answer.
    ///
    /// # Errors
    /// As an attach would fail; [`Finding::unreached`] says it to a person.
    pub async fn try_check(&self) -> Result<Vec<Finding>, DriverError> {
        self.try_check_within(Limits::default()).await
    }

    pub(crate) async fn check_within(&self, limits: Limits) -> Vec<Finding> {
        let found = self.try_check_within(limits).await;
        found.unwrap_or_else(|error| vec![Finding::unreached(&error)])
    }

    async fn try_check_within(&self, limits: Limits) -> Result<Vec<Finding>, DriverError> {
        let (mut link, _notices) = Link::open(&self.qmp, limits).await?;
        let mut findings = vec![version(link.version())];
        // The rest of the findings stands without the one that could not be had.
        if let Err(error) = look(&mut link, self.vcpu_removal, &mut findings).await {
            let text = format!("The monitor did not answer everything: {error}.");
            findings.push(Finding::new(Topic::Monitor, Verdict::Limited, text));
        }
        Ok(findings)
    }
}

async fn look(
    link: &mut Link,
    vcpu_removal: bool,
    findings: &mut Vec<Finding>,
) -> Result<(), CallError> {
    let kvm = crate::kvm(link).await?;
    findings.push(accelerator(kvm));
    let vcpus = Vcpus::fetch(link).await?;
    findings.push(cpu(&vcpus, kvm, vcpu_removal));
    let memory = Memory::fetch(link).await?;
    let way = Way::fetch(link, &memory).await?;
    findings.push(memory_finding(&memory, way));
    let huge = huge_backends(link).await?;
    findings.extend(hugepages(&huge, &memory, way));
    findings.extend(vfio(&vfio_devices(link).await?, way));
    findings.extend(balloon(link, &memory).await?);
    Ok(())
}

// === impl Finding ===

impl Finding {
    /// That the monitor cannot be used, why, and what to do about it.
    pub fn unreached(error: &DriverError) -> Self {
        let advice = match error {
            DriverError::Gone { .. } => {
                "Nothing listens there: is the VM running, and is this its qmp?"
            }
            DriverError::Taken { .. } => {
                "Start the VM with a second -qmp for Windlass; both work at the same time. If no other \
                 client has this one, QEMU itself hangs."
            }
            DriverError::Silent { .. } => {
                "Look at the state of its QEMU with `ps -o pid,stat,args -C qemu-system-x86_64`: T is \
                 stopped, and kill -CONT has it go on. If it runs, start the VM with a second -qmp for \
                 Windlass."
            }
            DriverError::Stopped { .. } => {
                "Nothing moves until it goes on; kill -CONT has it go on."
            }
            DriverError::NoAnswer { .. } => {
                "Is QEMU stopped or very busy, or is this no monitor in control mode (-qmp)?"
            }
            DriverError::Refused { .. } | DriverError::Partly { .. } | DriverError::Broken(_) => {
                "Is this the socket of a monitor in control mode (-qmp)?"
            }
        };
        Self::new(Topic::Monitor, Verdict::Blocked, format!("{error}. {advice}"))
    }

    /// That a hypervisor to whose monitor there is a connection does not answer over it.
    pub fn lost() -> Self {
        let text = "QEMU does not answer, though the host has its monitor: it is stopped, or very busy. \
                    The rest was found when the host attached.";
        Self::new(Topic::Monitor, Verdict::Blocked, text)
    }

    /// Whether this is about a monitor that cannot be used.
    pub fn is_unreached(&self) -> bool {
        self.topic == Topic::Monitor && self.verdict == Verdict::Blocked
    }

    /// That a VM which may grow to `max` never gets there, where QEMU was started to give less.
    pub fn short_of(&self, max: Resources) -> Option<Self> {
        let text = match self.most? {
            Most::Cpu(most) if max.cpu > most => format!(
                "`max` is {} vCPU, and QEMU was started for {most}: the VM never has its maximum. Start \
                 it with -smp maxcpus={}, or lower max.cpu.",
                max.cpu,
                max.cpu.round_up(MilliCpu::from_cores(1))
            ),
            Most::Memory(most) if max.mem > most => format!(
                "`max` is {}, and QEMU was started to give {most}: the VM never has its maximum. Start \
                 it with more maxmem and a larger virtio-mem device (or more slots for DIMMs), or lower \
                 max.memory.",
                max.mem
            ),
            Most::Cpu(_) | Most::Memory(_) => return None,
        };
        Some(Self::new(self.topic, Verdict::Limited, text))
    }

    /// That this was found.
    pub fn new(topic: Topic, verdict: Verdict, text: impl Into<String>) -> Self {
        Self { topic, verdict, text: text.into(), most: None }
    }

    fn with(self, most: Most) -> Self {
        Self { most: Some(most), ..self }
    }
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
        actual: u64,
    }
    let inflated_to = match link.ask::<Balloon>("query-balloon", Value::Null).await {
        Ok(balloon) => Bytes::from_bytes(balloon.actual),
        // None is there, or it can say nothing.
        Err(CallError::Said(_)) => return Ok(None),
        Err(lost @ CallError::Lost(_)) => return Err(lost),
    };
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
    for child in children(link, "/objects").await? {
        let path = format!("/objects/{}", child.name);
        let is_huge = match child.kind.as_str() {
            "child<memory-backend-memfd>" => link.property::<bool>(&path, "hugetlb").await,
            "child<memory-backend-file>" => {
                let file = link.property::<String>(&path, "mem-path").await;
                file.map(|file| file.contains("huge"))
            }
            _ => continue,
        };
        match is_huge {
            Ok(true) => huge.push(child.name),
            Ok(false) | Err(CallError::Said(_)) => {}
            Err(lost @ CallError::Lost(_)) => return Err(lost),
        }
    }
    Ok(huge)
}

/// Devices handed through, by id.
async fn vfio_devices(link: &mut Link) -> Result<Vec<String>, CallError> {
    let mut found = Vec::new();
    for place in ["/machine/peripheral", "/machine/peripheral-anon"] {
        let children = children(link, place).await?;
        let vfio = children.into_iter().filter(|child| child.kind.starts_with("child<vfio-"));
        found.extend(vfio.map(|child| child.name));
    }
    Ok(found)
}

async fn children(link: &mut Link, path: &str) -> Result<Vec<Child>, CallError> {
    link.ask("qom-list", json!({ "path": path })).await
}

// === impl Topic ===

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Monitor => "monitor",
            Self::Version => "version",
            Self::Accelerator => "accelerator",
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Hugepages => "hugepages",
            Self::Vfio => "vfio",
            Self::Balloon => "balloon",
            Self::Informant => "informant",
        })
    }
}

// === impl Verdict ===

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Good => "good",
            Self::Limited => "limited",
            Self::Blocked => "blocked",
        })
    }
}

#[cfg(test)]
mod tests;
