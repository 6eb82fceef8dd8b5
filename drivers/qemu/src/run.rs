//! Whether QEMU runs the guest, and whether it is about to hand it over.
//!
//! QEMU has a run state, and beside it a migration, which is how it saves to a file too: for most
//! of that the guest runs. What is not certain to be over counts as under way: QEMU refuses
//! devices meanwhile, and what it did take would be missing at the other end.

use crate::link::{CallError, read, unless_refused};
use crate::wire::{QmpError, Returned};
use serde::Deserialize;
use windlass_protocol::RunState;

/// Every QEMU names both; a stand-in that speaks like one need not.
#[derive(Deserialize)]
struct Status {
    status: Option<String>,
}

/// The questions that tell the run state.
pub(crate) const STATE: [&str; 2] = ["query-status", "query-migrate"];

/// Reads the answers to [`STATE`].
pub(crate) fn read_state(
    [status, migration]: [Result<Returned, QmpError>; 2],
) -> Result<RunState, CallError> {
    let state = run_state(said(STATE[0], status)?.as_deref());
    if state == RunState::Running && is_migrating(said(STATE[1], migration)?.as_deref()) {
        return Ok(RunState::Migrating);
    }
    Ok(state)
}

fn said(
    command: &'static str,
    answer: Result<Returned, QmpError>,
) -> Result<Option<String>, CallError> {
    Ok(unless_refused(read::<Status>(command, answer))?.and_then(|answer| answer.status))
}

/// `RunState` of QEMU's `run-state.json`.
fn run_state(status: Option<&str>) -> RunState {
    match status {
        None | Some("running") => RunState::Running,
        // `prelaunch`: started with `-S`, and not let go yet.
        Some("paused" | "prelaunch" | "debug") => RunState::Paused,
        Some(
            "inmigrate" | "postmigrate" | "finish-migrate" | "save-vm" | "restore-vm" | "colo",
        ) => RunState::Saving,
        Some("suspended") => RunState::Suspended,
        Some("shutdown") => RunState::ShutDown,
        Some("internal-error" | "io-error" | "guest-panicked" | "watchdog") => RunState::Failed,
        Some(_) => RunState::Unknown,
    }
}

/// `MigrationStatus` of QEMU's `migration.json`. A migration that is over keeps its status.
fn is_migrating(status: Option<&str>) -> bool {
    !matches!(status, None | Some("none" | "completed" | "cancelled" | "failed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_vm_that_qemu_runs_is_running() {
        for (status, state) in [
            ("running", RunState::Running),
            ("paused", RunState::Paused),
            ("prelaunch", RunState::Paused),
            ("debug", RunState::Paused),
            ("inmigrate", RunState::Saving),
            ("postmigrate", RunState::Saving),
            ("finish-migrate", RunState::Saving),
            ("save-vm", RunState::Saving),
            ("restore-vm", RunState::Saving),
            ("colo", RunState::Saving),
            ("suspended", RunState::Suspended),
            ("shutdown", RunState::ShutDown),
            ("internal-error", RunState::Failed),
            ("io-error", RunState::Failed),
            ("guest-panicked", RunState::Failed),
            ("watchdog", RunState::Failed),
            ("from-the-future", RunState::Unknown),
        ] {
            assert_eq!(run_state(Some(status)), state, "{status}");
            assert_eq!(state.may_resize(), status == "running", "{status}");
            assert_eq!(state.executes(), status == "running", "{status}");
        }
    }

    #[test]
    fn a_migration_lasts_until_qemu_says_that_it_is_over() {
        for over in ["none", "completed", "cancelled", "failed"] {
            assert!(!is_migrating(Some(over)), "{over}");
        }
        assert!(!is_migrating(None));
        for under_way in
            ["setup", "active", "pre-switchover", "device", "postcopy-active", "cancelling", "new"]
        {
            assert!(is_migrating(Some(under_way)), "{under_way}");
        }
        assert!(RunState::Migrating.executes() && !RunState::Migrating.may_resize());
    }
}
