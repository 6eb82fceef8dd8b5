//! The machine beside `[node]`, and the ports that a program needs.

use super::files::Read;
use super::report::Check;
use crate::command::configured::Configured;
use crate::host::config::NodeConfig;
use crate::host::room::Machine;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::Path;
use windlass_agent_host::basics::Basics;
use windlass_protocol::Resources;

const NODE: &str = "docs/configuration.md#hosttoml";
const NETWORKS: &str = "docs/host.md#networks";

/// What is said of the machine.
pub(super) fn checks(files: &[Read]) -> Vec<Check> {
    let machine = Machine::here();
    let has = machine.memory.map(|mem| Resources { cpu: machine.cpu, mem }.to_string());
    let has =
        has.unwrap_or_else(|| format!("{} vCPU and an unknown amount of memory", machine.cpu));
    let mut checks = Vec::new();
    let host = |file: &Read| match &file.config {
        Ok(Configured::Host(config)) => Some(config.node),
        Ok(Configured::Agent(_) | Configured::Plugin(_) | Configured::Vms) | Err(_) => None,
    };
    let nodes: Vec<NodeConfig> = files.iter().filter_map(host).collect();
    if nodes.is_empty() {
        checks.push(Check::good(format!("the machine has {has}")));
    }
    for node in nodes {
        match machine.room(node) {
            Ok(room) => {
                checks.push(Check::good(format!("the machine has {has}; VMs may have {room}")));
            }
            Err(problem) => {
                checks.push(Check::failed(problem.to_string(), "Say less, or leave it out.", NODE));
            }
        }
        checks.extend(machine.overcommitted(node).into_iter().map(|problem| {
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

/// What is said of the ports that a program's file names; those of one that `runs` are taken by it.
pub(super) fn ports(files: &Read, runs: bool) -> Vec<Check> {
    let Ok(config) = &files.config else { return Vec::new() };
    let mut checks = Vec::new();
    let basics = config.called_back();
    if let Some(basics) = basics {
        checks.push(listens("callback_listen", basics.callback_listen));
    }
    let program = match config {
        Configured::Host(_) => "the host",
        Configured::Agent(_) => "windlass-agent",
        Configured::Plugin(_) => "windlass-plugin",
        Configured::Vms => return checks,
    };
    if runs {
        checks.push(Check::good(format!("{program} has its ports")));
        return checks;
    }
    checks.extend(basics.map(callback_ports));
    let (taken, free): (Vec<_>, Vec<_>) =
        config.addresses().into_iter().partition(|(_, at)| is_taken(*at));
    if !free.is_empty() {
        let keys: Vec<_> = free.iter().map(|(key, _)| *key).collect();
        checks.push(Check::good(format!("no process has the address of {}", keys.join(", "))));
    }
    for (key, at) in taken {
        let found = format!("{key} = {at} is taken by another process");
        let advice = format!("`ss -ltnp sport = :{}` says by which.", at.port());
        checks.push(files.found_here(Check::failed(found, &advice, files.page())));
    }
    checks
}

fn callback_ports(basics: &Basics) -> Check {
    let range = basics.callback_ports.clone();
    let taken = |port: &u16| is_taken((basics.callback_listen, *port).into());
    let taken: Vec<u16> = range.clone().filter(taken).collect();
    let (first, last) = (range.start(), range.end());
    match taken.as_slice() {
        [] => Check::good(format!("ports {first} to {last} are free")),
        [one, rest @ ..] => {
            let more =
                if rest.is_empty() { String::new() } else { format!(" (and {} more)", rest.len()) };
            let found = format!("port {one}{more} of callback_ports is taken by another process");
            let advice = format!("`ss -ltnp sport = :{one}` says by which; choose another range.");
            Check::limited(found, &advice, NETWORKS)
        }
    }
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
