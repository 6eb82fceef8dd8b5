//! The container that a VM runs in: what it has for sure, and how it is resized.

#![expect(clippy::unwrap_used, reason = "tests")]

use serde_json::{Value, json};
use windlass_protocol::annotations::OVERHEAD;
use windlass_protocol::pod::{COMPUTE, DEFAULT_CONTAINER, Fixed, Limits, Pod, VmContainer};
use windlass_protocol::{Bytes, MilliCpu, Resources};

#[test]
fn a_vm_has_for_sure_what_spec_allocation_and_limits_in_force_cover() {
    let of = |requests: u64, limits: Option<u64>| {
        let limits = limits.map(amounts);
        json!({"requests": amounts(requests), "limits": limits})
    };
    for (what, spec, allocated, actual, sure, effective) in [
        ("not admitted", of(2, None), None, None, 2, 2),
        ("admitted", of(2, None), Some(2), Some(of(2, None)), 2, 2),
        ("it is asked to grow", of(4, None), Some(2), Some(of(2, None)), 2, 4),
        ("it is allocated", of(4, None), Some(4), Some(of(2, None)), 4, 4),
        ("its limits are not raised yet", of(4, Some(4)), Some(4), Some(of(2, Some(2))), 2, 4),
        ("its limits are", of(4, Some(4)), Some(4), Some(of(4, Some(4))), 4, 4),
        ("it is asked to shrink", of(1, None), Some(4), Some(of(4, None)), 1, 4),
        ("nothing is said of its limits", of(4, Some(4)), Some(4), None, 4, 4),
    ] {
        let status = allocated.map(|count| {
            json!({"name": "vm", "allocatedResources": amounts(count), "resources": actual})
        });
        let container = read(&json!({"name": "vm", "resources": spec}), status);
        assert_eq!(container.sure(), size(sure), "{what}");
        assert_eq!(container.effective, size(effective), "{what}");
        assert_eq!((container.allocated, container.fixed), (allocated.map(size), None), "{what}");
    }
}

#[test]
fn a_limit_that_equals_its_request_moves_with_it() {
    for (limits, to, expected) in [
        (json!(null), 4, (None, None)),
        (amounts(2), 4, (Some(4), Some(4))),
        (amounts(2), 1, (Some(1), Some(1))),
        (amounts(3), 1, (Some(3), Some(3))),
        (amounts(3), 4, (Some(4), Some(4))),
        (json!({"memory": "2Gi"}), 4, (None, Some(4))),
    ] {
        let resources = json!({"requests": amounts(2), "limits": limits});
        let container = read(&json!({"name": "vm", "resources": resources}), None);
        let (cpu, mem) = expected;
        let expected = Limits { cpu: cpu.map(MilliCpu::from_cores), mem: mem.map(Bytes::from_gib) };
        assert_eq!(container.limits_for(size(to)), expected, "{limits} to {to}");
    }
}

#[test]
fn some_containers_cannot_be_resized() {
    let requests = json!({"requests": amounts(1)});
    let policy = |word: &str| json!([{"resourceName": "memory", "restartPolicy": word}]);
    for (container, fixed) in [
        (json!({"resources": requests}), None),
        (json!({"resources": requests, "resizePolicy": policy("NotRequired")}), None),
        (
            json!({"resources": requests, "resizePolicy": policy("RestartContainer")}),
            Some(Fixed::Restarts),
        ),
        (json!({"resources": {"requests": {"cpu": 1}}}), Some(Fixed::NoRequest)),
        (json!({"resources": {"requests": {"cpu": 1, "memory": 0}}}), Some(Fixed::NoRequest)),
        (json!({}), Some(Fixed::NoRequest)),
    ] {
        assert_eq!(read(&container, None).fixed, fixed, "{container}");
    }
    let mut pod = pod(&json!({"resources": requests}), None);
    pod["spec"]["resources"] = json!({"requests": {"cpu": 2}});
    assert_eq!(container_of(pod).fixed, Some(Fixed::OfPod));
}

#[test]
fn the_container_that_is_named_is_the_vms_else_compute_else_the_first() {
    for (second, meant, expected) in [
        ("beside", json!(null), "first"),
        ("beside", json!("beside"), "beside"),
        ("beside", json!("elsewhere"), "first"),
        ("beside", json!(""), "first"),
        (COMPUTE, json!(null), COMPUTE),
        (COMPUTE, json!("first"), "first"),
        (COMPUTE, json!("elsewhere"), COMPUTE),
    ] {
        let mut pod = pod(&json!({"name": "first", "resources": {"requests": amounts(1)}}), None);
        let beside = json!({"name": second, "resources": {"requests": amounts(2)}});
        pod["spec"]["containers"].as_array_mut().unwrap().push(beside);
        pod["metadata"]["annotations"] = json!({DEFAULT_CONTAINER: meant});
        let said = |name: &str, count: u64| {
            json!({"name": name, "allocatedResources": amounts(count),
                "resources": {"requests": amounts(count), "limits": amounts(count)}})
        };
        pod["status"]["containerStatuses"] = json!([said(second, 4), said("first", 3)]);
        if meant.is_null() {
            pod["metadata"].as_object_mut().unwrap().remove("annotations");
        }
        let container = container_of(pod);
        assert_eq!(container.name, expected, "{second} {meant}");
        let (spec, allocated) = if expected == "first" { (1, 3) } else { (2, 4) };
        assert_eq!((container.spec, container.allocated), (size(spec), Some(size(allocated))));
        assert_eq!(container.enforced.cpu, Some(MilliCpu::from_cores(allocated)));
    }
}

/// QEMU needs memory of its own beside the guest's.
#[test]
fn what_a_hypervisor_needs_for_itself_is_not_its_vms() {
    let with = |overhead: &str| {
        let resources = json!({"requests": amounts(3), "limits": amounts(3)});
        let status =
            json!({"name": "vm", "allocatedResources": amounts(3), "resources": resources});
        let mut pod = pod(&json!({"name": "vm", "resources": resources}), Some(status));
        pod["metadata"]["annotations"] = json!({OVERHEAD: overhead});
        pod
    };
    let container = container_of(with(r#"{"cpu":"250m","memory":"512Mi"}"#));
    let vms = Resources { cpu: MilliCpu::from_milli(2750), mem: Bytes::from_mib(2560) };
    assert_eq!((container.spec, container.allocated, container.sure()), (vms, Some(vms), vms));
    assert_eq!((container.effective, container.fixed), (vms, None));
    let limits = container.limits_for(size(4)).with(container.overhead);
    let whole = size(4).saturating_add(container.overhead);
    assert_eq!(limits, Limits { cpu: Some(whole.cpu), mem: Some(whole.mem) }, "it moves along");
    for (said, why) in [
        ("256Mi", "windlass.dev/overhead"),
        (r#"{"memory":"much"}"#, "windlass.dev/overhead.memory"),
        (r#"{"cpu":-1}"#, "windlass.dev/overhead.cpu"),
    ] {
        let pod: Pod = serde_json::from_value(with(said)).unwrap();
        let vm = pod.vm.unwrap();
        let problems: Vec<String> = vm.problems.iter().map(ToString::to_string).collect();
        assert!(problems.iter().any(|it| it.starts_with(why)), "{said}: {problems:?}");
        let container = vm.container.unwrap();
        assert_eq!(container.fixed, Some(Fixed::Overhead), "{said}");
        assert_eq!(container.sure(), Resources::ZERO, "{said}");
    }
    let most: Pod = serde_json::from_value(with(r#"{"memory":"8Gi"}"#)).unwrap();
    let container = most.vm.unwrap().container.unwrap();
    assert_eq!((container.spec.mem, container.fixed), (Bytes::ZERO, None), "there is nothing left");
}

fn read(container: &Value, status: Option<Value>) -> VmContainer {
    container_of(pod(container, status))
}

fn container_of(pod: Value) -> VmContainer {
    let pod: Pod = serde_json::from_value(pod).unwrap();
    *pod.vm.unwrap().container.unwrap()
}

fn pod(container: &Value, status: Option<Value>) -> Value {
    json!({
        "metadata": {"name": "p", "labels": {"windlass.dev/enabled": "true"}},
        "spec": {"containers": [container]},
        "status": {"containerStatuses": Vec::from_iter(status)},
    })
}

fn amounts(count: u64) -> Value {
    json!({"cpu": count.to_string(), "memory": format!("{count}Gi")})
}

fn size(count: u64) -> Resources {
    Resources { cpu: MilliCpu::from_cores(count), mem: Bytes::from_gib(count) }
}
