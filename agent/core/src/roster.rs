//! Which VMs of a node are managed, let go, counted or forgotten.
//!
//! Whatever declares VMs (files of the host, a watch of an API server) says so here, and people
//! give their orders here. What follows is a state for each VM ([`Desired`]), and what a shell has
//! to do to bring that about ([`Roster::plan`]): level-triggered, so a plan that is lost is made
//! again, and one that was carried out is not.
//!
//! ```text
//!          manage                 release
//!   ∅ ─────────────► Managed ◄──────────────► Released
//!   ▲                 ▲  │        manage         │
//!   │          manage │  │ withdraw              │ withdraw
//!   │                 │  ▼                       │
//!   └──────────────── Removed ◄──────────────────┘
//!     hypervisor gone
//! ```
//!
//! - A VM that a person let go of does not heed what is declared of it: it stays let go until a person
//!   takes it back or it is withdrawn.
//! - A VM that is there is counted until its hypervisor is gone, also if nothing declares it.
//! - A source that cannot be read withdraws nothing.

use crate::event::Order;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use windlass_protocol::{Resources, VmInfo, VmName};

/// A VM as it is declared, by a file of its host or by an API server. How its hypervisor is reached is said beside it, by a driver.
#[derive(Clone, Debug, PartialEq)]
pub struct Vm {
    /// What it should be: one copy, which all share.
    pub info: Arc<VmInfo>,
    /// Where its guest is reached.
    pub guest: Guest,
}

/// Where the guest of a VM is reached, and from where it reaches the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guest {
    /// Where its informant listens.
    pub informant: SocketAddr,
    /// How the guest reaches this host. `None`: 10.0.2.2 for a loopback informant, else the local
    /// address that reaches it.
    pub advertise: Option<IpAddr>,
    /// Where its metrics are read, if not at the port that the informant announces.
    pub metrics: Option<SocketAddr>,
}

/// The VMs of a node, as they should be.
#[derive(Clone, Debug, Default)]
pub struct Roster {
    vms: BTreeMap<VmName, Member>,
    frozen: bool,
}

/// Whether a VM is acted on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lifecycle {
    /// It follows its load, or what else it is ordered.
    Managed,
    /// It is brought to a size and let go; then it is looked at and counted, also when it
    /// comes back.
    Released,
    /// It is declared no more: it is looked at and counted until its hypervisor is gone.
    Removed,
}

/// How things should be with one VM.
#[derive(Clone, Debug, PartialEq)]
pub struct Desired {
    /// What is declared of it; `None` for one that is only counted.
    pub vm: Option<Vm>,
    /// What its scaler is ordered.
    pub order: Order,
    /// Whether it is acted on.
    pub lifecycle: Lifecycle,
}

/// What is to be done about one VM.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Begin with it.
    Start(Desired),
    /// Tell its runner that this is desired.
    Tell(Desired),
    /// End with it.
    Stop,
}

#[derive(Clone, Debug)]
struct Member {
    /// What is declared.
    vm: Option<Vm>,
    /// The size that it is let go with.
    release: Option<Resources>,
    lifecycle: Lifecycle,
}

// === impl Roster ===

impl Roster {
    /// Whether a VM follows what is declared of it: it does not while a person has let go of it.
    pub fn heeds(&self, vm: &VmName) -> bool {
        self.lifecycle(vm) != Some(Lifecycle::Released)
    }

    /// A VM follows this from here on: it is declared of one that [heeds](Self::heeds) that, or a person
    /// takes the VM back. A release of the VM ends.
    pub fn manage(&mut self, vm: Vm) {
        let member = self.vms.entry(vm.info.name.clone());
        let member = member.or_insert_with(|| Member::new(Lifecycle::Managed));
        (member.vm, member.lifecycle) = (Some(vm), Lifecycle::Managed);
    }

    /// A VM stood like this before a restart, and may be there. Nothing if it is known.
    pub fn recall(&mut self, vm: VmName, lifecycle: Lifecycle) {
        self.vms.entry(vm).or_insert_with(|| Member::new(lifecycle));
    }

    /// A VM is declared no more. Returns whether it is known.
    pub fn withdraw(&mut self, vm: &VmName) -> bool {
        self.change(vm, |member| member.lifecycle = Lifecycle::Removed)
    }

    /// A VM is brought to a size, or keeps the present one, and is let go. Returns whether it is
    /// known.
    pub fn release(&mut self, vm: &VmName, size: Option<Resources>) -> bool {
        self.change(vm, |member| {
            (member.lifecycle, member.release) = (Lifecycle::Released, size);
        })
    }

    /// Nothing of any VM moves until this is taken back.
    pub fn freeze(&mut self, frozen: bool) {
        self.frozen = frozen;
    }

    /// The hypervisor of a VM is gone. Returns whether the VM is forgotten with that.
    pub fn gone(&mut self, vm: &VmName) -> bool {
        let ends = self.lifecycle(vm) == Some(Lifecycle::Removed);
        if ends {
            self.vms.remove(vm);
        }
        ends
    }

    /// The VMs that should be declared and are not among those that a source `has`, which was read
    /// as a whole: they are to be withdrawn.
    pub fn undeclared(&self, has: impl Fn(&VmName) -> bool) -> Vec<VmName> {
        let gone =
            |vm: &VmName, member: &Member| member.lifecycle != Lifecycle::Removed && !has(vm);
        let vms = self.vms.iter().filter(|(vm, member)| gone(vm, member));
        vms.map(|(vm, _)| vm.clone()).collect()
    }

    /// Every VM that is known, by name, and how it stands.
    pub fn lifecycles(&self) -> impl Iterator<Item = (&VmName, Lifecycle)> {
        self.vms.iter().map(|(vm, member)| (vm, member.lifecycle))
    }

    /// Whether nothing of any VM is to move.
    pub const fn is_frozen(&self) -> bool {
        self.frozen
    }

    /// How a VM stands, if it is known.
    pub fn lifecycle(&self, vm: &VmName) -> Option<Lifecycle> {
        self.vms.get(vm).map(|member| member.lifecycle)
    }

    /// How things should be with a VM, if it is known.
    pub fn desired(&self, vm: &VmName) -> Option<Desired> {
        self.vms.get(vm).map(|member| member.desired(self.frozen))
    }

    /// What is to be done about a VM whose runner was last `told` this, if it has one.
    pub fn plan(&self, vm: &VmName, told: Option<&Desired>) -> Option<Step> {
        match (self.desired(vm), told) {
            (Some(desired), None) => Some(Step::Start(desired)),
            (Some(desired), Some(told)) => (desired != *told).then_some(Step::Tell(desired)),
            (None, told) => told.map(|_| Step::Stop),
        }
    }

    fn change(&mut self, vm: &VmName, change: impl FnOnce(&mut Member)) -> bool {
        self.vms.get_mut(vm).map(change).is_some()
    }
}

// === impl Member ===

impl Member {
    fn new(lifecycle: Lifecycle) -> Self {
        Self { vm: None, release: None, lifecycle }
    }

    fn desired(&self, frozen: bool) -> Desired {
        let order = match self.lifecycle {
            // Moving to the size that it is let go with waits for the thaw.
            Lifecycle::Released if frozen && self.release.is_some() => Order::Freeze,
            Lifecycle::Released => Order::Release(self.release),
            Lifecycle::Removed => Order::Release(None),
            Lifecycle::Managed if frozen => Order::Freeze,
            Lifecycle::Managed => Order::Follow,
        };
        Desired { vm: self.vm.clone(), order, lifecycle: self.lifecycle }
    }
}

// === impl Lifecycle ===

impl Lifecycle {
    /// How a VM that stood like this before a restart stands after it. `declared`: whether it is
    /// declared; `None` if that cannot be found out. A VM that was removed and is declared again
    /// is managed.
    #[must_use]
    pub const fn after_restart(self, declared: Option<bool>) -> Self {
        match (self, declared) {
            (Self::Released, Some(true) | None) => Self::Released,
            (Self::Managed | Self::Removed, Some(true)) => Self::Managed,
            (Self::Managed | Self::Removed, None) | (_, Some(false)) => Self::Removed,
        }
    }
}

impl fmt::Display for Lifecycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}
