//! The conformance kit against the program, in every version that it speaks; and against the
//! program with something broken between, which the kit must notice and name.

use crate::support::guest::Guest;
use crate::support::program::Program;
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use windlass_conformance::case::Choice;
use windlass_conformance::informant::{Options, run};
use windlass_conformance::report::Report;
use windlass_conformance::versions::{INFORMANT, Version};
use windlass_protocol::version::InformantVersion;
use windlass_testkit::wait::until;

/// Every case in every version: versions at the same time, each with a program of its own.
#[test]
fn the_program_keeps_to_its_protocol_in_every_version() {
    let versions = spoken();
    let reports: Vec<Report> = std::thread::scope(|scope| {
        let runs: Vec<_> =
            versions.iter().map(|version| scope.spawn(move || conforms(*version))).collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    for report in reports {
        eprintln!("{report}");
        assert!(report.holds(), "{report}");
        assert!(report.left_out.is_empty(), "{report}");
    }
}

fn conforms(version: Version) -> Report {
    let target = Target::start();
    let choice = Choice { versions: vec![version], only: Vec::new(), skip_ours: false };
    run(&target.options(choice), &mut |outcome| eprintln!("{outcome}"))
}

/// The kit's versions that this release speaks.
pub(crate) fn spoken() -> Vec<Version> {
    let ours = InformantVersion::SPOKEN;
    let is_spoken =
        |version: &Version| ours.contains(InformantVersion::from_number(version.number));
    INFORMANT.into_iter().filter(is_spoken).collect()
}

/// A program at work on a guest whose memory can be made short.
pub(crate) struct Target {
    guest: Guest,
    pub(crate) program: Program,
}

impl Target {
    pub(crate) fn start() -> Self {
        let guest = Guest::new();
        (1..4).for_each(|cpu| guest.cpu(cpu, true));
        for (name, available) in [("on", 60), ("off", 362)] {
            guest.memory(462, available, available);
            fs::copy(guest.root().join("proc/meminfo"), guest.root().join(name)).unwrap();
        }
        let root = guest.root().display();
        let script = format!("cp {root}/$1 {root}/new && mv {root}/new {root}/proc/meminfo\n");
        guest.write("provoke", &script);
        let program = Program::start(guest.root(), &["--sample-every", "10"]);
        // What it declines it is to decline by what is in use, not for want of samples.
        let samples = || program.metric("windlass_informant_samples_total").unwrap() >= 100.0;
        until("samples", samples);
        Self { guest, program }
    }

    pub(crate) fn options(&self, choice: Choice) -> Options {
        Options {
            target: self.program.addr,
            advertise: IpAddr::V4(Ipv4Addr::LOCALHOST),
            provoke: Some(format!("sh {}/provoke", self.guest.root().display())),
            disruptive: true,
            choice,
        }
    }
}
