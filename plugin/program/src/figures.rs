//! What the reference tells of a node, from our books.

use crate::directory::NodeEntry;
use windlass_protocol::status::Booked;
use windlass_protocol::{Moment, Resources};

/// The figures of a node: milli-CPUs and bytes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Figures {
    pub(crate) cpu: Axis,
    pub(crate) mem: Axis,
    /// Its VMs.
    pub(crate) vms: Vec<Vm>,
}

/// A VM of a node.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Vm {
    pub(crate) booked: Booked,
    /// Whether an agent spoke for it since the plugin started.
    pub(crate) spoken: bool,
    /// What is reserved for it beyond its minimum while none did.
    pub(crate) buffer: Resources,
}

/// One axis of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Axis {
    pub(crate) total: u64,
    pub(crate) system: u64,
    /// Beyond this the reference would move VMs away.
    pub(crate) watermark: u64,
    pub(crate) reserved: u64,
    /// What of that is reserved for VMs that no agent has spoken for, beyond their minima.
    pub(crate) buffer: u64,
    /// What VMs want beyond what they have.
    pub(crate) pressure: u64,
    /// What VMs that are about to be moved have and want: it leaves with them.
    pub(crate) leaving: u64,
}

// === impl Figures ===

impl Figures {
    pub(crate) fn of(node: &NodeEntry, now: Moment) -> Self {
        let (status, spoken) = node.books.with_books(|books| {
            let status = books.status(now);
            let spoken = |vm: &Booked| books.is_spoken_for(&vm.name);
            let spoken: Vec<bool> = status.vms.iter().map(spoken).collect();
            (status, spoken)
        });
        let buffer = |vm: &Booked, spoken: bool| {
            let min = node.vms.get(&vm.name).map(|vm| vm.bounds.min).unwrap_or_default();
            if spoken { Resources::ZERO } else { vm.reserved.saturating_sub(min) }
        };
        let vms: Vec<Vm> = status
            .vms
            .into_iter()
            .zip(spoken)
            .map(|(booked, spoken)| Vm { buffer: buffer(&booked, spoken), booked, spoken })
            .collect();
        let sum = |of: &dyn Fn(&Vm) -> Resources| {
            vms.iter().map(of).fold(Resources::ZERO, Resources::saturating_add)
        };
        let buffers = sum(&|vm| vm.buffer);
        let wanted = sum(&|vm| pressure(&vm.booked));
        let leaving = sum(&|Vm { booked, .. }| match node.vms.get(&booked.name) {
            Some(listed) if listed.moving => booked.reserved.saturating_add(pressure(booked)),
            Some(_) | None => Resources::ZERO,
        });
        let (room, rule) = (node.room(), node.rule);
        let axis = |of: fn(Resources) -> u64, mark: f64| Axis {
            total: of(node.total),
            system: of(rule.system),
            watermark: share(of(room), mark),
            reserved: of(status.reserved),
            buffer: of(buffers),
            pressure: of(wanted),
            leaving: of(leaving),
        };
        Self {
            cpu: axis(|r| r.cpu.milli(), rule.watermark.0),
            mem: axis(|r| r.mem.bytes(), rule.watermark.1),
            vms,
        }
    }

    /// Milli-CPUs, under the reference's names.
    pub(crate) fn cpu(&self) -> [(&'static str, u64); 7] {
        self.cpu.fields()
    }

    /// Bytes of memory, under the reference's names.
    pub(crate) fn mem(&self) -> [(&'static str, u64); 7] {
        self.mem.fields()
    }
}

/// What a VM wants beyond what it has.
pub(crate) fn pressure(vm: &Booked) -> Resources {
    vm.claim.unwrap_or_default().saturating_sub(vm.reserved)
}

// === impl Axis ===

impl Axis {
    fn fields(self) -> [(&'static str, u64); 7] {
        [
            ("Total", self.total),
            ("System", self.system),
            ("Watermark", self.watermark),
            ("Reserved", self.reserved),
            ("Buffer", self.buffer),
            ("CapacityPressure", self.pressure),
            ("PressureAccountedFor", self.leaving),
        ]
    }
}

/// A share of an amount, in whole millionths of it.
fn share(amount: u64, of: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share is from 0 to 1"
    )]
    let millionths = (of.clamp(0.0, 1.0) * 1e6).round() as u64;
    let whole = u128::from(amount) * u128::from(millionths) / 1_000_000;
    u64::try_from(whole).unwrap_or(amount)
}
