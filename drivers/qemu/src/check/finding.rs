//! One thing that was found about a VM, as it is told to a person and to programs.

use serde::{Deserialize, Serialize};
use std::fmt;
use windlass_drivers::DriverError;
use windlass_protocol::{Bytes, MilliCpu, Resources};

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
    /// Whether QEMU is stopped, or too busy to answer; it does not matter then who has its monitor.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
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
    /// How the VM's CPU is limited to what it is granted.
    Limit,
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
        let stopped = matches!(error, DriverError::Stopped { .. } | DriverError::NoAnswer { .. });
        Self {
            stopped,
            ..Self::new(Topic::Monitor, Verdict::Blocked, format!("{error}. {advice}"))
        }
    }

    /// That a hypervisor to whose monitor there is a connection does not answer over it.
    pub fn lost() -> Self {
        let text = "QEMU does not answer, though the host has its monitor: it is stopped, or very busy. \
                    The rest was found when the host attached.";
        Self { stopped: true, ..Self::new(Topic::Monitor, Verdict::Blocked, text) }
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
        Self { topic, verdict, text: text.into(), most: None, stopped: false }
    }

    pub(super) fn with(self, most: Most) -> Self {
        Self { most: Some(most), ..self }
    }
}

// === impl Topic ===

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

// === impl Verdict ===

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}
