//! Letting go of a VM, and watching it come to the size that was ordered.

use crate::api::{Done, Release, ReleaseState, Releasing};
use crate::client::{self, Client};
use crate::command::completions::of_vms;
use crate::explain::{short, state};
use crate::failure::Failure;
use crate::options::{self, HostOptions};
use crate::out::{self, Output};
use std::time::Duration;
use windlass_protocol::{Bytes, MilliCpu};

/// Between two looks at how far the release came.
const LOOK_EVERY: Duration = Duration::from_millis(300);

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without a size the VM keeps what it has. A size must be within the VM's min and max, the node and
what QEMU can do. The host accepts the order at once; then this command shows how far it came, until
the VM is let go (exit code 0). Where nothing moves for 10 minutes the host gives the size up, and
lets the VM go with what it has (exit code 1). Ctrl-C ends the watching, not the release (exit code
130). `windlass resume VM` takes the VM back.

Examples:
  windlass vm release db1
  windlass vm release db1 --cpu 2 --memory 1GiB")]
pub(super) struct Args {
    /// Which VM.
    #[arg(add = of_vms())]
    vm: String,
    /// vCPUs to let it go with.
    #[arg(long, value_name = "N", value_parser = options::cpu)]
    cpu: Option<MilliCpu>,
    /// Memory to let it go with: `1GiB`, `512MiB`.
    #[arg(long, value_name = "SIZE", value_parser = options::memory)]
    memory: Option<Bytes>,
    #[command(flatten)]
    host: HostOptions,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let path = client::vm_path("/v1/vm", &args.vm, "/release")?;
    let client = args.host.client()?;
    let body = Release { cpu: args.cpu, mem: args.memory };
    let output = args.host.format.output;
    let ended = client::run(async {
        let accepted: Done = client.post(&path, &body).await?;
        if output == Output::Text {
            out::text(&format!("{}\n", accepted.message))?;
        }
        tokio::select! {
            ended = watch(&client, &path, output) => ended,
            _ = tokio::signal::ctrl_c() => Err(Failure::Unwatched(format!(
                "no longer watched; the release of {0} goes on, and `windlass explain {0}` shows it",
                args.vm
            ))),
        }
    })?;
    let vm = short(&ended.vm);
    let has = ended.has.map_or("what it has".to_owned(), |has| has.to_string());
    if ended.state == ReleaseState::GivenUp {
        let why = ended.why.unwrap_or_else(|| "the host does not say why".to_owned());
        return Err(Failure::Refused(format!("given up: {why}; {vm} is let go with {has}")));
    }
    let message = format!(
        "{vm} is let go with {has}; it counts until it ends, or until `windlass resume {vm}`"
    );
    args.host.say(&Done { message, changed: true })
}

/// Shows how far the release came, until it is over.
async fn watch(client: &Client, path: &str, output: Output) -> Result<Releasing, Failure> {
    let mut shown = String::new();
    loop {
        let at: Releasing = client.get(path).await?;
        match at.state {
            ReleaseState::UnderWay => {}
            ReleaseState::Done | ReleaseState::GivenUp => return Ok(at),
        }
        let line = progress(&at);
        if output == Output::Text && line != shown {
            out::text(&line)?;
            shown = line;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

fn progress(at: &Releasing) -> String {
    let has = at.has.map_or("was not seen yet".to_owned(), |has| format!("has {has}"));
    let wanted = at.wanted.map_or(String::new(), |wanted| format!(" of {wanted}"));
    let state = at.status.as_ref().map_or(String::new(), |vm| format!(": {}", state(vm, at.at)));
    format!("{} {has}{wanted}{state}\n", short(&at.vm))
}
