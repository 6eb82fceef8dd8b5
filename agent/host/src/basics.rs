//! What host.toml and agent.toml both say: where an agent on one host has its files and addresses.
//!
//! The keys that both files have stand here once. Each file adds its own, and changes the default or the
//! sentence of a key where it differs.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;
use windlass_agent::Config;
use windlass_agent::config::CALLBACK_PORTS as ALL_PORTS;
use windlass_kit::addresses::{all_differ, is_one_host};
use windlass_kit::config::changed;
use windlass_kit::problem::Problem;
use windlass_protocol::config::Value::{Ports, Text};
use windlass_protocol::config::{Field, Kind, Reader, key};
use windlass_protocol::{CpuLimit, UnitChoice, limits};

/// What both files say; each field is the key of that name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Basics {
    /// Where it keeps what survives a restart.
    pub state_dir: PathBuf,
    /// Where it looks for VM files.
    pub vms_dir: PathBuf,
    /// Where the command line reaches it.
    pub socket: PathBuf,
    /// Where health and metrics are served.
    pub admin: SocketAddr,
    /// Where the state is shown, and how long gathering it may take; host.toml has no such key.
    pub dump_state: Option<(SocketAddr, Duration)>,
    /// Where informants call back.
    pub callback_listen: IpAddr,
    /// One port per VM.
    pub callback_ports: RangeInclusive<u16>,
    /// How the CPU of a VM is limited whose file says nothing about it.
    pub cpu_limit: Option<CpuLimit>,
    /// What is said of the step that sizes move in.
    pub unit: UnitChoice,
}

/// The key of [`Basics::state_dir`].
pub const STATE_DIR: Field = key(
    "state_dir",
    Kind::PATH,
    "Where freeze, pauses, history and the VMs to be counted are kept over a restart.",
)
.or(Text("/var/lib/windlass"))
.note(", other than vms_dir");

/// The key of [`Basics::vms_dir`].
pub const VMS_DIR: Field = key("vms_dir", Kind::PATH, "Where VM files are looked for.")
    .or(Text("/etc/windlass/vms.d"))
    .note(", other than state_dir");

/// The key of [`Basics::socket`].
pub const SOCKET: Field = key("socket", Kind::SOCKET, "Where the command line reaches the host.")
    .or(Text("/run/windlass/host.sock"));

/// The key of [`Basics::admin`].
pub const ADMIN: Field = windlass_kit::addresses::ADMIN.or(Text("127.0.0.1:10304"));

/// The key of [`Basics::callback_listen`]; each file has a default of its own.
pub const CALLBACK_LISTEN: Field = key("callback_listen", Kind::Ip, "Where informants call back.");

/// The key of [`Basics::callback_ports`].
pub const CALLBACK_PORTS: Field =
    key("callback_ports", Kind::Ports, "One port per VM, the same after a restart.")
        .or(Ports(ALL_PORTS.0, ALL_PORTS.1))
        .note(", without the port of admin");

/// The key of [`Basics::cpu_limit`].
pub const CPU_LIMIT: Field = key(
    "cpu_limit",
    limits::CPU_LIMIT,
    "How CPU that a VM has given back is kept from its guest, so that it leaves the books.",
)
.otherwise("cgroup where QEMU has a cgroup of its own, else none")
.replaces(
    "trust_guest_parking",
    "is now cpu_limit: in place of true write cpu_limit = \"trust\", in place of false \
     cpu_limit = \"none\", or no cpu_limit",
);

// === impl Basics ===

impl Basics {
    /// Reads every key, also when an earlier one is wrong. Informants call back at `callback_listen`
    /// unless the file says where.
    pub fn read(file: &mut Reader, callback_listen: IpAddr) -> Self {
        Self {
            state_dir: file.get("state_dir"),
            vms_dir: file.get("vms_dir"),
            socket: file.get("socket"),
            admin: file.get("admin"),
            dump_state: file
                .is_key("dump_state")
                .then(|| (file.get("dump_state"), file.get("dump_state_timeout"))),
            callback_listen: file.find("callback_listen").unwrap_or(callback_listen),
            callback_ports: file.get("callback_ports"),
            cpu_limit: file.find("cpu_limit"),
            unit: UnitChoice::read(file),
        }
    }

    /// Notes what is right by itself and wrong together.
    pub fn check(&self, file: &mut Reader) {
        // Under our names also in the reference's JSON: there the command line says them.
        if self.state_dir == self.vms_dir && file.are_sound(&["state_dir", "vms_dir"]) {
            let limit = "must not be the same folder as state_dir";
            file.add([Problem::new("vms_dir", self.vms_dir.display(), limit)]);
        }
        let of_admin = format!("must not contain {}, the port of admin", self.admin.port());
        let of_dump_state = self.dump_state.map(|(at, _)| {
            let limit = format!("must not contain {}, the port of dump_state", at.port());
            ("dump_state", at, limit)
        });
        let clash = |(name, at, limit): (&str, SocketAddr, String)| {
            let sound = file.are_sound(&[name, "callback_listen", "callback_ports"]);
            let ports = || format!("{}-{}", self.callback_ports.start(), self.callback_ports.end());
            (sound && self.calls_back(at)).then(|| Problem::new("callback_ports", ports(), limit))
        };
        let taken = [("admin", self.admin, of_admin)].into_iter().chain(of_dump_state);
        let clashes: Vec<_> = taken.filter_map(clash).collect();
        file.add(clashes);
        let dump_state = self.dump_state.map(|(at, _)| at);
        all_differ(file, &[("dump_state", dump_state), ("admin", Some(self.admin))]);
    }

    /// What differs from `other`, by key; all of it is only read at the start.
    pub fn needs_restart(&self, other: &Self) -> Vec<&'static str> {
        changed(&[
            ("state_dir", self.state_dir != other.state_dir),
            ("vms_dir", self.vms_dir != other.vms_dir),
            ("socket", self.socket != other.socket),
            ("admin", self.admin != other.admin),
            ("dump_state", self.dump_state != other.dump_state),
            ("callback_listen", self.callback_listen != other.callback_listen),
            ("callback_ports", self.callback_ports != other.callback_ports),
            ("cpu_limit", self.cpu_limit != other.cpu_limit),
            ("compute_unit", self.unit != other.unit),
        ])
    }

    /// Where it listens besides its call-back ports, by key.
    pub fn addresses(&self) -> Vec<(&'static str, SocketAddr)> {
        let dump_state = self.dump_state.map(|(at, _)| ("dump_state", at));
        [("admin", self.admin)].into_iter().chain(dump_state).collect()
    }

    /// Whether informants call back at this address.
    pub fn calls_back(&self, at: SocketAddr) -> bool {
        is_one_host(self.callback_listen, at.ip()) && self.callback_ports.contains(&at.port())
    }

    /// What its agent is told of this.
    pub fn agent(&self) -> Config {
        Config {
            cpu_limit: self.cpu_limit,
            callback_listen: self.callback_listen,
            callback_ports: self.callback_ports.clone(),
            ..Config::new(self.unit)
        }
    }
}
