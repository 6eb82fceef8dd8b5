//! What is given on the command line, checked before anything is tried: every refusal says what
//! it is, what was given, and what may be.

use crate::failure::Failure;
use crate::options;
use std::fs::OpenOptions;
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use windlass_conformance::Listed;
use windlass_conformance::plugin::Vm;
use windlass_conformance::versions::{Version, select};
use windlass_protocol::Bytes;

/// A server at the target answers within this.
const REACH: Duration = Duration::from_secs(3);

/// Reads `ip:port` of a machine.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    let wrong = "write ip:port, as 127.0.0.1:10301; names are not looked up";
    match text.parse::<SocketAddr>() {
        Ok(found) if found.port() == 0 => Err("the port is 0, and may be 1 to 65535".to_owned()),
        found => found.map_err(|_| wrong.to_owned()),
    }
}

/// Reads `ip:port` or `http://ip:port`.
pub(super) fn url(text: &str) -> Result<SocketAddr, String> {
    let rest = text.strip_prefix("http://").unwrap_or(text);
    address(rest.strip_suffix('/').unwrap_or(rest))
        .map_err(|why| why.replace("ip:port, as", "ip:port or http://ip:port, as"))
}

/// Reads the address of one machine.
pub(super) fn machine(text: &str) -> Result<IpAddr, String> {
    let found = text.parse::<IpAddr>().ok();
    found
        .filter(|found| !found.is_unspecified() && !found.is_multicast())
        .ok_or_else(|| "write the IP address of one machine, as 10.0.2.2".to_owned())
}

/// Reads `NAMESPACE/NAME`, or a name in the namespace `default`.
pub(super) fn vm(text: &str) -> Result<Vm, String> {
    let vm = Vm::named(text);
    let fits = |part: &str| (1..=253).contains(&part.len()) && !part.contains('/');
    if fits(&vm.namespace) && fits(&vm.name) {
        Ok(vm)
    } else {
        Err("write NAMESPACE/NAME or NAME, each of 1 to 253 characters".to_owned())
    }
}

/// Reads a slot of memory.
pub(super) fn slot(text: &str) -> Result<Bytes, String> {
    let found = options::memory(text)?;
    let fits = (Bytes::from_mib(1)..=Bytes::from_gib(64)).contains(&found);
    if fits { Ok(found) } else { Err("a slot may be 1MiB to 64GiB".to_owned()) }
}

/// Reads a command that says something.
pub(super) fn command(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err("write a command of the shell".to_owned());
    }
    Ok(text.to_owned())
}

/// The versions of this table that are asked for; all, if none is.
pub(super) fn versions(
    option: &str,
    table: &[Version],
    given: Option<&String>,
) -> Result<Vec<Version>, Failure> {
    let usage = |why| Failure::Usage(format!("{option}: {why}"));
    given.map_or_else(|| Ok(table.to_vec()), |text| select(table, text).map_err(usage))
}

/// The names, each of which is a case's.
pub(super) fn known(only: &[String], cases: &[Listed]) -> Result<Vec<String>, Failure> {
    match only.iter().find(|name| !cases.iter().any(|case| case.name == **name)) {
        Some(name) => Err(Failure::Usage(format!(
            "--only: there is no case {name:?}; `windlass conformance list` names them"
        ))),
        None => Ok(only.to_vec()),
    }
}

/// Whether a server listens at the target.
pub(super) fn reach(target: SocketAddr) -> Result<(), Failure> {
    let absent =
        |error| Failure::Absent(format!("--target: no server listens at {target}: {error}"));
    TcpStream::connect_timeout(&target, REACH).map(drop).map_err(absent)
}

/// The address of this machine from which the target is reached.
pub(super) fn local_address(target: SocketAddr) -> Result<IpAddr, Failure> {
    let any = if target.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let found = UdpSocket::bind(any).and_then(|socket| {
        // Nothing is sent: the system only chooses a way.
        socket.connect(target)?;
        socket.local_addr()
    });
    let none = |error| Failure::Usage(format!("no way to {target} ({error}); say --advertise"));
    found.map(|addr| addr.ip()).map_err(none)
}

/// Whether the command that makes memory short works at all: it is run with `off`.
pub(super) fn provokes(command: &str) -> Result<(), Failure> {
    let wrong = |what: String| {
        Failure::Usage(format!("--provoke: `{command} off` {what}; it is to end with status 0"))
    };
    let run = Command::new("sh").arg("-c").arg(format!("{command} off")).status();
    match run.map_err(|error| wrong(format!("was not run ({error})")))? {
        status if status.success() => Ok(()),
        status => Err(wrong(format!("ended with {status}"))),
    }
}

/// The file for the report, opened at once: a run of minutes is not to end in a path that is wrong.
pub(super) fn report_file(given: Option<&PathBuf>) -> Result<(), Failure> {
    let open = |path: &PathBuf| OpenOptions::new().create(true).append(true).open(path).map(drop);
    given.map_or(Ok(()), |path| open(path).map_err(|why| not_made(path, &why)))
}

/// The folder for what agents say.
pub(super) fn log_folder(given: Option<&PathBuf>) -> Result<(), Failure> {
    given.map_or(Ok(()), |path| std::fs::create_dir_all(path).map_err(|why| not_made(path, &why)))
}

pub(super) fn not_made(path: &Path, why: &dyn std::fmt::Display) -> Failure {
    Failure::CannotCreate(format!("{}: {why}", path.display()))
}
