//! `windlass vm`: which VMs a host has, and changes to that.
//!
//! `add` and `remove` write and delete the file as the calling user, after the host has
//! checked what it says; everything else is asked of the host.

mod add;
mod check;
mod list;
mod release;

use crate::command::completions::of_vms;
use crate::failure::Failure;
use crate::options::HostOptions;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  windlass vm add db1 --file db1.toml
  windlass vm add db1 --qmp /run/vms/db1/qmp.sock --informant 127.0.0.2:10301 \\
      --min 1/512MiB --max 4/4GiB
  windlass vm list
  windlass vm check db1
  windlass vm release db1 --cpu 2 --memory 1GiB
  windlass vm remove db1")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Let Windlass manage a VM: writes its file, after the host has checked it.
    Add(add::Args),
    /// List the VMs that the host knows, and what is wrong with their files.
    List(list::Args),
    /// Say what can and cannot scale in a VM, and why.
    Check(check::Args),
    /// Give a VM a size and let go of it; it stays in the books until it ends.
    Release(release::Args),
    /// Stop managing a VM: deletes its file; it stays in the books until it ends.
    Remove(RemoveArgs),
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  windlass vm remove db1")]
struct RemoveArgs {
    /// Which VM.
    #[arg(add = of_vms())]
    vm: String,
    #[command(flatten)]
    host: HostOptions,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    match &args.command {
        Command::Add(args) => add::run(args),
        Command::List(args) => list::run(args),
        Command::Check(args) => check::run(args),
        Command::Release(args) => release::run(args),
        Command::Remove(args) => add::remove(&args.vm, &args.host),
    }
}
