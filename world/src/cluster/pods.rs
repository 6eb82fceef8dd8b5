//! Pods as the API server has them: how they are made, resized, and counted by schedulers.

use crate::cluster::steps::{Container, cu};
use windlass_protocol::pod::{Allocation, Fixed, Limits, Pending, Phase, Pod, PodVm, VmContainer};
use windlass_protocol::{Bounds, Resources, VmInfo, VmName};

/// A pod without a node.
pub(crate) fn pod(name: &VmName, requests: Resources, scheduler: &str) -> Pod {
    Pod {
        name: name.clone(),
        uid: String::new(),
        revision: String::new(),
        node: None,
        scheduler: scheduler.to_owned(),
        phase: Phase::Pending,
        is_terminating: false,
        requests,
        vm: None,
        is_headroom: false,
        allocation: None,
        problems: Vec::new(),
    }
}

/// The pod of a VM, whose container requests `own`.
pub(crate) fn vm_pod(
    name: &VmName,
    scheduler: &str,
    own: Resources,
    bounds: Bounds,
    container: Container,
) -> Pod {
    let Container { is_limited, is_fixed, beside } = container;
    let limits = Limits { cpu: Some(own.cpu), mem: Some(own.mem) };
    let limits = if is_limited { limits } else { Limits::default() };
    let container = VmContainer {
        name: "vm".to_owned(),
        spec: own,
        allocated: None,
        effective: own,
        limits,
        enforced: Limits::default(),
        overhead: Resources::ZERO,
        fixed: is_fixed.then_some(Fixed::Restarts),
    };
    let vm = PodVm {
        object: name.clone(),
        bounds,
        priority: 0,
        memory_slot: VmInfo::DEFAULT_MEMORY_SLOT,
        ceiling: None,
        controller: None,
        container: Some(Box::new(container)),
        may_move: false,
        is_enabled: true,
        scaling: None,
        problems: Vec::new(),
    };
    let all = own.saturating_add(cu(beside));
    Pod { vm: Some(Box::new(vm)), allocation: Some(unseen(all)), ..pod(name, all, scheduler) }
}

/// A headroom pod, bound as it is made.
pub(crate) fn headroom(name: &VmName, node: &str, size: Resources) -> Pod {
    Pod {
        node: Some(node.to_owned()),
        is_headroom: true,
        allocation: Some(unseen(size)),
        ..pod(name, size, "none")
    }
}

/// What a kubelet has not seen yet.
fn unseen(spec: Resources) -> Box<Allocation> {
    Box::new(Allocation { spec, allocated: None, generation: 1, is_observed: false, pending: None })
}

/// The container of a VM.
pub(crate) fn container(pod: &Pod) -> Option<&VmContainer> {
    pod.vm.as_ref()?.container.as_deref()
}

/// What a VM pod requests beside its VM's container.
pub(crate) fn beside(pod: &Pod) -> Resources {
    let spec = pod.allocation.as_ref().map(|it| it.spec).unwrap_or_default();
    container(pod).map(|container| spec.saturating_sub(container.spec)).unwrap_or_default()
}

/// A pod's spec asks for something else, of a VM's pod its container's.
pub(crate) fn resize(pod: &mut Pod, to: Resources, limits: Limits) {
    let beside = beside(pod);
    let container = pod.vm.as_mut().and_then(|vm| vm.container.as_deref_mut());
    let spec = match container {
        Some(container) => {
            (container.spec, container.limits) = (to, limits);
            to.saturating_add(beside)
        }
        None => to,
    };
    if let Some(it) = pod.allocation.as_mut().filter(|it| it.spec != spec) {
        (it.spec, it.generation, it.is_observed) = (spec, it.generation + 1, false);
    }
}

/// What a scheduler counts a pod with: the larger of what its spec asks for and of what is allocated; and what is
/// allocated alone, where its kubelet can never carry the spec out.
pub(crate) fn count(pod: &mut Pod) {
    let beside = beside(pod);
    let Some(it) = &pod.allocation else { return };
    let effective = |spec: Resources, allocated: Option<Resources>| match (it.pending, allocated) {
        (_, None) => spec,
        (Some(Pending::Infeasible), Some(allocated)) => allocated,
        (Some(Pending::Deferred | Pending::Other) | None, Some(allocated)) => spec.max(allocated),
    };
    pod.requests = effective(it.spec, it.allocated);
    let container = pod.vm.as_mut().and_then(|vm| vm.container.as_deref_mut());
    if let Some(container) = container {
        container.effective = effective(container.spec, container.allocated);
        pod.requests = container.effective.saturating_add(beside);
    }
}
