//! The addresses that the files of several programs name: their keys, and which addresses clash.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use windlass_protocol::config::Value::Time;
use windlass_protocol::config::{Field, Kind, Reader, key};

/// Where a program serves health and metrics; each program has a default of its own.
pub const ADMIN: Field =
    key("admin", Kind::Address, "Where /livez, /readyz, /metrics and /log-level are served.");

/// Where a program shows its state; each program has a default of its own.
pub const DUMP_STATE: Field =
    key("dump_state", Kind::Address, "Where the state is shown, in the reference's shape.");

/// How long gathering the state may take.
pub const DUMP_STATE_TIMEOUT: Field = key(
    "dump_state_timeout",
    Kind::Time { least: Duration::from_millis(100), most: LONGEST_DUMP },
    GATHERING,
)
.or(Time(USUAL_DUMP));

/// What `dump_state_timeout` and `dumpState.timeoutSeconds` mean.
pub const GATHERING: &str = "How long gathering the state may take.";
/// The most that both may be.
pub const LONGEST_DUMP: Duration = Duration::from_secs(60);
/// The default of both.
pub const USUAL_DUMP: Duration = Duration::from_secs(5);

/// Whether a listener at one of these addresses is reached at the other, too.
pub fn is_one_host(one: IpAddr, other: IpAddr) -> bool {
    one == other || one.is_unspecified() || other.is_unspecified()
}

/// Whether only one process can listen at both. Port 0 is any that is free.
pub fn overlap(one: SocketAddr, other: SocketAddr) -> bool {
    one.port() != 0 && one.port() == other.port() && is_one_host(one.ip(), other.ip())
}

/// Notes a problem of each key whose address overlaps that of an earlier key.
pub fn all_differ(file: &mut Reader, addresses: &[(&str, Option<SocketAddr>)]) {
    for (nth, (name, at)) in addresses.iter().enumerate() {
        for (other, theirs) in &addresses[..nth] {
            let (Some(at), Some(theirs)) = (*at, *theirs) else { continue };
            if overlap(at, theirs) && file.are_sound(&[name, other]) {
                file.wrong(name, at, &format!("must not be the address of {other}"));
            }
        }
    }
}
