//! Writing and deleting VM files, as the calling user.

use crate::api::{Check, Checked, Done, HostFacts, VmEntry, VmState};
use crate::client;
use crate::failure::Failure;
use crate::options::HostOptions;
use crate::out;
use crate::problem::Report;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use windlass_kit::program::config_text;
use windlass_protocol::VmName;
use windlass_protocol::status::HostStatus;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The VM is a running QEMU. It needs a monitor (QMP) of its own for Windlass, a second `-qmp` beside
libvirt's or Proxmox's, and windlass-informant inside.

With --file the file is checked by the host and copied to its folder as it is. Otherwise one is
made of the options; edit it later as you like, the host sees the change.

Examples:
  windlass vm add db1 --file db1.toml
  windlass vm add db1 --qmp /run/vms/db1/qmp.sock --informant 127.0.0.2:10301 \\
      --min 1/512MiB --max 4/4GiB
  windlass vm add db1 --file db1.toml --replace")]
pub(super) struct Args {
    /// The name that the VM is to have.
    vm: String,
    /// Copy this VM file.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["qmp", "informant", "min", "max"])]
    file: Option<PathBuf>,
    /// The path of its monitor.
    #[arg(long, value_name = "PATH", required_unless_present = "file")]
    qmp: Option<PathBuf>,
    /// Where its informant is reached from here.
    #[arg(long, value_name = "ADDRESS", required_unless_present = "file", value_parser = address)]
    informant: Option<SocketAddr>,
    /// Its smallest size: vCPUs/memory.
    #[arg(long, value_name = "N/SIZE", required_unless_present = "file")]
    min: Option<String>,
    /// Its largest size: vCPUs/memory.
    #[arg(long, value_name = "N/SIZE", required_unless_present = "file")]
    max: Option<String>,
    /// Only watch: decide and record, touch nothing.
    #[arg(long, conflicts_with = "file")]
    observe: bool,
    /// Replace a file that is there.
    #[arg(long)]
    replace: bool,
    #[command(flatten)]
    host: HostOptions,
}

fn address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse().map_err(|_| "write an IP address and a port, as 127.0.0.2:10301")
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let text = match &args.file {
        Some(file) => config_text(file)?,
        None => made(args)?,
    };
    let client = args.host.client()?;
    let check = Check { name: args.vm.clone(), text: text.clone() };
    let checked: Checked = client::run(client.post("/v1/check", &check))?;
    let subject = checked.path.display().to_string();
    if !checked.problems.is_empty() {
        let problems = checked.problems;
        let meanwhile = "nothing was written".to_owned();
        return Err(Failure::Invalid(Report { subject, problems, meanwhile }.to_string()));
    }
    for warning in &checked.warnings {
        out::aside(&format!("windlass: warning: {warning}"));
    }
    write(&checked.path, &text, args.replace)?;
    let follows = match checked.released {
        true => "once the VM is taken back",
        false => "within a few seconds",
    };
    let message = format!("wrote {subject}; the host follows {follows}");
    args.host.say(&Done { message, changed: true })
}

pub(super) fn remove(vm: &str, host: &HostOptions) -> Result<(), Failure> {
    // For the name's sake: what follows makes a path of it.
    client::vm_path("", vm, "")?;
    let client = host.client()?;
    let name = vm.strip_prefix("default/").unwrap_or(vm);
    let (path, state, counts) = client::run(async {
        let facts: HostFacts = client.get("/v1/host").await?;
        let entries: Vec<VmEntry> = client.get("/v1/vms").await?;
        let state: HostStatus = client.get("/v1/state").await?;
        let known = VmName::on_host(name);
        let standing = entries.iter().find(|entry| entry.name == known).map(|entry| entry.state);
        let books = state.node.map_or(Vec::new(), |node| node.vms);
        let counts = books.iter().any(|booked| booked.name == known);
        Ok((facts.vms_dir.join(format!("{name}.toml")), standing, counts))
    })?;
    if let Err(error) = fs::remove_file(&path) {
        return Err(if error.kind() != ErrorKind::NotFound {
            failed(&path, &error)
        } else if state == Some(VmState::Removed) {
            let why = format!("{name} was removed already; it counts until its hypervisor ends");
            Failure::Missing(why)
        } else {
            Failure::Missing(format!("there is no VM {name}: no file {}", path.display()))
        });
    }
    let after = match state {
        _ if counts => "is no longer managed, and stays in the books until it ends",
        None | Some(VmState::Invalid) => "was not managed",
        Some(VmState::Managed | VmState::Releasing | VmState::Released | VmState::Removed) => {
            "is no longer managed; it was not there, and does not count"
        }
    };
    let message = format!("removed {}; {name} {after}", path.display());
    host.say(&Done { message, changed: true })
}

/// A VM file of the options; what is left out takes its default.
fn made(args: &Args) -> Result<String, Failure> {
    let missing =
        || Failure::Usage("say --file, or --qmp, --informant, --min and --max".to_owned());
    let qmp = args.qmp.as_ref().ok_or_else(missing)?;
    let qmp = fs::canonicalize(qmp).unwrap_or_else(|_| qmp.clone());
    let informant = args.informant.ok_or_else(missing)?;
    let mode = if args.observe { "mode = \"observe\"\n" } else { "" };
    let min = table("min", args.min.as_ref().ok_or_else(missing)?)?;
    let max = table("max", args.max.as_ref().ok_or_else(missing)?)?;
    let qmp = quoted(&qmp.display().to_string());
    Ok(format!("qmp = {qmp}\ninformant = \"{informant}\"\n{mode}\n{min}\n{max}"))
}

fn table(name: &str, size: &str) -> Result<String, Failure> {
    let (cpu, memory) = size.split_once('/').ok_or_else(|| {
        Failure::Usage(format!("--{name} {size}: write vCPUs/memory, as in 1/512MiB"))
    })?;
    let cpu: f64 =
        cpu.parse().ok().filter(|cpu: &f64| cpu.is_finite()).ok_or_else(|| {
            Failure::Usage(format!("--{name} {size}: {cpu} is no number of vCPUs"))
        })?;
    let memory = quoted(memory);
    Ok(format!("[{name}]\ncpu = {cpu}\nmemory = {memory}\n"))
}

/// As a TOML text, whose escapes are those of JSON.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Beside and then renamed, so that the host never reads half a file.
fn write(path: &Path, text: &str, replace: bool) -> Result<(), Failure> {
    if !replace && path.exists() {
        return Err(Failure::CannotCreate(format!(
            "{} is there already; --replace replaces it",
            path.display()
        )));
    }
    // Before the first VM of a host, its folder may not be there.
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
    }
    let beside = path.with_extension("toml.new");
    let written = File::create(&beside)
        .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&beside, path));
    written.map_err(|error| failed(path, &error))
}

fn failed(path: &Path, error: &std::io::Error) -> Failure {
    let path = path.display();
    if error.kind() == ErrorKind::PermissionDenied {
        Failure::Forbidden(format!("{path}: this user may not write there"))
    } else if error.kind() == ErrorKind::NotFound {
        Failure::Missing(format!("{path}: {error}"))
    } else {
        Failure::CannotCreate(format!("{path}: {error}"))
    }
}
