//! Which VMs a host knows, and how each stands.

use crate::api::{VmEntry, VmState};
use crate::explain::{frozen, instant, ordered, short};
use crate::failure::Failure;
use crate::options::HostOptions;
use comfy_table::Table;
use comfy_table::presets::NOTHING;
use windlass_protocol::status::{HostStatus, OrderKind, Ordered};

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
        if let Some(order) = entry.ordered.as_ref().filter(|order| stands(entry, order)) {
            text.push_str(&format!("{}: {}\n", short(&entry.name), ordered(order)));
        }
        for problem in &entry.problems {
            text.push_str(&format!("! {}: {problem}\n", short(&entry.name)));
        }
    }
    text
}

/// Whether an order is of interest: a pause that has run out is not.
fn stands(entry: &VmEntry, order: &Ordered) -> bool {
    order.what != OrderKind::Pause || entry.paused_until.is_some()
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

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_protocol::{Moment, VmName};

    #[test]
    fn who_paused_a_vm_is_said_while_the_pause_lasts() {
        let at = Moment::from_millis(1_795_255_205_000);
        let listed = |what, paused_until| {
            let entry = VmEntry {
                name: VmName::on_host("db1"),
                state: VmState::Managed,
                file: None,
                monitor: None,
                size: None,
                paused_until,
                ordered: Some(Ordered { what, at, by: None }),
                problems: Vec::new(),
            };
            table(&[entry])
        };
        assert!(listed(OrderKind::Pause, Some(at)).contains("\ndb1: paused at 20"));
        assert!(!listed(OrderKind::Pause, None).contains("db1: "));
        assert!(listed(OrderKind::Release, None).contains("\ndb1: released at 20"));
    }
}
