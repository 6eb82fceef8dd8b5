//! The container that a VM's process runs in: what it has, and whether it can be resized in place.
//!
//! It is the container that the pod's annotation [`DEFAULT_CONTAINER`] names, else the one that is called [`COMPUTE`], as in
//! KubeVirt's pods, else the first. A kubelet compares what it has allocated when it admits a pod or a resize, and
//! raises the limits of a container afterwards: so a VM has for sure what the spec, what is allocated, and the limits in
//! force all cover. What its hypervisor needs for itself is part of none of these figures.

use super::requests;
use super::wire::{Container, Instead, Reading, Requirements, Spec, Status};
use crate::{Bytes, MilliCpu, Resources};

/// The annotation that names the container that is meant where a pod has several, also for `kubectl logs` and `kubectl exec`.
pub const DEFAULT_CONTAINER: &str = "kubectl.kubernetes.io/default-container";
/// What KubeVirt calls the container of its VMs.
pub const COMPUTE: &str = "compute";

/// The container of a VM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VmContainer {
    /// Its name in the pod.
    pub name: String,
    /// What the spec requests for it.
    pub spec: Resources,
    /// What the kubelet has allocated to it; `None`: the kubelet has not said so.
    pub allocated: Option<Resources>,
    /// What it requests as the scheduler counts it: no more than [`Pod::requests`](super::Pod::requests).
    pub effective: Resources,
    /// The limits of the spec.
    pub limits: Limits,
    /// The limits in force, as the kubelet says.
    pub enforced: Limits,
    /// What the container has besides, for the hypervisor itself.
    pub overhead: Resources,
    /// Why it cannot be resized in place, if it cannot.
    pub fixed: Option<Fixed>,
}

/// Limits of a container, by axis; `None`: there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Of CPU.
    pub cpu: Option<MilliCpu>,
    /// Of memory.
    pub mem: Option<Bytes>,
}

/// Why a container cannot be resized in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fixed {
    /// It has no request on an axis, and the API server adds none.
    NoRequest,
    /// A resize restarts it, and with it the VM.
    Restarts,
    /// The pod has requests of its own level, which count in place of those of its containers.
    OfPod,
    /// What of its requests is not the VM's is not said in a way that can be read.
    Overhead,
}

// === impl VmContainer ===

impl VmContainer {
    /// Of a pod whose annotation names this container as the one that is meant. `None` of the overhead: it cannot be read.
    pub(super) fn of(
        spec: &Spec,
        status: &Status,
        meant: Option<&str>,
        overhead: Option<Resources>,
    ) -> Option<Self> {
        let containers = spec.containers.as_ref()?;
        let called = |name| containers.iter().find(|it| it.name.as_deref() == Some(name));
        let named = meant.and_then(called).or_else(|| called(COMPUTE));
        let container = named.or_else(|| containers.first())?;
        let name = container.name.clone().unwrap_or_default();
        let (effective, allocated) = requests::of_container(container, status);
        let all = status.container_statuses.as_ref().map_or(&[][..], Vec::as_slice);
        let own = all.iter().find(|one| one.name.as_deref() == Some(&*name));
        let unread = overhead.is_none().then_some(Fixed::Overhead);
        let overhead = overhead.unwrap_or_default();
        let limits = |of| Limits::of(of).without(overhead);
        Some(Self {
            spec: requests::by_spec_of(container).saturating_sub(overhead),
            allocated: allocated.map(|it| it.saturating_sub(overhead)),
            effective: effective.saturating_sub(overhead),
            limits: limits(container.resources.as_ref()),
            enforced: limits(own.and_then(|status| status.resources.as_ref())),
            overhead,
            fixed: unread.or_else(|| Fixed::of(spec, container)),
            name,
        })
    }

    /// What the VM has for sure, whatever its kubelet does next. A pod that no kubelet has admitted is admitted with its spec. Where it
    /// is not known what of it is the hypervisor's, nothing is sure.
    pub fn sure(&self) -> Resources {
        if self.fixed == Some(Fixed::Overhead) {
            return Resources::ZERO;
        }
        let allocated = self.allocated.unwrap_or(self.spec);
        let mut sure = allocated.min(self.spec);
        if let (Some(_), Some(enforced)) = (self.limits.cpu, self.enforced.cpu) {
            sure.cpu = sure.cpu.min(enforced);
        }
        if let (Some(_), Some(enforced)) = (self.limits.mem, self.enforced.mem) {
            sure.mem = sure.mem.min(enforced);
        }
        sure
    }

    /// The limits with which it is to request this much: a limit that equals its request moves with it, so that the pod's QoS
    /// class stays, and a higher one is no lower than the request.
    pub fn limits_for(&self, requests: Resources) -> Limits {
        let Limits { cpu, mem } = self.limits;
        let Resources { cpu: own_cpu, mem: own_mem } = self.spec;
        Limits {
            cpu: cpu.map(|it| if it == own_cpu { requests.cpu } else { it.max(requests.cpu) }),
            mem: mem.map(|it| if it == own_mem { requests.mem } else { it.max(requests.mem) }),
        }
    }
}

// === impl Limits ===

impl Limits {
    fn of(resources: Option<&Requirements>) -> Self {
        let Some(limits) = resources.and_then(|resources| resources.limits.as_ref()) else {
            return Self::default();
        };
        let (cpu, mem) = limits.axes("limits", &mut Reading::with(Instead::Largest));
        Self { cpu, mem }
    }

    /// What they leave beside this.
    fn without(self, overhead: Resources) -> Self {
        let Self { cpu, mem } = self;
        Self {
            cpu: cpu.map(|cpu| cpu.saturating_sub(overhead.cpu)),
            mem: mem.map(|mem| mem.saturating_sub(overhead.mem)),
        }
    }

    /// With this on top, where there are any.
    pub fn with(self, overhead: Resources) -> Self {
        let Self { cpu, mem } = self;
        Self {
            cpu: cpu.map(|cpu| cpu.saturating_add(overhead.cpu)),
            mem: mem.map(|mem| mem.saturating_add(overhead.mem)),
        }
    }
}

// === impl Fixed ===

impl Fixed {
    fn of(spec: &Spec, container: &Container) -> Option<Self> {
        let Resources { cpu, mem } = requests::by_spec_of(container);
        let policies = container.resize_policy.as_ref().map_or(&[][..], Vec::as_slice);
        let restarts = |word: Option<&str>| word == Some("RestartContainer");
        if spec.resources.is_some() {
            Some(Self::OfPod)
        } else if policies.iter().any(|policy| restarts(policy.restart_policy.as_deref())) {
            Some(Self::Restarts)
        } else {
            (cpu.is_zero() || mem.is_zero()).then_some(Self::NoRequest)
        }
    }

    /// As a person reads it.
    pub const fn words(self) -> &'static str {
        match self {
            Self::NoRequest => "its container requests no CPU or no memory",
            Self::Restarts => "the resizePolicy of its container is RestartContainer",
            Self::OfPod => "the pod has requests of its own (spec.resources)",
            Self::Overhead => "its annotation windlass.dev/overhead is not valid",
        }
    }
}
