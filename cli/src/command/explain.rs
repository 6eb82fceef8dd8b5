//! `windlass explain`: why a VM has the size that it has.

use crate::client::vm_path;
use crate::command::cluster;
use crate::command::completions::of_vms_anywhere;
use crate::explain::{Explained, page, summary, wrap};
use crate::failure::Failure;
use crate::options::HostOptions;
use crate::out;
use crate::server::ServerOptions;
use std::io::IsTerminal;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
First the VM at this moment, in a sentence; then why it does not have more, why it does not have
less, and the last changes of its size. What repeats is one line.

With --verbose each decision is one sentence: what the guest reported, what that called for, what
the books granted, what the guest agreed to, what was done, what became of it. Where there was less
than was asked for, the books say who has the room.

With --server the plugin of a cluster says it: whether the VM follows its load and why not, by the books and by
what the VM's agent told last. The caller needs the right to get pods in the namespace of the VM.

Examples:
  windlass explain db1
  windlass explain shop/db1 --server https://127.0.0.1:10296 --ca ca.crt --token token
  windlass explain db1 --verbose --minutes 5
  windlass explain db1 --output json | jq '.decisions[-1].reason'")]
pub(crate) struct Args {
    /// Which VM.
    #[arg(add = of_vms_anywhere())]
    vm: String,
    /// How far to look back; a host keeps an hour.
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=60))]
    minutes: u64,
    /// Every decision of that time in full.
    #[arg(long, short)]
    verbose: bool,
    #[command(flatten)]
    host: HostOptions,
    #[command(flatten)]
    server: ServerOptions,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    if let Some(url) = &args.server.server {
        let views = args.server.one(url, &args.vm)?;
        return out::answer(args.host.format.output, &views, |views| {
            fitted(&cluster::sentences(views))
        });
    }
    let path = vm_path("/v1/explain", &args.vm, &format!("?minutes={}", args.minutes))?;
    let words = if args.verbose { page } else { summary };
    args.host.answer(&args.host.get(&path)?, |explained: &Explained| fitted(&words(explained)))
}

/// A terminal gets lines that fit; a pipe gets each sentence on a line of its own.
fn fitted(text: &str) -> String {
    if !std::io::stdout().is_terminal() {
        return text.to_owned();
    }
    let columns = crossterm::terminal::size().map_or(0, |(columns, _)| usize::from(columns));
    if columns == 0 { text.to_owned() } else { wrap(text, columns) }
}
