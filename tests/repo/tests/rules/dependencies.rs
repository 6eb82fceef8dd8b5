//! Who may link whom.

use std::collections::BTreeMap;
use windlass_repo::{assert_none, cargo};

/// What decides, and therefore has no runtime, network, clock or randomness.
const PURE: [&str; 9] = [
    "windlass-protocol",
    "windlass-scaling",
    "windlass-agent-core",
    "windlass-agent-billing-core",
    "windlass-informant-core",
    "windlass-informant-postgres-core",
    "windlass-plugin-core",
    "windlass-drivers-neonvm-core",
    "windlass-world",
];

const IMPURE: [&str; 27] = [
    "async-std",
    "axum",
    "chrono",
    "crossterm",
    "fastrand",
    "futures-util",
    "getrandom",
    "hyper",
    "hyper-util",
    "jiff",
    "kube",
    "libc",
    "mio",
    "num_cpus",
    "rand",
    "rand_core",
    "reqwest",
    "ring",
    "rustix",
    "rustls",
    "smol",
    "socket2",
    "time",
    "tokio",
    "tower",
    "tracing",
    "ureq",
];

/// Each part, and what it may link. A part that is not here may link nothing of ours.
const MAY_LINK: [(&str, &[&str]); 43] = [
    ("protocol", &[]),
    ("scaling", &["protocol"]),
    ("kit", &["protocol"]),
    ("kit-kubernetes", &["protocol", "kit"]),
    ("agent-core", &["protocol", "scaling"]),
    ("informant-core", &["protocol"]),
    ("plugin-core", &["protocol", "scaling"]),
    (
        "world",
        &[
            "protocol",
            "scaling",
            "agent-core",
            "informant-core",
            "plugin-core",
            "drivers-neonvm-core",
        ],
    ),
    ("drivers", &["protocol"]),
    ("drivers-fake", &["protocol", "drivers"]),
    ("drivers-qemu", &["protocol", "drivers", "drivers-cgroup"]),
    ("drivers-cgroup", &["protocol"]),
    ("drivers-neonvm-core", &["protocol"]),
    ("drivers-neonvm", &["protocol", "drivers", "drivers-neonvm-core", "kit-kubernetes"]),
    ("agent", &["protocol", "scaling", "agent-core", "drivers", "kit"]),
    ("vm-files", &["protocol", "kit", "agent-core"]),
    ("agent-billing-core", &["protocol"]),
    ("agent-billing", &["protocol", "agent-billing-core", "kit"]),
    (
        "agent-host",
        &["protocol", "kit", "agent-core", "agent", "drivers", "drivers-qemu", "vm-files"],
    ),
    ("plugin", &["protocol", "scaling", "plugin-core", "kit"]),
    (
        "agent-cluster",
        &[
            "protocol",
            "kit",
            "kit-kubernetes",
            "agent-core",
            "agent",
            "drivers",
            "drivers-neonvm",
            "drivers-qemu",
        ],
    ),
    ("agent-config", &["protocol", "kit", "agent", "agent-host", "agent-billing"]),
    (
        "agent-program",
        &[
            "protocol",
            "kit",
            "kit-kubernetes",
            "agent-core",
            "agent",
            "agent-host",
            "agent-cluster",
            "agent-billing",
            "agent-config",
        ],
    ),
    ("plugin-config", &["protocol", "kit", "plugin-core"]),
    ("plugin-cluster", &["protocol", "kit", "kit-kubernetes", "plugin-core", "plugin"]),
    (
        "plugin-program",
        &[
            "protocol",
            "kit",
            "kit-kubernetes",
            "plugin-core",
            "plugin",
            "plugin-config",
            "plugin-cluster",
        ],
    ),
    ("informant", &["protocol", "informant-core"]),
    ("informant-postgres-core", &["protocol", "informant-core"]),
    ("informant-postgres", &["protocol", "informant-core", "informant", "informant-postgres-core"]),
    ("conformance", &[]),
    ("testkit", &[]),
    ("images", &["testkit"]),
    ("lab", &["testkit"]),
    ("lab-load", &[]),
    ("lab-limit", &["protocol", "drivers-cgroup"]),
    (
        "windlass",
        &[
            "protocol",
            "scaling",
            "kit",
            "agent-core",
            "agent",
            "agent-host",
            "agent-config",
            "vm-files",
            "drivers",
            "drivers-qemu",
            "drivers-cgroup",
            "plugin-core",
            "plugin",
            "plugin-config",
            "conformance",
        ],
    ),
    ("demo", &["protocol", "kit", "plugin-core", "lab", "windlass"]),
    ("e2e", &["lab", "protocol", "control-plane"]),
    ("control-plane", &["testkit"]),
    ("sim", &["protocol", "agent-core", "world"]),
    (
        "fuzz",
        &[
            "protocol",
            "scaling",
            "kit",
            "agent-core",
            "drivers",
            "drivers-qemu",
            "informant-core",
            "informant",
            "plugin-core",
            "plugin",
            "agent-host",
            "agent-config",
            "plugin-config",
            "windlass",
        ],
    ),
    ("repo", &["protocol", "windlass"]),
    ("bench", &["lab", "protocol", "testkit", "control-plane"]),
];

#[test]
fn what_decides_links_no_runtime_network_clock_or_randomness() {
    let mut found = Vec::new();
    for package in PURE {
        let linked = cargo::tree(package);
        found.extend(
            IMPURE
                .iter()
                .filter(|name| linked.contains(**name))
                .map(|name| format!("{package} links {name}")),
        );
    }
    assert_none("a core's dependencies are the proof of its purity:", &found);
}

#[test]
fn dependencies_point_one_way() {
    let allowed: BTreeMap<&str, &[&str]> = MAY_LINK.into_iter().collect();
    let mut wrong = Vec::new();
    for package in cargo::packages().into_values() {
        let part = short(&package.name);
        let may = allowed.get(part).copied().unwrap_or(&[]);
        wrong.extend(
            package
                .links
                .iter()
                .map(|name| short(name))
                .filter(|name| !may.contains(name))
                .map(|name| format!("{part} links {name}")),
        );
    }
    assert_none("these dependencies are not in the map:", &wrong);
}

#[test]
fn a_host_links_no_kubernetes_client() {
    let mut found = Vec::new();
    for package in [
        "windlass",
        "windlass-informant",
        "windlass-informant-postgres",
        "windlass-agent",
        "windlass-agent-host",
        "windlass-agent-config",
        "windlass-plugin",
    ] {
        let linked = cargo::tree(package);
        found.extend(
            linked
                .iter()
                .filter(|name| name.starts_with("kube") || name.starts_with("k8s-"))
                .map(|name| format!("{package} links {name}")),
        );
    }
    assert_none("a host build takes minutes because it has no Kubernetes in it:", &found);
}

/// The informant is one small static file: neither our process kit nor a web framework.
#[test]
fn the_informant_links_only_what_it_needs() {
    let linked = cargo::tree("windlass-informant");
    let heavy = [
        "windlass-kit",
        "axum",
        "reqwest",
        "tower-http",
        "rustls",
        "tracing-subscriber",
        "clap",
        "toml",
        "tokio-postgres",
        "windlass-informant-postgres-core",
    ];
    let found: Vec<String> = heavy
        .iter()
        .filter(|name| linked.contains(**name))
        .map(|name| (*name).to_owned())
        .collect();
    assert_none("the informant links:", &found);
}

fn short(package: &str) -> &str {
    package.strip_prefix("windlass-").unwrap_or(package)
}
