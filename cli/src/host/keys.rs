//! Every key of host.toml. `windlass check --keys` prints the whole, and the configuration reference
//! is checked against it.

use windlass_agent::config::CALLBACK_PORTS;
use windlass_protocol::config::Value::{Memory, Ports, Text, Truth};
use windlass_protocol::config::{Kind, MEMORY, Table, key};
use windlass_protocol::{Bytes, unit_choice};

/// The keys of host.toml.
pub const HOST: Table = Table::toml(&[&[
    key(
        "state_dir",
        Kind::PATH,
        "Where freeze, pauses, history and the VMs to be counted are kept over a restart.",
    )
    .or(Text("/var/lib/windlass"))
    .note(", other than vms_dir"),
    key("vms_dir", Kind::PATH, "Where VM files are looked for.")
        .or(Text("/etc/windlass/vms.d"))
        .note(", other than state_dir"),
    key("socket", Kind::SOCKET, "Where the command line reaches the host.")
        .or(Text("/run/windlass/host.sock")),
    key("admin", Kind::Address, "Where /livez, /readyz, /metrics and /log-level are served.")
        .or(Text("127.0.0.1:10304")),
    key("callback_listen", Kind::Ip, "Where informants call back.").or(Text("127.0.0.1")),
    key("callback_ports", Kind::Ports, "One port per VM, the same after a restart.")
        .or(Ports(CALLBACK_PORTS.0, CALLBACK_PORTS.1))
        .note(", without the port of admin"),
    key(
        "trust_guest_parking",
        Kind::Truth,
        "Whether a vCPU that the guest has parked leaves the books.",
    )
    .or(Truth(false)),
    key(
        "node.cpu",
        Kind::cpu(4096),
        "What may be reserved for VMs; may exceed the physical count.",
    )
    .otherwise("the host's count"),
    key(
        "node.memory",
        Kind::memory(Bytes::from_mib(64), Bytes::from_gib(1 << 20)),
        "What may be reserved for VMs.",
    )
    .otherwise("the host's, less node.reserved")
    .note(", and not together with node.reserved"),
    key(
        "node.reserved",
        Kind::Other {
            written: MEMORY,
            allowed: "less than the host's memory, and not together with node.memory",
        },
        "What the host keeps for itself, where node.memory is absent.",
    )
    .or(Memory(Bytes::from_gib(1))),
    unit_choice::CPU,
    unit_choice::MEMORY,
]]);
