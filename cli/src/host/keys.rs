//! Every key of host.toml. `windlass check --keys` prints the whole, and the configuration reference
//! is checked against it.

use windlass_agent_host::basics::{
    ADMIN, CALLBACK_LISTEN, CALLBACK_PORTS, CPU_LIMIT, SOCKET, STATE_DIR, VMS_DIR,
};
use windlass_protocol::config::Value::{Memory, Text};
use windlass_protocol::config::{Kind, MEMORY, Table, key};
use windlass_protocol::{Bytes, unit_choice};

/// The keys of host.toml.
pub const HOST: Table = Table::toml(&[&[
    STATE_DIR,
    VMS_DIR,
    SOCKET,
    ADMIN,
    CALLBACK_LISTEN.or(Text("127.0.0.1")),
    CALLBACK_PORTS,
    CPU_LIMIT,
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
