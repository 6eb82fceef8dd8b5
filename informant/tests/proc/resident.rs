//! How large the program is: the static one that goes into guests, at work.
use crate::support::agent::Agent;
use crate::support::guest::Guest;
use crate::support::program::Program;
use std::path::PathBuf;
use std::process::Command;
use windlass_testkit::wait::until;

const LIMIT: u64 = 4 << 20;

#[test]
fn the_static_program_is_small_on_disk_and_stays_small_in_memory() {
    let path = build();
    let bytes = std::fs::read(&path).unwrap();
    println!("on disk: {} KiB", bytes.len() / 1024);
    assert!(bytes.len() as u64 <= LIMIT, "{} bytes on disk", bytes.len());
    assert_eq!(interpreter(&bytes), None, "a static program needs no loader");

    let guest = Guest::new();
    for resource in ["cpu", "memory", "io"] {
        let stalls = "some avg10=1.50 avg60=0.80 avg300=0.10 total=1234567\n";
        guest.write(&format!("proc/pressure/{resource}"), stalls);
    }
    let program = Program::start_at(&path, guest.root(), &["--sample-every", "10"]);
    let agents: Vec<Agent> = (1..=10).map(Agent::start).collect();
    for agent in &agents {
        agent.take_over(&program);
    }
    let current = agents.last().unwrap();
    for request in 0..1000 {
        match request % 4 {
            0 => assert_eq!(program.ask("GET", "/metrics", "").status, 200),
            1 => assert_eq!(current.resize(&program, "/downscale", "1", "1Gi").status, 200),
            2 => assert_eq!(current.resize(&program, "/upscale", "1", "1Gi").status, 200),
            _ => assert_eq!(program.ask("POST", "/register", &"[".repeat(9000)).status, 400),
        }
    }
    until("samples", || program.metric("windlass_informant_samples_total").unwrap() >= 3600.0);
    let resident = program.resident();
    println!("resident: {} KiB", resident / 1024);
    assert!(resident <= LIMIT, "{resident} bytes resident");
    assert_eq!(program.metric("windlass_informant_agents"), Some(8.0));
}

/// Builds it as it is built for guests; where it is.
fn build() -> PathBuf {
    let built = Command::new("../dev/static").arg("windlass-informant").output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let text = String::from_utf8(built.stdout).unwrap();
    PathBuf::from(text.lines().last().unwrap())
}

/// The loader that a program asks for: its ELF segment of type 3.
fn interpreter(elf: &[u8]) -> Option<u64> {
    let number = |at: usize, length: usize| {
        elf[at..at + length].iter().rev().fold(0_u64, |sum, byte| (sum << 8) | u64::from(*byte))
    };
    assert_eq!(&elf[..6], b"\x7fELF\x02\x01", "a 64-bit little-endian program");
    let (table, size, count) = (number(32, 8), number(54, 2), number(56, 2));
    let segments = (0..count).map(|segment| usize::try_from(table + segment * size).unwrap());
    segments.into_iter().find(|at| number(*at, 4) == 3).map(|at| number(at + 8, 8))
}
