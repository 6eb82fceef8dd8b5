//! What can and cannot scale in a VM, and why.

use crate::api::VmFindings;
use crate::client::{self, vm_path};
use crate::command::completions::of_vms;
use crate::explain::{instant, short};
use crate::failure::Failure;
use crate::options::HostOptions;
use std::path::PathBuf;
use windlass_drivers_qemu::Qemu;
use windlass_drivers_qemu::check::{Finding, Verdict};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Of a VM that the host knows it tells what QEMU said just before the host attached, and when that was;
or why the host cannot attach, and when it last tried. The informant is asked now. With --qmp the
monitor is asked now, and no host is needed; that works only while no other client has the monitor,
since it serves one at a time.

good: as it should be; limited: works, within limits; blocked: does not scale. The exit code is 1
if anything is blocked.

Examples:
  windlass vm check db1
  windlass vm check --qmp /run/vms/db1/qmp.sock
  windlass vm check db1 --output json | jq '.findings[] | select(.verdict != \"good\")'")]
pub(super) struct Args {
    /// Which VM of the host.
    #[arg(required_unless_present = "qmp", add = of_vms())]
    vm: Option<String>,
    /// Ask this monitor, of a VM that no host manages.
    #[arg(long, value_name = "PATH", conflicts_with = "vm")]
    qmp: Option<PathBuf>,
    #[command(flatten)]
    host: HostOptions,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let findings = match (&args.qmp, &args.vm) {
        (Some(qmp), _) => {
            let qemu =
                Qemu { qmp: qmp.clone(), vcpu_removal: false, cpu_limit: None, limits: None };
            let findings = client::run(async { Ok(qemu.check().await) })?;
            args.host.answer(&findings, |findings| lines(findings))?;
            findings
        }
        (None, Some(vm)) => {
            let told: VmFindings = args.host.get(&vm_path("/v1/vm", vm, "/findings")?)?;
            let now = |told: &VmFindings| lines(told.informant.as_slice());
            args.host.answer(&told, |t| format!("{}{}{}", head(t), lines(&t.findings), now(t)))?;
            told.findings
        }
        (None, None) => return Err(Failure::Usage("say a VM, or --qmp".to_owned())),
    };
    let blocked = findings.iter().filter(|finding| finding.verdict == Verdict::Blocked).count();
    match blocked {
        0 => Ok(()),
        count => {
            Err(Failure::Failed(format!("{count} of {} findings block scaling", findings.len())))
        }
    }
}

/// What the findings are, and from when.
fn head(told: &VmFindings) -> String {
    let (vm, at) = (short(&told.vm), instant(told.at));
    if told.findings.iter().all(Finding::is_unreached) {
        format!("{vm}: its monitor was last tried at {at}\n")
    } else {
        format!(
            "{vm}: what QEMU said at {at}, before the host attached; the informant is asked now\n"
        )
    }
}

fn lines(findings: &[Finding]) -> String {
    let line = |finding: &Finding| {
        format!("{:<8} {:<12} {}\n", finding.verdict, finding.topic, finding.text)
    };
    findings.iter().map(line).collect()
}
