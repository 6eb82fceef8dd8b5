//! A program's file and VM files together: what is right by itself and does not fit.
//!
//! A pure function of the files: nothing is asked of the machine or of a host. That two VMs name one
//! monitor or one informant is judged where files are taken into force, in [`windlass_vm_files::folder::Folder`].

use crate::problem::Problem;
use windlass_agent_host::basics::Basics;
use windlass_protocol::vm_file::VmFile;
use windlass_protocol::{Mode, Resources};

/// What does not fit, each with the VM whose file is to change, or none for the program's own, which is
/// called `program`. `room` is what may be reserved for VMs, where that is known.
pub(crate) fn misfits(
    program: &str,
    basics: &Basics,
    room: Option<Resources>,
    files: &[&VmFile],
) -> Vec<(Option<String>, Problem)> {
    let own = of_program(basics, room, files).into_iter().map(|problem| (None, problem));
    let of_vms = files.iter().flat_map(|file| {
        let vm = &file.info.name.name;
        of_vm(program, basics, room, file).into_iter().map(|problem| (Some(vm.clone()), problem))
    });
    own.chain(of_vms).collect()
}

fn of_program(config: &Basics, room: Option<Resources>, files: &[&VmFile]) -> Vec<Problem> {
    let mut problems = Vec::new();
    let minima = files.iter().fold(Resources::ZERO, |sum, f| sum.saturating_add(f.info.bounds.min));
    if let Some(room) = room.filter(|room| !room.covers(minima)) {
        let limit = format!(
            "the minima of all VM files come to {minima}, and the node has {room}: the VM \
             that comes last stays short; lower a `min`, or raise [node]"
        );
        problems.push(Problem::without_value("node", limit));
    }
    let (first, last) = (config.callback_ports.start(), config.callback_ports.end());
    let (ports, vms) = (config.callback_ports.len(), files.len());
    if ports < vms {
        let limit = format!("has {ports} ports, and {vms} VMs need one each; widen the range");
        problems.push(Problem::new("callback_ports", format!("{first}-{last}"), limit));
    }
    let listen = config.callback_listen;
    let bridged = |file: &&VmFile| {
        let (at, acts) = (file.informant.ip(), file.info.mode == Mode::Act);
        acts && file.advertise.is_none() && !at.is_loopback()
    };
    let files = if listen.is_loopback() { files } else { &[] };
    let mut out_of_reach = files.iter().copied().filter(bridged);
    if let Some(file) = out_of_reach.next() {
        let more = match out_of_reach.count() {
            0 => String::new(),
            count => format!(" (and {count} more)"),
        };
        let limit = format!(
            "the guest of {}{more} at {} cannot call back there; set the host's address on that network",
            file.info.name.name, file.informant
        );
        problems.push(Problem::new("callback_listen", listen, limit));
    }
    problems
}

fn of_vm(program: &str, config: &Basics, room: Option<Resources>, file: &VmFile) -> Vec<Problem> {
    let mut problems = Vec::new();
    let (ip, port) = (file.informant.ip(), file.informant.port());
    if ip == config.callback_listen && config.callback_ports.contains(&port) {
        let limit = format!("lies within callback_ports of {program}, where it listens itself");
        problems.push(Problem::new("informant", file.informant, limit));
    }
    if file.informant == config.admin {
        let limit = format!("is `admin` of {program}, where it listens itself");
        problems.push(Problem::new("informant", file.informant, limit));
    }
    let bounds = file.info.bounds;
    if let Some(room) = room.filter(|room| room.covers(bounds.min) && !room.covers(bounds.max)) {
        let limit = format!("the node has {room}, so the VM never has its maximum");
        problems.push(Problem::new("max", bounds.max, limit));
    }
    if let Some(room) = room.filter(|room| !room.covers(bounds.min)) {
        let limit = format!("the node has {room}, so the VM never has its minimum");
        problems.push(Problem::new("min", bounds.min, limit));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::config::HostConfig;
    use expect_test::expect;
    use windlass_protocol::{Bytes, MilliCpu};
    use windlass_vm_files::text;

    #[test]
    fn each_misfit_is_named_with_what_to_do() {
        let config = "admin = \"127.0.0.1:10304\"\ncallback_ports = \"10310-10311\"";
        let files = [
            vm("a", "127.0.0.1:10310", 4, ""),
            vm("b", "192.168.122.31:10301", 8, ""),
            vm("c", "192.168.122.32:10301", 4, "mode = \"observe\"\n"),
            vm("d", "127.0.0.1:10304", 4, "advertise = \"10.9.9.9\"\n"),
            vm("e", "192.168.122.33:10301", 4, ""),
        ];
        expect![[r#"
            host.toml: node: the minima of all VM files come to 5 vCPU / 5GiB, and the node has 4 vCPU / 4GiB: the VM that comes last stays short; lower a `min`, or raise [node]
            host.toml: callback_ports = 10310-10311: has 2 ports, and 5 VMs need one each; widen the range
            host.toml: callback_listen = 127.0.0.1: the guest of b (and 1 more) at 192.168.122.31:10301 cannot call back there; set the host's address on that network
            a: informant = 127.0.0.1:10310: lies within callback_ports of host.toml, where it listens itself
            b: max = 8 vCPU / 4GiB: the node has 4 vCPU / 4GiB, so the VM never has its maximum
            d: informant = 127.0.0.1:10304: is `admin` of host.toml, where it listens itself
        "#]]
        .assert_eq(&said(config, &files));
    }

    #[test]
    fn files_that_fit_give_no_word() {
        let config = "callback_listen = \"192.168.122.1\"";
        let files = [vm("a", "127.0.0.1:10310", 4, ""), vm("b", "192.168.122.31:10301", 2, "")];
        assert_eq!(said(config, &files), "");
    }

    fn said(config: &str, files: &[VmFile]) -> String {
        let config = HostConfig::from_text(config).unwrap();
        let room = Resources::new(MilliCpu::from_cores(4), Bytes::from_gib(4));
        let found =
            misfits("host.toml", &config.basics, Some(room), &files.iter().collect::<Vec<_>>());
        let line = |(vm, problem): (Option<String>, Problem)| {
            format!("{}: {problem}\n", vm.as_deref().unwrap_or("host.toml"))
        };
        found.into_iter().map(line).collect()
    }

    fn vm(name: &str, informant: &str, max: u32, more: &str) -> VmFile {
        let text = format!(
            "qmp = \"/run/{name}.sock\"\ninformant = \"{informant}\"\n{more}[min]\ncpu = 1\n\
             memory = \"1GiB\"\n[max]\ncpu = {max}\nmemory = \"4GiB\"\n"
        );
        text::parse(name, &text).unwrap()
    }
}
