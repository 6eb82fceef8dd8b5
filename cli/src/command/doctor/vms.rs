//! Every VM: how it stands, what its QEMU can do, whether its informant answers, what limits it.
//!
//! What can take long is asked of several VMs side by side, so that silent ones hold up no others.

use super::cgroup::{Limits, Servers};
use super::files::Read;
use super::host::Seen;
use super::programs::get;
use super::report::Check;
use crate::api::{VmEntry, VmFindings, VmState};
use crate::client::{Client, vm_path};
use crate::explain::instant;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use tokio::task::JoinSet;
use windlass_drivers_qemu::check::{Finding, Topic, Verdict};
use windlass_protocol::Resources;
use windlass_protocol::vm_file::VmFile;

const NEEDS: &str = "docs/host.md#what-a-vm-needs";
const NO_INFORMANT: &str = "docs/troubleshooting.md#no-informant-in-the-guest";

/// VMs that are asked about at a time.
const AT_A_TIME: usize = 16;

/// One VM, as files and the host know it.
#[derive(Debug, Default)]
struct Vm<'a> {
    entry: Option<&'a VmEntry>,
    file: Option<&'a VmFile>,
}

/// What has to be asked about a VM.
enum Question {
    /// The host, which asks its hypervisor and its informant.
    Host(Client, String),
    /// Its informant, since no host knows it.
    Informant(SocketAddr),
}

/// What is said of every VM that a file or the host knows, by name.
pub(super) async fn checks(
    files: &[Read],
    seen: &Seen,
    client: Option<&Client>,
) -> BTreeMap<String, Vec<Check>> {
    let mut vms: BTreeMap<String, Vm<'_>> = BTreeMap::new();
    for file in files.iter().flat_map(Read::vms) {
        vms.entry(file.info.name.name.clone()).or_default().file = Some(file);
    }
    for entry in &seen.vms {
        vms.entry(entry.name.name.clone()).or_default().entry = Some(entry);
    }
    let mut all: BTreeMap<String, Vec<Check>> =
        vms.iter().map(|(name, vm)| (name.clone(), vm.stands())).collect();
    let questions = vms.iter().filter_map(|(name, vm)| {
        let question = vm.question(name, client.filter(|_| seen.facts.is_some()))?;
        Some((name.clone(), question))
    });
    for (name, answer) in side_by_side(questions.collect()).await {
        all.entry(name).or_default().extend(answer);
    }
    let of_host = seen.facts.as_ref().map(|facts| facts.state_dir.as_path());
    let state_dirs = files.iter().filter_map(Read::state_dir).chain(of_host);
    let servers = Servers::find(Path::new("/"), state_dirs);
    let states = seen.state.iter().flat_map(|state| &state.vms);
    let sizes: BTreeMap<&str, _> =
        states.map(|state| (state.name.name.as_str(), state.seen)).collect();
    for (name, vm) in &vms {
        let Some(file) = vm.file else { continue };
        let limits = servers.limits(&file.qmp, sizes.get(name.as_str()).copied().flatten());
        let fits = limits.map(|limits| fits(&limits, file.info.bounds.max));
        all.entry(name.clone()).or_default().extend(fits);
    }
    all
}

/// The answers to all questions, of which a few are under way at a time.
async fn side_by_side(questions: Vec<(String, Question)>) -> Vec<(String, Vec<Check>)> {
    let mut waiting = questions.into_iter();
    let (mut under_way, mut answers) = (JoinSet::new(), Vec::new());
    loop {
        while under_way.len() < AT_A_TIME
            && let Some((name, question)) = waiting.next()
        {
            under_way.spawn(async move { (name, question.answer().await) });
        }
        let Some(answer) = under_way.join_next().await else { return answers };
        answers.extend(answer);
    }
}

// === impl Vm ===

impl Vm<'_> {
    /// How it stands with the host, and whether its monitor is there.
    fn stands(&self) -> Vec<Check> {
        let gone = self.file.filter(|file| !file.qmp.exists()).map(|file| {
            let found = format!("{} is not there", file.qmp.display());
            Check::limited(found, "Is the VM running, with this monitor?", NEEDS)
        });
        self.entry.and_then(stands).into_iter().chain(gone).collect()
    }

    /// What is to be asked about it, while its monitor is there; a host is asked that manages it.
    fn question(&self, name: &str, host: Option<&Client>) -> Option<Question> {
        if self.file.is_some_and(|file| !file.qmp.exists()) {
            return None;
        }
        match host {
            Some(host) => {
                let managed = self.entry.is_some_and(|entry| entry.state == VmState::Managed);
                managed.then(|| Question::Host(host.clone(), name.to_owned()))
            }
            None => self.file.map(|file| Question::Informant(file.informant)),
        }
    }
}

// === impl Question ===

impl Question {
    async fn answer(self) -> Vec<Check> {
        match self {
            Self::Host(host, name) => asked(&host, &name).await,
            Self::Informant(at) => vec![informant(at).await],
        }
    }
}

/// Whether an informant answers.
async fn informant(at: SocketAddr) -> Check {
    let advice =
        "Is windlass-informant running in the guest, and reached at the file's `informant`?";
    match get(at, "/metrics").await {
        Ok((200, _)) => Check::good(format!("informant: It answers at {at}.")),
        Ok((status, _)) => {
            let found = format!("informant: at {at} there are no figures (status {status})");
            Check::limited(found, advice, NO_INFORMANT)
        }
        Err(error) => {
            let found = format!("informant: it does not answer at {at}: {error}");
            Check::limited(found, advice, NO_INFORMANT)
        }
    }
}

const COUNTS: &str = "it counts in the books until QEMU ends";

/// How it stands with the host, where that is not as usual. What is wrong in a file, its section says.
fn stands(entry: &VmEntry) -> Option<Check> {
    let page = "docs/host.md#letting-go-and-uninstalling";
    let is = |what: &str, advice: &str| Some(Check::limited(what, advice, page));
    match (entry.state, entry.paused_until) {
        (VmState::Managed, None) => None,
        (VmState::Invalid, _) if entry.monitor.is_none() => None,
        (VmState::Invalid, _) => is(&format!("its file is invalid; {COUNTS}"), ""),
        (VmState::Managed, Some(until)) => is(
            &format!("paused until {}", instant(until)),
            "`windlass resume VM` has it follow its load again.",
        ),
        (VmState::Releasing, _) => {
            is("being released", "`windlass explain VM` says how far it came.")
        }
        (VmState::Released, _) => is("released", "`windlass resume VM` takes it back."),
        (VmState::Removed, _) => is(&format!("removed; {COUNTS}"), ""),
    }
}

async fn asked(client: &Client, name: &str) -> Vec<Check> {
    let asked = async { client.get::<VmFindings>(&vm_path("/v1/vm", name, "/findings")?).await };
    match asked.await {
        Ok(told) => told.findings.iter().chain(&told.informant).map(finding).collect(),
        Err(failure) => {
            let advice = "`windlass vm check VM` asks again.";
            vec![Check::limited(
                failure.to_string(),
                advice,
                "docs/troubleshooting.md#the-vm-does-not-appear-in-windlass-top",
            )]
        }
    }
}

pub(super) fn finding(finding: &Finding) -> Check {
    let page = match finding.topic {
        Topic::Informant => NO_INFORMANT,
        Topic::Monitor if finding.stopped => "docs/troubleshooting.md#one-qemu-is-stopped",
        Topic::Monitor => "docs/troubleshooting.md#does-not-answer-it-serves-one-client-at-a-time",
        Topic::Limit => "docs/host.md#the-hosts-limit-on-cpu",
        Topic::Version
        | Topic::Accelerator
        | Topic::Cpu
        | Topic::Memory
        | Topic::Hugepages
        | Topic::Vfio
        | Topic::Balloon => NEEDS,
    };
    let found = format!("{}: {}", finding.topic, finding.text);
    match finding.verdict {
        Verdict::Good => Check::good(found),
        Verdict::Limited => Check::limited(found, "", page),
        Verdict::Blocked => Check::failed(found, "", page),
    }
}

/// Whether QEMU's control group lets the VM have its maximum.
pub(super) fn fits(limits: &Limits, max: Resources) -> Check {
    let pid = limits.pid;
    let advice = "Raise the limit of its slice or scope above `max`, or lower `max`.";
    if let Some(memory) = limits.memory.filter(|memory| *memory <= max.mem) {
        let found = format!(
            "the control group of QEMU (pid {pid}) ends at {memory}, and the VM may grow to {}: the \
             kernel would kill QEMU",
            max.mem
        );
        return Check::failed(found, advice, NEEDS);
    }
    if let Some(cpu) = limits.cpu.filter(|cpu| *cpu < max.cpu) {
        let found = format!(
            "the control group of QEMU (pid {pid}) gives it {cpu} CPU, and the VM may grow to {} vCPU",
            max.cpu
        );
        let unsure = " If it is the limit of Windlass, which follows the VM, `windlass doctor` knows \
                      that as root.";
        let advice = if limits.is_unsure { &format!("{advice}{unsure}") } else { advice };
        return Check::limited(found, advice, NEEDS);
    }
    Check::good(format!("no control group keeps QEMU (pid {pid}) from the VM's maximum, {max}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::doctor::programs::WITHIN;
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::time::Instant;

    #[tokio::test]
    async fn silent_informants_hold_up_no_others() {
        let listener = || TcpListener::bind("127.0.0.1:0").unwrap();
        // Each takes a connection and says nothing.
        let silent: Vec<TcpListener> = (0..AT_A_TIME - 1).map(|_| listener()).collect();
        let speaks = listener();
        let at = |listener: &TcpListener| Question::Informant(listener.local_addr().unwrap());
        let mut questions: Vec<(String, Question)> =
            silent.iter().map(|listener| ("silent".to_owned(), at(listener))).collect();
        questions.push(("speaks".to_owned(), at(&speaks)));
        let serve = std::thread::spawn(move || {
            let (mut stream, _) = speaks.accept().unwrap();
            assert!(stream.read(&mut [0; 1024]).unwrap() > 0);
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
        });
        let began = Instant::now();
        let answers = side_by_side(questions).await;
        serve.join().unwrap();
        assert!(began.elapsed() < 2 * WITHIN, "{:?}", began.elapsed());
        assert_eq!(answers.len(), AT_A_TIME);
        let is_good = |name: &str| {
            let of = answers.iter().filter(|(of, _)| of == name);
            of.flat_map(|(_, checks)| checks).all(Check::is_good)
        };
        assert!(is_good("speaks") && !is_good("silent"));
    }
}
