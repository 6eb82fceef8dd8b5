//! Every key of host.toml: how it is written, default, range, meaning.
//!
//! Errors quote the range; `windlass check --keys` prints the whole, and the configuration
//! reference is checked against it. The keys of VM files stand beside their checks, in the
//! protocol crate.

use windlass_kit::check::{ADDRESS, CPU, MEMORY};
pub use windlass_protocol::vm_file::{KEYS as VM_KEYS, Key};

/// The keys of host.toml.
pub const HOST_KEYS: &[Key] = &[
    Key {
        name: "state_dir",
        kind: "a path",
        default: "/var/lib/windlass",
        range: "an absolute path, other than vms_dir",
        meaning: "Where freeze, pauses, history and the VMs to be counted are kept over a restart.",
    },
    Key {
        name: "vms_dir",
        kind: "a path",
        default: "/etc/windlass/vms.d",
        range: "an absolute path, other than state_dir",
        meaning: "Where VM files are looked for.",
    },
    Key {
        name: "socket",
        kind: "a path",
        default: "/run/windlass/host.sock",
        range: "an absolute path of at most 107 bytes",
        meaning: "Where the command line reaches the host.",
    },
    Key {
        name: "admin",
        kind: ADDRESS,
        default: "127.0.0.1:10304",
        range: "an IP address and a port, as \"127.0.0.1:10304\"; port 0 takes a free one",
        meaning: "Where /livez, /readyz, /metrics and /log-level are served.",
    },
    Key {
        name: "callback_listen",
        kind: "an IP address",
        default: "127.0.0.1",
        range: "an IP address, without a port",
        meaning: "Where informants call back.",
    },
    Key {
        name: "callback_ports",
        kind: "a text",
        default: "10310-10399",
        range: "FIRST-LAST, from 1 to 65535, without the port of admin",
        meaning: "One port per VM, the same after a restart.",
    },
    Key {
        name: "trust_guest_parking",
        kind: "true or false",
        default: "false",
        range: "true or false",
        meaning: "Whether a vCPU that the guest has parked leaves the books.",
    },
    Key {
        name: "node.cpu",
        kind: CPU,
        default: "the host's count",
        range: "0.05 to 4096 vCPUs",
        meaning: "What may be reserved for VMs; may exceed the physical count.",
    },
    Key {
        name: "node.memory",
        kind: MEMORY,
        default: "the host's, less node.reserved",
        range: "64MiB to 1024TiB, and not together with node.reserved",
        meaning: "What may be reserved for VMs.",
    },
    Key {
        name: "node.reserved",
        kind: MEMORY,
        default: "1GiB",
        range: "less than the host's memory, and not together with node.memory",
        meaning: "What the host keeps for itself, where node.memory is absent.",
    },
    Key {
        name: "compute_unit.cpu",
        kind: CPU,
        default: "the smaller of 1 and the VM's min.cpu",
        range: "0.05 to 64 vCPUs",
        meaning: "vCPUs of the step that sizes move in.",
    },
    Key {
        name: "compute_unit.memory",
        kind: MEMORY,
        default: "the smaller of 1GiB and the VM's min.memory",
        range: "1MiB to 1TiB",
        meaning: "Memory of the step that sizes move in.",
    },
];
