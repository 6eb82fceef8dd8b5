//! Every VM: how it stands, what its QEMU can do, whether its informant answers, what limits it.

use super::cgroup;
use super::files::Read;
use super::host::Seen;
use super::report::Check;
use crate::api::{VmEntry, VmFindings, VmState};
use crate::client::{Client, vm_path};
use crate::explain::instant;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use windlass_drivers_qemu::check::{Finding, Topic, Verdict};
use windlass_protocol::Resources;

const NEEDS: &str = "docs/host.md#what-a-vm-needs";

/// One VM, as files and the host know it.
#[derive(Debug, Default)]
pub(super) struct Vm<'a> {
    name: String,
    entry: Option<&'a VmEntry>,
    /// Its monitor and its maximum, as its file says.
    file: Option<(PathBuf, Resources)>,
}

/// Every VM that a file or the host knows, by name.
pub(super) fn of<'a>(files: &Read, seen: &'a Seen) -> Vec<Vm<'a>> {
    let mut vms: BTreeMap<String, Vm<'a>> = BTreeMap::new();
    for file in files.vms() {
        let name = file.info.name.name.clone();
        let vm = vms.entry(name).or_default();
        vm.file = Some((file.qmp.clone(), file.info.bounds.max));
    }
    for entry in &seen.vms {
        vms.entry(entry.name.name.clone()).or_default().entry = Some(entry);
    }
    vms.into_iter().map(|(name, vm)| Vm { name, ..vm }).collect()
}

// === impl Vm ===

impl Vm<'_> {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// What is said of it; of its hypervisor and its informant the host says it.
    pub(super) async fn checks(&self, client: Option<&Client>) -> Vec<Check> {
        let mut checks: Vec<Check> = self.entry.and_then(stands).into_iter().collect();
        if let Some((monitor, _)) = self.file.as_ref().filter(|(monitor, _)| !monitor.exists()) {
            let found = format!("{} is not there", monitor.display());
            checks.push(Check::limited(found, "Is the VM running, with this monitor?", NEEDS));
            return checks;
        }
        let managed = self.entry.is_some_and(|entry| entry.state == VmState::Managed);
        if let Some(client) = client.filter(|_| managed) {
            checks.extend(asked(client, &self.name).await);
        }
        checks.extend(self.file.as_ref().and_then(|(monitor, max)| limited(monitor, *max)));
        checks
    }
}

/// How it stands with the host, where that is not as usual.
fn stands(entry: &VmEntry) -> Option<Check> {
    let page = "docs/host.md#letting-go-and-uninstalling";
    let is = |what: &str, advice: &str| Some(Check::limited(what, advice, page));
    match (entry.state, entry.paused_until) {
        (VmState::Managed, None) | (VmState::Invalid, _) => None,
        (VmState::Managed, Some(until)) => is(
            &format!("paused until {}", instant(until)),
            "`windlass resume VM` has it follow its load again.",
        ),
        (VmState::Releasing, _) => {
            is("being released", "`windlass explain VM` says how far it came.")
        }
        (VmState::Released, _) => is("released", "`windlass resume VM` takes it back."),
        (VmState::Removed, _) => is("removed; it counts in the books until QEMU ends", ""),
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

fn finding(finding: &Finding) -> Check {
    let page = match finding.topic {
        Topic::Informant => "docs/troubleshooting.md#no-informant-in-the-guest",
        Topic::Monitor => "docs/troubleshooting.md#does-not-answer-it-serves-one-client-at-a-time",
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
fn limited(monitor: &Path, max: Resources) -> Option<Check> {
    let limits = cgroup::limits(Path::new("/"), monitor)?;
    Some(fits(&limits, max))
}

pub(super) fn fits(limits: &cgroup::Limits, max: Resources) -> Check {
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
        return Check::limited(found, advice, NEEDS);
    }
    Check::good(format!("no control group keeps QEMU (pid {pid}) from the VM's maximum, {max}"))
}
