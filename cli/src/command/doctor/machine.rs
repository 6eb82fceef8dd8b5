//! The machine beside `[node]`, and the ports that the host needs.

use super::files::Read;
use super::report::Check;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::Path;
use windlass_protocol::Resources;

const NODE: &str = "docs/configuration.md#hosttoml";
const NETWORKS: &str = "docs/host.md#networks";

/// What is said of the machine.
pub(super) fn checks(files: &Read) -> Vec<Check> {
    let machine = files.machine;
    let has = machine.memory.map(|mem| Resources { cpu: machine.cpu, mem }.to_string());
    let has =
        has.unwrap_or_else(|| format!("{} vCPU and an unknown amount of memory", machine.cpu));
    let mut checks = Vec::new();
    if let Ok(config) = &files.config {
        match machine.room(config.node) {
            Ok(room) => {
                checks.push(Check::good(format!("the machine has {has}; VMs may have {room}")));
            }
            Err(problem) => {
                checks.push(Check::failed(problem.to_string(), "Say less, or leave it out.", NODE));
            }
        }
        let over = machine.overcommitted(config.node).into_iter();
        checks.extend(over.map(|problem| {
            let advice = "Allowed, for VMs that seldom use all that they have. Is it meant?";
            Check::limited(problem.to_string(), advice, NODE)
        }));
    }
    if Path::new("/dev/kvm").exists() {
        checks.push(Check::good("KVM is there"));
    } else {
        let advice =
            "Is virtualization on in the firmware, and the module kvm_intel or kvm_amd loaded?";
        let found = "there is no /dev/kvm: guests are emulated, which is slow";
        checks.push(Check::limited(found, advice, "docs/host.md#what-a-vm-needs"));
    }
    checks
}

/// What is said of the ports; those of a host that runs are taken by it.
pub(super) fn ports(files: &Read, runs: bool) -> Vec<Check> {
    let Ok(config) = &files.config else { return Vec::new() };
    let mut checks = vec![listens("callback_listen", config.callback_listen)];
    let range = config.callback_ports.clone();
    if runs {
        checks.push(Check::good("the host has its ports"));
        return checks;
    }
    let taken = |port: &u16| is_taken((config.callback_listen, *port).into());
    let taken: Vec<u16> = range.clone().filter(taken).collect();
    let (first, last) = (range.start(), range.end());
    match taken.as_slice() {
        [] => checks.push(Check::good(format!("ports {first} to {last} are free"))),
        [one, rest @ ..] => {
            let more =
                if rest.is_empty() { String::new() } else { format!(" (and {} more)", rest.len()) };
            let found = format!("port {one}{more} of callback_ports is taken by another process");
            let advice = format!("`ss -ltnp sport = :{one}` says by which; choose another range.");
            checks.push(Check::limited(found, &advice, NETWORKS));
        }
    }
    if is_taken(config.admin) {
        let found = format!("admin = {} is taken by another process", config.admin);
        let advice = format!("`ss -ltnp sport = :{}` says by which.", config.admin.port());
        checks.push(Check::failed(found, &advice, NODE));
    }
    checks
}

fn listens(key: &str, at: IpAddr) -> Check {
    match TcpListener::bind((at, 0)) {
        Ok(_) => Check::good(format!("{key} = {at} is an address of this machine")),
        Err(error) => {
            let found = format!("{key} = {at}: {error}");
            Check::failed(found, "`ip address` lists the addresses of this machine.", NETWORKS)
        }
    }
}

fn is_taken(at: SocketAddr) -> bool {
    let taken = std::io::ErrorKind::AddrInUse;
    at.port() != 0 && TcpListener::bind(at).is_err_and(|error| error.kind() == taken)
}
