//! The requests of a pod as the scheduler counts them.
//!
//! The formula is that of `PodRequests` in `k8s.io/component-helpers/resource` v0.35, with the resources of
//! the status (in-place resize) and of the pod's level, as the scheduler of Kubernetes 1.35 calls it:
//!
//! ```text
//!   container = max(spec, status.resources, status.allocatedResources), per axis
//!               without status.resources: spec
//!               if the resize is infeasible: max(status.resources, status.allocatedResources)
//!   running   = sum of containers + sum of sidecars
//!   starting  = max over init containers i of: i's spec + sum of sidecars before i
//!   pod       = the pod's own request on the axes that have one, else max(running, starting)
//!   requests  = pod + overhead
//! ```
//!
//! A sidecar is an init container with `restartPolicy: Always`. The effective request of the pod's own
//! level is computed as a container's; its status exists only with a feature gate that is off in 1.35.
//!
//! Each quantity is rounded up to thousandths of a vCPU and to bytes. The scheduler rounds the sum; the
//! API server has rounded each to thousandths before, so only fractions of a byte differ.
//!
//! Limits are ignored: the API server has already copied them to requests that were missing.

use super::wire::{
    Amounts, Container, ContainerStatus, Instead, Reading, Requirements, Spec, Status,
};
use crate::Resources;
use std::collections::BTreeMap;
use std::fmt::Display;

/// The condition of a pod whose size is not what its spec asks for.
pub(super) const PENDING: &str = "PodResizePending";
/// The reason of that condition if the node can never give it.
pub(super) const INFEASIBLE: &str = "Infeasible";

/// The effective requests of a pod. Sums saturate.
pub(super) fn of(spec: &Spec, status: &Status, reading: &mut Reading) -> Resources {
    total(spec, &Resize::of(status, Figure::Effective), reading)
}

/// What the spec alone asks for.
pub(super) fn by_spec(spec: &Spec) -> Resources {
    total(spec, &Resize::of(&Status::default(), Figure::Effective), &mut scratch())
}

/// What the kubelet has allocated; `None`: the status says it not of every container.
pub(super) fn allocated(spec: &Spec, status: &Status) -> Option<Resources> {
    let resize = Resize::of(status, Figure::Allocated);
    let is_told = |container: &Container| resize.is_told(container);
    list(spec.containers.as_ref()).iter().all(is_told).then(|| total(spec, &resize, &mut scratch()))
}

/// What the spec alone asks for a container.
pub(super) fn by_spec_of(container: &Container) -> Resources {
    requested(container.resources.as_ref(), "resources", &mut scratch())
}

/// What a container requests as the scheduler counts it, and what the kubelet has allocated to it, if it says so.
pub(super) fn of_container(
    container: &Container,
    status: &Status,
) -> (Resources, Option<Resources>) {
    let of = |figure| Resize::of(status, figure).effective(container, "resources", &mut scratch());
    let allocated = Resize::of(status, Figure::Allocated).is_told(container);
    (of(Figure::Effective), allocated.then(|| of(Figure::Allocated)))
}

/// The problems are those of the effective requests.
const fn scratch() -> Reading {
    Reading::with(Instead::Largest)
}

fn total(spec: &Spec, resize: &Resize<'_>, reading: &mut Reading) -> Resources {
    let mut running = Resources::ZERO;
    for (index, container) in list(spec.containers.as_ref()).iter().enumerate() {
        let place = format_args!("spec.containers[{index}].resources");
        running = running.saturating_add(resize.effective(container, place, reading));
    }
    let (mut sidecars, mut starting) = (Resources::ZERO, Resources::ZERO);
    for (index, container) in list(spec.init_containers.as_ref()).iter().enumerate() {
        let place = format_args!("spec.initContainers[{index}].resources");
        if container.restart_policy.as_deref() == Some("Always") {
            let requests = resize.effective(container, place, reading);
            running = running.saturating_add(requests);
            sidecars = sidecars.saturating_add(requests);
            starting = starting.max(sidecars);
        } else {
            let requests = requested(container.resources.as_ref(), place, reading);
            starting = starting.max(sidecars.saturating_add(requests));
        }
    }
    let total = resize.with_own(spec, running.max(starting), reading);
    total.saturating_add(amounts(spec.overhead.as_ref(), "spec.overhead", reading))
}

/// What the status says of resizes in place.
struct Resize<'a> {
    status: &'a Status,
    figure: Figure,
    /// The kubelet refused the spec's requests, and what runs counts.
    is_infeasible: bool,
    containers: BTreeMap<&'a str, Reported<'a>>,
}

/// Which figure of a container counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Figure {
    /// As the scheduler counts.
    Effective,
    /// As the kubelet counts.
    Allocated,
}

/// The status of a container, and its place for problems.
struct Reported<'a> {
    status: &'a ContainerStatus,
    list: &'static str,
    index: usize,
}

// === impl Resize ===

impl<'a> Resize<'a> {
    fn of(status: &'a Status, figure: Figure) -> Self {
        let mut conditions = list(status.conditions.as_ref()).iter();
        // The first condition of the type counts, as for the scheduler.
        let pending = conditions.find(|one| one.kind.as_deref() == Some(PENDING));
        let reason = pending.and_then(|condition| condition.reason.as_deref());
        let lists = [
            ("status.containerStatuses", status.container_statuses.as_ref()),
            ("status.initContainerStatuses", status.init_container_statuses.as_ref()),
        ];
        let containers = lists.into_iter().flat_map(|(name, statuses)| {
            list(statuses).iter().enumerate().map(move |(index, status)| {
                let container = status.name.as_deref().unwrap_or_default();
                (container, Reported { status, list: name, index })
            })
        });
        Self {
            status,
            figure,
            is_infeasible: reason == Some(INFEASIBLE),
            containers: containers.collect(),
        }
    }

    /// Whether the status says what is allocated to a container. Of one that requests nothing it says nothing.
    fn is_told(&self, container: &Container) -> bool {
        let name = container.name.as_deref().unwrap_or_default();
        let reported = self.containers.get(name);
        let requests = || requested(container.resources.as_ref(), "resources", &mut scratch());
        reported.is_some_and(|reported| {
            reported.status.allocated_resources.is_some() || requests() == Resources::ZERO
        })
    }

    /// The effective requests of a container or a sidecar.
    fn effective(
        &self,
        container: &Container,
        place: impl Display,
        reading: &mut Reading,
    ) -> Resources {
        let spec = requested(container.resources.as_ref(), place, reading);
        let name = container.name.as_deref().unwrap_or_default();
        let Some(Reported { status, list, index }) = self.containers.get(name) else {
            return spec;
        };
        let of_kubelet = self.figure == Figure::Allocated && status.allocated_resources.is_some();
        if status.resources.is_none() && !of_kubelet {
            return spec;
        }
        let place = format_args!("{list}[{index}].resources");
        let actual = requested(status.resources.as_ref(), place, reading);
        let place = format_args!("{list}[{index}].allocatedResources");
        let allocated = amounts(status.allocated_resources.as_ref(), place, reading);
        self.figure(spec, actual, allocated)
    }

    /// The requests of all containers, or, on each axis that has one, the pod's own request.
    fn with_own(&self, spec: &Spec, containers: Resources, reading: &mut Reading) -> Resources {
        let own = spec.resources.as_ref().and_then(|resources| resources.requests.as_ref());
        let Some(own) = own else { return containers };
        let (cpu, mem) = own.axes("spec.resources.requests", reading);
        let mut effective = Resources::new(cpu.unwrap_or_default(), mem.unwrap_or_default());
        if let Some(resources) = &self.status.resources {
            let actual = requested(Some(resources), "status.resources", reading);
            let allocated = self.status.allocated_resources.as_ref();
            let allocated = amounts(allocated, "status.allocatedResources", reading);
            effective = self.figure(effective, actual, allocated);
        }
        Resources {
            cpu: cpu.map_or(containers.cpu, |_| effective.cpu),
            mem: mem.map_or(containers.mem, |_| effective.mem),
        }
    }

    fn figure(&self, spec: Resources, actual: Resources, allocated: Resources) -> Resources {
        if self.figure == Figure::Allocated {
            return allocated;
        }
        let runs = actual.max(allocated);
        if self.is_infeasible { runs } else { runs.max(spec) }
    }
}

fn requested(
    resources: Option<&Requirements>,
    place: impl Display,
    reading: &mut Reading,
) -> Resources {
    let requests = resources.and_then(|resources| resources.requests.as_ref());
    amounts(requests, format_args!("{place}.requests"), reading)
}

fn amounts(amounts: Option<&Amounts>, place: impl Display, reading: &mut Reading) -> Resources {
    amounts.map_or(Resources::ZERO, |amounts| amounts.resources(place, reading))
}

fn list<T>(list: Option<&Vec<T>>) -> &[T] {
    list.map_or(&[], Vec::as_slice)
}
