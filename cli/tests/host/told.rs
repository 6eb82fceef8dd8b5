//! Who ordered what, how a release ends, and what is refused before anything is done.

use crate::support::{Host, until, vm_file};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixListener;
use std::process::{Child, Stdio};
use std::sync::{Arc, OnceLock};
use windlass_protocol::InformantVersion;
use windlass_protocol::informant::InformantDesc;
use windlass_testkit::qmp::Machine;
use windlass_testkit::{http, process};

#[test]
fn each_order_is_kept_with_the_process_that_gave_it() {
    let mut host = Host::start();
    let machine = Machine::start(host.path("a.sock"), 0);
    host.put("a", &vm_file(machine.path(), "127.0.0.71:1"));
    until("a is booked", || host.booked("a").is_some());
    let frozen = host.process(&["freeze"]);
    let by = format!("frozen by uid {} (pid {frozen}) at 20", uid());
    let said = host.say(&["top"]);
    assert!(said.contains(&by.replace("frozen", "FROZEN")), "{said}");
    let brief = host.say(&["explain", "a"]);
    assert!(brief.contains(&format!("\nLast order to the host: {by}")), "{brief}");
    let whole = host.say(&["explain", "a", "--verbose"]);
    assert!(whole.contains("\nNow, 20") && whole.contains(&by), "{whole}");
    assert!(host.say(&["vm", "list"]).starts_with(&by.replace("frozen", "FROZEN")));
    assert_eq!(host.state()["ordered"]["what"], "freeze");
    assert_eq!(host.state()["ordered"]["by"]["pid"], frozen);
    // A second freeze changes nothing, and neither does who froze.
    host.process(&["freeze"]);
    assert_eq!(host.state()["ordered"]["by"]["pid"], frozen);

    let paused = host.process(&["pause", "a", "--for", "1h"]);
    let by = format!("paused by uid {} (pid {paused}) at 20", uid());
    assert!(host.say(&["explain", "a"]).contains(&format!("Last order: {by}")));
    assert!(host.say(&["vm", "list"]).contains(&format!("a: {by}")));
    host.kill();
    host.run();
    assert_eq!(host.state()["ordered"]["by"]["pid"], frozen);
    let list: Value = serde_json::from_str(&host.say(&["vm", "list", "--output", "json"])).unwrap();
    assert_eq!(list[0]["ordered"]["what"], "pause");
    assert_eq!(list[0]["ordered"]["by"]["pid"], paused);
    assert_eq!(list[0]["ordered"]["by"]["uid"], uid());
}

#[test]
fn a_size_that_cannot_be_is_refused_and_the_vm_stays_managed() {
    let host = Host::start();
    let machine = Machine::start(host.path("a.sock"), 0);
    host.put("a", &vm_file(machine.path(), "127.0.0.71:1"));
    until("a is seen", || !host.state()["vms"][0]["seen"].is_null());
    for (size, words) in [
        (
            &["--cpu", "40"][..],
            "cpu = 40: must be at most 4 (max.cpu of the VM), and at most 4 (the",
        ),
        (&["--cpu", "40"], "and at most 4 (what its QEMU can do)"),
        (&["--cpu", "0"], "cpu = 0: must be at least 1 (min.cpu of the VM)"),
        (&["--cpu", "1.5"], "cpu = 1.5: must be a multiple of 1"),
        (&["--memory", "2GiB"], "memory = 2GiB: must be at most 1GiB (max.memory of the VM)"),
        (&["--memory", "128MiB"], "must be at least 256MiB (min.memory of the VM), and at least"),
        (&["--cpu", "5", "--memory", "9GiB"], "at most 4GiB (the node)"),
    ] {
        let (code, said) = host.fail(&[&["vm", "release", "a"], size].concat());
        assert!(code == 1 && said.contains(words), "{size:?} said {said}");
    }
    assert!(host.say(&["vm", "list"]).contains("managed"));
}

#[test]
fn a_vcpu_that_the_guest_has_parked_is_not_kept_by_a_release() {
    let host = Host::start();
    let machine = Machine::start(host.path("a.sock"), 0);
    let port = Arc::<OnceLock<u16>>::default();
    let metrics = Arc::clone(&port);
    let guest = http::Server::start(move |request| {
        let metrics_port = metrics.get().copied();
        let registered = InformantDesc { version: InformantVersion::V2_0, metrics_port };
        let answer = match request.path.as_str() {
            "/metrics" => "windlass_cpus_online 1\n".to_owned(),
            "/register" => String::from_utf8(registered.encode()).unwrap(),
            _ => "{}".to_owned(),
        };
        http::answer(200, &answer)
    });
    port.set(guest.address().port()).unwrap();
    host.put("a", &vm_file(machine.path(), &guest.address().to_string()));
    // What the guest said before its session began does not count.
    until("one vCPU is parked", || {
        let vm = &host.state()["vms"][0];
        vm["session"] == "registered" && vm["online"] == 1_000
    });
    let order = "POST /v1/vm/a/release HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
                 content-length: 17\r\n\r\n{\"mem\":268435456}";
    let said = host.raw(order.as_bytes());
    assert!(said.contains("a is brought to 1 vCPU / 256MiB, and then let go"), "{said}");
}

#[test]
fn a_release_is_watched_until_the_vm_is_let_go() {
    let host = Host::start();
    let machine = Machine::start(host.path("a.sock"), 0);
    host.put("a", &vm_file(machine.path(), "127.0.0.71:1"));
    until("a is seen", || !host.state()["vms"][0]["seen"].is_null());
    let said = host.say(&["vm", "release", "a", "--memory", "256MiB"]);
    assert!(said.starts_with("a is brought to 2 vCPU / 256MiB, and then let go\n"), "{said}");
    let last = "a is let go with 2 vCPU / 256MiB; it counts until it ends, or until";
    assert!(said.lines().last().unwrap().starts_with(last), "{said}");
    let ended = host.raw(b"GET /v1/vm/a/release HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    assert!(ended.contains("\"state\":\"done\""), "{ended}");
    host.say(&["resume", "a"]);
    let ended = host.raw(b"GET /v1/vm/a/release HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    assert!(ended.starts_with("HTTP/1.1 409 ") && ended.contains("a is not released"), "{ended}");
}

/// The guest has no informant, so memory is never taken from it.
#[test]
fn ctrl_c_ends_the_watching_and_not_the_release() {
    let host = Host::start();
    let machine = Machine::start(host.path("a.sock"), 256);
    host.put("a", &vm_file(machine.path(), "127.0.0.71:1"));
    until("a is seen", || !host.state()["vms"][0]["seen"].is_null());
    let mut watching = host.begin(&["vm", "release", "a", "--memory", "256MiB"]);
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    let mut next = || lines.next().unwrap().unwrap();
    assert_eq!(next(), "a is brought to 2 vCPU / 256MiB, and then let go");
    let progress = next();
    assert!(progress.starts_with("a has 2 vCPU / 512MiB of 2 vCPU / 256MiB"), "{progress}");
    process::signal(watching.id(), "INT");
    let mut said = String::new();
    watching.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("no longer watched; the release of a goes on"), "{said}");
    assert_eq!(watching.wait().unwrap().code(), Some(130));
    assert!(host.say(&["vm", "list"]).contains("released"));
    // A release of which the host ends in the middle has an end, too.
    drop(machine);
    until("it is given up", || host.say(&["explain", "a"]).contains("its hypervisor has ended"));
}

#[test]
fn the_way_of_a_release_is_told_where_it_moves() {
    let mib = |cpus: u64, mib: u64| json!({ "cpu": cpus * 1000, "mem": mib << 20 });
    let at = |state: &str, has: Value| {
        json!({ "at": 0, "vm": { "namespace": "default", "name": "a" }, "state": state,
            "wanted": mib(1, 256), "has": has, "status": null, "why": null })
    };
    let begun = json!({ "message": "a is brought", "changed": true });
    let twice = at("under-way", mib(2, 512));
    let way = [begun, twice.clone(), twice, at("under-way", mib(1, 512)), at("done", mib(1, 256))];
    let release = |answers: &[Value], args: &[&str]| {
        let host = Host::prepare();
        let listener = UnixListener::bind(host.path("host.sock")).unwrap();
        let answers = answers.to_vec();
        let serving = std::thread::spawn(move || answer(&listener, &answers));
        let output = host.windlass(&[&["vm", "release", "a"], args].concat());
        serving.join().unwrap();
        (
            output.status.code(),
            [output.stdout, output.stderr].map(|said| String::from_utf8(said).unwrap()),
        )
    };
    let last =
        "a is let go with 1 vCPU / 256MiB; it counts until it ends, or until `windlass resume a`";
    let text = format!(
        "a is brought\na has 2 vCPU / 512MiB of 1 vCPU / 256MiB\n\
         a has 1 vCPU / 512MiB of 1 vCPU / 256MiB\n{last}\n"
    );
    assert_eq!(release(&way, &[]), (Some(0), [text, String::new()]));
    let (code, [said, _]) = release(&way, &["--output", "json"]);
    let done: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((code, &done["message"]), (Some(0), &Value::from(last)));
    let mut given_up = at("given-up", Value::Null);
    given_up["why"] = "nothing moved".into();
    let (code, [_, said]) = release(&[way[0].clone(), given_up], &[]);
    let words = "windlass: given up: nothing moved; a is let go with what it has\n";
    assert_eq!((code, said.as_str()), (Some(1), words));
}

/// A host that has one answer for each request, whatever that is.
fn answer(listener: &UnixListener, answers: &[Value]) {
    let mut clients = Vec::new();
    for body in answers.iter().map(Value::to_string) {
        let mut client = loop {
            // The command line only looks, first, whether the socket is served.
            let (mut client, _) = listener.accept().unwrap();
            if client.read(&mut [0; 4096]).unwrap() > 0 {
                break client;
            }
        };
        client.write_all(http::answer(200, &body).as_bytes()).unwrap();
        clients.push(client);
    }
}

#[test]
fn the_log_level_is_changed_over_the_socket_alone() {
    let host = Host::start();
    assert_eq!(host.say(&["log-level"]), "info\n");
    let refused = host.admin_put("/log-level", "debug");
    assert!(refused.starts_with("HTTP/1.1 405 "), "{refused}");
    assert!(refused.contains("`windlass log-level LEVEL` does it"), "{refused}");
    assert_eq!(host.say(&["log-level"]), "info\n");
    let said = host.say(&["log-level", "info,windlass_agent=debug"]);
    assert!(said.starts_with("the log level is windlass_agent=debug,info"), "{said}");
    assert!(host.admin("/log-level").ends_with("windlass_agent=debug,info\n"));
    let order = "PUT /v1/log-level HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
                 content-length: 17\r\n\r\n{\"filter\":\"warn\"}";
    for changed in ["\"changed\":true", "\"changed\":false"] {
        let said = host.raw(order.as_bytes());
        assert!(said.contains(changed), "{said}");
    }
    let (code, said) = host.fail(&["log-level", "x=loudest"]);
    assert!(code == 1 && said.contains("log filter \"x=loudest\""), "{said}");
}

#[test]
fn a_reader_that_has_left_ends_no_command_in_a_panic() {
    let host = Host::start();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let full = host.command(&["check", "--keys"]).stdout(full).output().unwrap();
    assert_eq!(full.status.code(), Some(73), "a disk that is full is no reader that has left");
    assert!(String::from_utf8_lossy(&full.stderr).contains("cannot write to standard output: No"));
    for (args, code) in [
        (&["check", "/nonexistent.toml"][..], 66),
        (&["fly"], 64),
        (&["explain", "nope"], 66),
        (&["check", "--keys"], 0),
        (&["top", "--once"], 0),
        (&["vm", "list"], 0),
        (&["--help"], 0),
    ] {
        let closed = || {
            let (reader, writer) = std::io::pipe().unwrap();
            drop(reader);
            Stdio::from(writer)
        };
        let mut command = host.command(args);
        let status = command.stdout(closed()).stderr(closed()).status().unwrap();
        assert_eq!(status.code(), Some(code), "{args:?}");
    }
}

fn uid() -> u32 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").unwrap().uid()
}

impl Host {
    /// Runs a command that is to go well, and gives the id of its process.
    fn process(&self, args: &[&str]) -> u32 {
        let mut child = self.begin(args);
        let id = child.id();
        assert!(child.wait().unwrap().success(), "{args:?}");
        id
    }

    fn begin(&self, args: &[&str]) -> Child {
        let mut command = self.command(args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }
}
