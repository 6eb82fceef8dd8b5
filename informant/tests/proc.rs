//! The program against a directory that looks like procfs and sysfs; its endpoints and its
//! size beside it.
#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "proc/conformance.rs"]
mod conformance;
#[path = "proc/http.rs"]
mod http;
#[path = "proc/resident.rs"]
mod resident;
#[path = "proc/support.rs"]
mod support;
#[path = "proc/variants.rs"]
mod variants;

use support::agent::Agent;
use support::guest::Guest;
use support::program::Program;
use windlass_testkit::wait::until;

#[test]
fn nothing_is_changed_until_an_agent_registers() {
    let guest = Guest::new();
    guest.cpu(1, false);
    guest.block(40, "offline");
    let before = guest.everything();
    let program = Program::start(guest.root(), &["--sample-every", "10"]);
    until("samples", || program.metric("windlass_informant_samples_total").unwrap() >= 50.0);
    assert_eq!(program.ask("GET", "/livez", "").status, 200);
    assert_eq!(program.ask("GET", "/readyz", "").status, 200);
    assert_eq!(guest.everything(), before);
    assert!(program.terminate().success());
    assert_eq!(guest.everything(), before);
}

#[test]
fn added_memory_and_vcpus_are_online_when_the_first_registration_is_answered() {
    let guest = Guest::new();
    guest.cpu(1, false);
    guest.cpu(2, true);
    guest.block(40, "offline");
    guest.block(41, "online");
    let program = Program::start(guest.root(), &[]);
    let agent = Agent::start(1);
    let answer = agent.register(&program);
    assert_eq!(guest.policy(), "online_movable");
    assert_eq!(guest.block_state(40), "online_movable");
    assert_eq!(guest.block_state(41), "online");
    assert!(guest.cpu_online(1));
    let port = program.addr.port();
    let expected =
        format!(r#"{{"protoVersion":4,"metricsMethod":{{"prometheus":{{"port":{port}}}}}}}"#);
    assert_eq!((answer.status, answer.body), (200, expected));
}

#[test]
fn hardware_that_is_added_without_a_notice_is_found() {
    let guest = Guest::new();
    let program = Program::start(guest.root(), &[]);
    let agent = Agent::start(1);
    agent.take_over(&program);
    let answer = agent.resize(&program, "/upscale", "2", "512Mi");
    assert_eq!(answer.status, 200);
    guest.cpu(1, false);
    guest.block(50, "offline");
    until("online", || guest.cpu_online(1) && guest.block_state(50) == "online_movable");
    assert_eq!(program.metric("windlass_cpus_online"), Some(2.0));
}

#[test]
fn vcpus_are_parked_and_brought_back_before_the_answer() {
    let guest = Guest::new();
    (1..4).for_each(|cpu| guest.cpu(cpu, true));
    let program = Program::start(guest.root(), &[]);
    let agent = Agent::start(1);
    agent.take_over(&program);

    let answer = agent.resize(&program, "/downscale", "1500m", "512Mi");
    assert_eq!(answer.status, 200);
    assert!(answer.body.starts_with(r#"{"Ok":true,"#), "{}", answer.body);
    assert_eq!([1, 2, 3].map(|cpu| guest.cpu_online(cpu)), [true, false, false]);
    assert_eq!(guest.parked(), "2,3\n");
    assert_eq!(program.metric("windlass_cpus_online"), Some(2.0));
    assert_eq!(program.metric("windlass_cpus_present"), Some(4.0));
    assert_eq!(program.metric("windlass_informant_parked_cpus"), Some(2.0));

    let answer = agent.resize(&program, "/upscale", "3", "512Mi");
    assert_eq!((answer.status, answer.body.as_str()), (200, "{}"));
    assert_eq!([1, 2, 3].map(|cpu| guest.cpu_online(cpu)), [true, true, false]);
    until("remembered", || guest.parked() == "3\n");
}

#[test]
fn what_is_parked_stays_parked_over_a_restart_of_the_program() {
    let guest = Guest::new();
    (1..3).for_each(|cpu| guest.cpu(cpu, true));
    let program = Program::start(guest.root(), &[]);
    let agent = Agent::start(1);
    agent.take_over(&program);
    agent.resize(&program, "/downscale", "2", "512Mi");
    drop(program);
    guest.cpu(3, false);

    let program = Program::start(guest.root(), &[]);
    let successor = Agent::start(2);
    successor.take_over(&program);
    assert_eq!([1, 2, 3].map(|cpu| guest.cpu_online(cpu)), [true, false, true]);
    successor.resize(&program, "/upscale", "4", "512Mi");
    assert!(guest.cpu_online(2));
}

#[test]
fn a_shrink_below_what_is_in_use_is_refused_and_nothing_is_parked() {
    let guest = Guest::new();
    guest.cpu(1, true);
    let program = Program::start(guest.root(), &[]);
    let agent = Agent::start(1);
    agent.take_over(&program);
    until("samples", || program.metric("windlass_informant_samples_total").unwrap() > 20.0);
    let answer = agent.resize(&program, "/downscale", "1", "200Mi");
    assert!(answer.body.starts_with(r#"{"Ok":false,"Status":"100MiB in use"#), "{}", answer.body);
    assert!(guest.cpu_online(1));
    let answer = agent.resize(&program, "/downscale", "1", "300Mi");
    assert!(answer.body.starts_with(r#"{"Ok":true,"Status":"100MiB in use"#), "{}", answer.body);
    assert!(!guest.cpu_online(1));
}

#[test]
fn memory_that_was_added_since_the_last_sample_counts() {
    let guest = Guest::new();
    let program = Program::start(guest.root(), &["--sample-every", "400"]);
    let agent = Agent::start(1);
    agent.take_over(&program);
    until("samples", || program.metric("windlass_informant_samples_total").unwrap() > 8.0);
    guest.memory(1024, 24, 24);
    let answer = agent.resize(&program, "/downscale", "1", "600Mi");
    assert!(answer.body.starts_with(r#"{"Ok":false,"Status":"1000MiB in use"#), "{}", answer.body);
}

#[test]
fn the_agent_is_asked_before_memory_runs_out() {
    let guest = Guest::new();
    let program = Program::start(guest.root(), &[]);
    let agent = Agent::start(1);
    agent.take_over(&program);
    assert_eq!(agent.called("/try-upscale"), 0);
    assert_eq!(program.metric("windlass_informant_memory_urgent"), Some(0.0));
    guest.memory(462, 60, 60);
    until("asked twice", || agent.called("/try-upscale") >= 2);
    guest.memory(718, 316, 316);
    until("content", || program.metric("windlass_informant_memory_urgent") == Some(0.0));
}

#[test]
fn load_is_served_under_the_reference_s_names_and_ours() {
    let guest = Guest::new();
    guest.load("1.25 0.50 0.25 4/80 11206");
    guest.write("proc/stat", "cpu 1 2 3\nprocs_blocked 1\n");
    let program = Program::start(guest.root(), &["--sample-every", "10"]);
    let load = |window| program.metric(&format!("windlass_load{{window=\"{window}\"}}"));
    // Three that run besides the reader, and one that waits for I/O.
    until("five seconds of samples", || load("5s").is_some());
    assert!((load("5s").unwrap() - 4.0).abs() < 1e-6, "{:?}", load("5s"));
    assert_eq!(program.metric("host_load1"), Some(1.25));
    assert_eq!(program.metric("host_load5"), Some(0.5));
    assert_eq!(program.metric("host_load15"), Some(0.25));
    assert_eq!(program.metric("windlass_memory_total_bytes"), Some(462.0 * 1024.0 * 1024.0));
    let pressure = "windlass_pressure_seconds_total{resource=\"memory\",kind=\"some\"}";
    assert_eq!(program.metric(pressure), Some(1.234_567));
    let page = program.ask("GET", "/metrics", "").body;
    let names =
        page.lines().filter(|line| line.starts_with("host_load") || line.starts_with("node_"));
    assert_eq!(names.count(), 3, "the reference takes the first line with its prefix");
}

#[test]
fn what_cannot_be_read_has_no_figure_and_stops_nothing_else() {
    let guest = Guest::new();
    guest.remove("proc/zoneinfo");
    guest.remove("proc/pressure/memory");
    guest.write("proc/loadavg", "nonsense");
    let program = Program::start(guest.root(), &[]);
    let agent = Agent::start(1);
    agent.take_over(&program);
    assert_eq!(program.metric("host_load1"), None);
    assert_eq!(program.metric("windlass_load{window=\"5s\"}"), None);
    assert_eq!(program.ask("GET", "/readyz", "").status, 503);
    assert!(program.metric("windlass_memory_available_bytes").is_some());
    guest.write("proc/meminfo", &"x".repeat(1 << 20));
    assert_eq!(program.metric("windlass_memory_available_bytes"), None);
    until("no sample is fresh", || {
        let answer = agent.resize(&program, "/downscale", "1", "256Mi");
        answer.body.contains("memory was not read within the last second")
    });
    guest.load("0.50 0.50 0.50 1/1 1");
    until("ready", || program.ask("GET", "/readyz", "").status == 200);
}
