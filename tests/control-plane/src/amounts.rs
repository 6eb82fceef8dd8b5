//! Amounts of CPU and memory, out of quantities as Kubernetes writes them.
//!
//! What a pod requests is summed as Kubernetes does it (KEP-753): containers and sidecars together, or one
//! init container with the sidecars before it where that is more, and the pod's overhead.

use k8s_openapi::api::core::v1::{Container, Pod};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use std::collections::BTreeMap;
use std::ops::{Add, Sub};

/// CPU and memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amounts {
    /// In thousandths of a CPU.
    pub cpu: i64,
    /// In bytes.
    pub memory: i64,
}

/// Resources by name.
pub type Quantities = BTreeMap<String, Quantity>;

// === impl Amounts ===

impl Amounts {
    /// Of these resources; what is not named is zero.
    pub fn of(list: &Quantities) -> Self {
        let thousandths = |name| list.get(name).map_or(0, |quantity| thousandths(&quantity.0));
        Self { cpu: thousandths("cpu"), memory: whole(thousandths("memory")) }
    }

    /// What a pod requests.
    pub fn requested(pod: &Pod) -> Self {
        let Some(spec) = &pod.spec else { return Self::default() };
        let mut sidecars = Self::default();
        let mut most = Self::default();
        for container in spec.init_containers.iter().flatten() {
            let wants = Self::of_container(container);
            if container.restart_policy.as_deref() == Some("Always") {
                sidecars = sidecars + wants;
                most = most.max(sidecars);
            } else {
                most = most.max(sidecars + wants);
            }
        }
        let together = spec.containers.iter().map(Self::of_container).fold(sidecars, Add::add);
        let overhead = spec.overhead.as_ref().map(Self::of).unwrap_or_default();
        most.max(together) + overhead
    }

    fn of_container(container: &Container) -> Self {
        let requests = container.resources.as_ref().and_then(|all| all.requests.as_ref());
        requests.map(Self::of).unwrap_or_default()
    }

    /// The larger of both, axis by axis.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self { cpu: self.cpu.max(other.cpu), memory: self.memory.max(other.memory) }
    }
}

impl Add for Amounts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { cpu: self.cpu + other.cpu, memory: self.memory + other.memory }
    }
}

impl Sub for Amounts {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self { cpu: self.cpu - other.cpu, memory: self.memory - other.memory }
    }
}

/// A quantity in thousandths, rounded up: `1500m`, `1.5`, `2Gi`, `1e3`.
///
/// # Panics
/// If it is no quantity, or does not fit.
pub fn thousandths(text: &str) -> i64 {
    try_thousandths(text).unwrap_or_else(|| panic!("{text:?} is no quantity"))
}

fn try_thousandths(text: &str) -> Option<i64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && !"+-.".contains(c)).unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let digits: i128 = format!("{whole}{part}").parse().ok()?;
    let places = u32::try_from(part.len()).ok()?;
    // How much the suffix stands for, in billionths.
    let unit = match suffix {
        "n" => 1,
        "u" => 10_i128.pow(3),
        "m" => 10_i128.pow(6),
        "" => 10_i128.pow(9),
        "k" => 10_i128.pow(12),
        "M" => 10_i128.pow(15),
        "G" => 10_i128.pow(18),
        "T" => 10_i128.pow(21),
        "Ki" => 10_i128.pow(9) << 10,
        "Mi" => 10_i128.pow(9) << 20,
        "Gi" => 10_i128.pow(9) << 30,
        "Ti" => 10_i128.pow(9) << 40,
        _ => 10_i128.pow(suffix.strip_prefix(['e', 'E'])?.parse::<u32>().ok()?.checked_add(9)?),
    };
    let billionths = digits.checked_mul(unit)?;
    let divisor = 10_i128.pow(places.checked_add(6)?);
    i64::try_from(billionths.div_euclid(divisor) + i128::from(billionths.rem_euclid(divisor) > 0))
        .ok()
}

fn whole(thousandths: i64) -> i64 {
    thousandths.div_euclid(1000) + i64::from(thousandths.rem_euclid(1000) > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_quantity_is_read_as_kubernetes_writes_it() {
        for (text, wanted) in [
            ("0", 0),
            ("1", 1000),
            ("100m", 100),
            ("1.5", 1500),
            ("0.25", 250),
            ("2k", 2_000_000),
            ("1Ki", 1_024_000),
            ("1.5Gi", 1_610_612_736_000),
            ("1e3", 1_000_000),
            ("1n", 1),
            ("1100u", 2),
        ] {
            assert_eq!(thousandths(text), wanted, "{text}");
        }
        for text in ["", "m", "1x", "1.2.3", "e", "99999999T"] {
            assert_eq!(try_thousandths(text), None, "{text}");
        }
    }

    #[test]
    fn a_pod_requests_what_its_containers_need_at_one_time() {
        let container = |name: &str, cpu: &str, policy: Option<&str>| json!({"name": name, "restartPolicy": policy, "resources": {"requests": {"cpu": cpu}}});
        let cpu = |init: serde_json::Value| {
            let pod = serde_json::from_value(json!({"spec": {
                "initContainers": init,
                "containers": [container("a", "1", None), container("b", "500m", None)],
                "overhead": {"cpu": "10m"},
            }}));
            Amounts::requested(&pod.unwrap()).cpu
        };
        assert_eq!(cpu(json!([])), 1510);
        assert_eq!(cpu(json!([container("init", "1", None)])), 1510);
        assert_eq!(cpu(json!([container("init", "2", None)])), 2010);
        assert_eq!(cpu(json!([container("side", "1", Some("Always"))])), 2510);
        let both = [container("side", "1", Some("Always")), container("init", "2", None)];
        assert_eq!(cpu(json!(both)), 3010);
    }
}
