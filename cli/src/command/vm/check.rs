//! What can and cannot scale in a VM, and why.

use crate::api::VmFindings;
use crate::client::{self, Client};
use crate::explain::{instant, short};
use crate::failure::Failure;
use crate::names::of_vms;
use crate::options::{Connection, Format};
use crate::out::{self, Output};
use std::path::PathBuf;
use windlass_drivers_qemu::Qemu;
use windlass_drivers_qemu::check::{Finding, Verdict};

/// Options of `windlass vm check`.
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
            let now = told.informant.as_slice();
            format!("{}{}{}", head(&told), lines(&told.findings), lines(now))
        }
    };
    Ok((told.findings, text))
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

fn json<T: serde::Serialize>(value: &T) -> Result<String, Failure> {
    serde_json::to_string_pretty(value)
        .map(|text| text + "\n")
        .map_err(|error| Failure::Failed(format!("cannot write the answer as JSON: {error}")))
}
