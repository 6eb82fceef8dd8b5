//! Which VMs a host knows, and how each stands.

use crate::api::{VmEntry, VmState};
use crate::explain::{frozen, instant, ordered, short};
use crate::failure::Failure;
use crate::options::HostOptions;
use comfy_table::Table;
use comfy_table::presets::NOTHING;
use windlass_protocol::status::HostStatus;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
States:
  managed         it follows its load, or is watched
  invalid         its file was never valid; nothing is done
  being released  a person lets go of it, and it is on its way to the size for that
  released        a person let go of it; it counts in the books until it ends
  removed         its file is gone; it counts in the books until it ends

Examples:
  windlass vm list
  windlass vm list --output json | jq '.[] | select(.problems != [])'")]
pub(super) struct Args {
    #[command(flatten)]
    host: HostOptions,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let entries: Vec<VmEntry> = args.host.get("/v1/vms")?;
    let host: HostStatus = args.host.get("/v1/state")?;
    let frozen = frozen(&host).map_or(String::new(), |line| format!("{line}\n"));
    args.host.answer(&entries, |entries| format!("{frozen}{}", table(entries)))
}

fn table(entries: &[VmEntry]) -> String {
    if entries.is_empty() {
        return "No VM is known; `windlass vm add` adds one.\n".to_owned();
    }
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(["VM", "STATE", "SIZE", "PAUSED UNTIL", "MONITOR"]);
    for entry in entries {
        table.add_row([
            short(&entry.name),
            state(entry.state).to_owned(),
            entry.size.map_or("–".to_owned(), |size| size.to_string()),
            entry.paused_until.map_or("–".to_owned(), instant),
            entry.monitor.as_ref().map_or("–".to_owned(), |path| path.display().to_string()),
        ]);
    }
    let mut text = format!("{}\n", table.trim_fmt());
    for entry in entries {
        if let Some(order) = &entry.ordered {
            text.push_str(&format!("{}: {}\n", short(&entry.name), ordered(order)));
        }
        for problem in &entry.problems {
            text.push_str(&format!("! {}: {problem}\n", short(&entry.name)));
        }
    }
    text
}

fn state(state: VmState) -> &'static str {
    match state {
        VmState::Managed => "managed",
        VmState::Invalid => "invalid",
        VmState::Releasing => "being released",
        VmState::Released => "released",
        VmState::Removed => "removed",
    }
}
