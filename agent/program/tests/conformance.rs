//! The conformance kit against the program, started anew for every case with the files that the
//! kit writes, as `windlass conformance agent --run` does.
//!
//! In the first and the last version of each protocol: the library behind it is tried in every one
//! (`cli/tests/conformance.rs`), and what is tried here is that the program is that library.

use std::sync::Arc;
use windlass_conformance::agent::{Options, Shell, run};
use windlass_conformance::versions::{INFORMANT, PLUGIN, Version};

/// Cases wait most of the time.
const AT_ONCE: usize = 16;

#[test]
fn the_program_keeps_to_its_protocols() {
    let report = run(&options("agent.toml"), &mut |outcome| eprintln!("{outcome}"));
    assert!(report.holds(), "{report}");
    assert!(report.left_out.is_empty(), "{report}");
}

/// A program that ends is found out, by every case.
#[test]
fn a_program_that_does_not_start_passes_no_case() {
    let report = run(&options("nowhere.toml"), &mut |_| {});
    assert_eq!(report.passed, 0, "{report}");
    for outcome in &report.outcomes {
        let fault = outcome.fault.as_ref().unwrap();
        assert!(fault.contains("ended by itself: exit status: 66"), "{}: {fault}", outcome.case);
        assert!(fault.contains("nowhere.toml"), "{}: {fault}", outcome.case);
    }
}

/// The program with this file, in every version that is tried here.
fn options(config: &str) -> Options {
    let program = env!("CARGO_BIN_EXE_windlass-agent");
    Options {
        start: Arc::new(Shell(format!("'{program}' --config {config}"))),
        informant: ends(&INFORMANT),
        plugin: ends(&PLUGIN),
        only: Vec::new(),
        skip_ours: false,
        logs: None,
        at_once: AT_ONCE,
    }
}

/// The first version and the last.
fn ends(table: &[Version]) -> Vec<Version> {
    [table.first(), table.last()].into_iter().flatten().copied().collect()
}
