//! What can and cannot scale in a VM, and why.

use crate::api::VmFindings;
use crate::args::{Connection, Format};
use crate::client::{self, Client};
use crate::explain::{instant, short};
use crate::failure::Failure;
use crate::out::{self, Output};
use std::path::PathBuf;
use windlass_drivers_qemu::Qemu;
use windlass_drivers_qemu::check::{Finding, Verdict};
use windlass_protocol::status::{SessionState, VmStatus};

/// Options of `windlass vm check`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Of a VM that the host knows it tells what the hypervisor said when the host attached, or why it
cannot attach, and whether the informant answers. With --qmp the monitor is asked here and now, and no host is needed; that
works only while nobody else has the monitor, since it serves one client at a time.

good: as it should be; limited: works, within limits; blocked: does not scale. The exit code is 1
if anything is blocked.

Examples:
  windlass vm check db1
  windlass vm check --qmp /run/vms/db1/qmp.sock
  windlass vm check db1 --output json | jq '.findings[] | select(.verdict != \"good\")'")]
pub(super) struct Args {
    /// Which VM of the host.
    #[arg(required_unless_present = "qmp")]
    vm: Option<String>,
    /// Ask this monitor, of a VM that nobody manages.
    #[arg(long, value_name = "PATH", conflicts_with = "vm")]
    qmp: Option<PathBuf>,
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    format: Format,
}

/// Says what can scale.
pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let (findings, text) = match (&args.qmp, &args.vm) {
        (Some(qmp), _) => asked(qmp.clone(), args.format.output)?,
        (None, Some(vm)) => told(vm, args)?,
        (None, None) => return Err(Failure::Usage("say a VM, or --qmp".to_owned())),
    };
    out::text(&text)?;
    let blocked = findings.iter().filter(|finding| finding.verdict == Verdict::Blocked).count();
    match blocked {
        0 => Ok(()),
        count => {
            Err(Failure::Failed(format!("{count} of {} findings block scaling", findings.len())))
        }
    }
}

fn asked(qmp: PathBuf, output: Output) -> Result<(Vec<Finding>, String), Failure> {
    let qemu = Qemu { qmp, vcpu_removal: false };
    let findings = client::run(async { Ok(qemu.check().await) })?;
    let text = match output {
        Output::Text => lines(&findings),
        Output::Json => json(&findings)?,
    };
    Ok((findings, text))
}

fn told(vm: &str, args: &Args) -> Result<(Vec<Finding>, String), Failure> {
    let path = client::vm_path("/v1/vm", vm, "/findings")?;
    let client = Client::to(&args.connection.socket)?;
    let told: VmFindings = client::run(client.get(&path))?;
    let text = match args.format.output {
        Output::Json => json(&told)?,
        Output::Text => {
            let head = format!("{}, as it was found at {}:\n", short(&told.vm), instant(told.at));
            format!("{head}{}{}\n", lines(&told.findings), informant(told.status.as_ref()))
        }
    };
    Ok((told.findings, text))
}

fn lines(findings: &[Finding]) -> String {
    let line = |finding: &Finding| {
        format!("{:<8} {:<12} {}\n", finding.verdict, finding.topic, finding.text)
    };
    findings.iter().map(line).collect()
}

/// What the guest's side looks like at this moment.
fn informant(status: Option<&VmStatus>) -> String {
    let (verdict, text) = match status.map(|status| status.session) {
        None => {
            ("limited", "Not asked: the host is not attached to the VM, or does not manage it.")
        }
        Some(SessionState::Active) => ("good", "It answers, and follows this host."),
        Some(SessionState::Registered) => {
            ("limited", "It answers, and has not said yet that it follows this host.")
        }
        Some(SessionState::Suspended) => ("limited", "It answers, and follows another agent."),
        Some(SessionState::Absent) => (
            "limited",
            "It does not answer: no memory is taken from the VM. Is windlass-informant running in \
             the guest, and reached at the file's `informant`?",
        ),
    };
    format!("{verdict:<8} {:<12} {text}", "informant")
}

fn json<T: serde::Serialize>(value: &T) -> Result<String, Failure> {
    serde_json::to_string_pretty(value)
        .map(|text| text + "\n")
        .map_err(|error| Failure::Failed(format!("cannot write the answer as JSON: {error}")))
}
