//! The conformance kit against the endpoint behind a real listener, in every version that it
//! speaks; and against one with something broken between, which the kit must notice and name.
#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "conformance/target.rs"]
mod target;
#[path = "conformance/variants.rs"]
mod variants;

use target::{Target, options, spoken};
use windlass_conformance::case::Choice;
use windlass_conformance::plugin::run;
use windlass_conformance::report::Report;

#[test]
fn the_plugin_keeps_to_its_protocol_in_every_version() {
    let reports: Vec<Report> = std::thread::scope(|scope| {
        let conforms = |version| {
            let target = Target::start();
            let choice = Choice { versions: vec![version], only: Vec::new(), skip_ours: false };
            run(&options(target.addr, choice), &mut |_| {})
        };
        let runs: Vec<_> =
            spoken().into_iter().map(|version| scope.spawn(move || conforms(version))).collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    for report in reports {
        eprintln!("{report}");
        assert!(report.holds(), "{report}");
        assert!(report.left_out.is_empty(), "{report}");
    }
}
