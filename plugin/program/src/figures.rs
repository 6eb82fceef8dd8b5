//! What the reference tells of a node, from our books.

use crate::directory::{Directory, NodeEntry};
use windlass_protocol::status::Booked;
use windlass_protocol::{Moment, Resources};

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Figures {
    /// Milli-CPUs, each under its name of [`FIELDS`].
    pub(crate) cpu: [u64; 7],
    /// Bytes of memory, in the same order.
    pub(crate) mem: [u64; 7],
    pub(crate) vms: Vec<Vm>,
}

/// What the reference calls the figures of an axis.
pub(crate) const FIELDS: [&str; 7] = [
    "Total",
    "System",
    // Beyond this the reference would move VMs away.
    "Watermark",
    "Reserved",
    // What of that is reserved for VMs that no agent has spoken for, beyond their minima.
    "Buffer",
    // What VMs want beyond what they have.
    "CapacityPressure",
    // What VMs that are about to be moved have and want: it leaves with them.
    "PressureAccountedFor",
];

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Vm {
    pub(crate) booked: Booked,
    /// Whether an agent spoke for it since the plugin started.
    pub(crate) spoken: bool,
    /// What is reserved for it beyond its minimum while none did.
    pub(crate) buffer: Resources,
}

// === impl Figures ===

impl Figures {
    /// Every node with its figures at this moment, by name.
    pub(crate) fn of_all(directory: &Directory) -> Vec<(&str, &NodeEntry, Self)> {
        let now = directory.clock.now();
        let of = |(name, entry)| (String::as_str(name), entry, Self::of(entry, now));
        directory.cluster.nodes().iter().map(of).collect()
    }

    fn of(node: &NodeEntry, now: Moment) -> Self {
        let (reserved, vms) = node.books.with_books(|books| {
            let status = books.status(now);
            let vm = |booked: Booked| {
                let spoken = books.is_spoken_for(&booked.name);
                let min = node.vms.get(&booked.name).map(|vm| vm.bounds.min).unwrap_or_default();
                let beyond = booked.reserved.saturating_sub(min);
                Vm { buffer: if spoken { Resources::ZERO } else { beyond }, booked, spoken }
            };
            (status.reserved, status.vms.into_iter().map(vm).collect::<Vec<_>>())
        });
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
        let axis = |of: fn(Resources) -> u64, mark: f64| {
            let (reserved, marked) = (of(reserved), share(of(room), mark));
            let system = of(rule.system);
            [of(node.total), system, marked, reserved, of(buffers), of(wanted), of(leaving)]
        };
        Self {
            cpu: axis(|r| r.cpu.milli(), rule.watermark.0),
            mem: axis(|r| r.mem.bytes(), rule.watermark.1),
            vms,
        }
    }
}

/// What a VM wants beyond what it has.
pub(crate) fn pressure(vm: &Booked) -> Resources {
    vm.claim.unwrap_or_default().saturating_sub(vm.reserved)
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
