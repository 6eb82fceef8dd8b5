//! Monitors and disks that hang: the host goes on, and ends when it is told to.

use crate::support::{Host, until, vm_file};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use windlass_testkit::qmp::{Machine, listen};

/// What is promised within 5 s may take this on a machine that plays other tests too; a host that
/// hangs says so only after 15 s.
const SOON: Duration = Duration::from_secs(12);

/// What a host may take to end, and what a busy machine adds to that.
const ENDS_WITHIN: Duration = Duration::from_secs(8 + 4);

#[test]
fn orders_and_edits_in_a_row_leave_the_monitor_to_the_one_connection() {
    let host = Host::start();
    let machine = Machine::start(host.path("a.sock"), 0);
    let file = vm_file(machine.path(), "127.0.0.71:1");
    host.put("a", &file);
    until("a is seen", || !host.state()["vms"][0]["seen"].is_null());
    let clients = machine.clients();
    for nth in 0..10 {
        for order in [&["pause", "a", "--for", "1h"][..], &["resume", "a"]] {
            let asked = Instant::now();
            host.say(order);
            assert!(asked.elapsed() < SOON, "{order:?} took {:?}", asked.elapsed());
        }
        host.put("a", &format!("priority = {nth}\n{file}"));
        until("the edit is in force", || host.state()["vms"][0]["priority"] == nth);
    }
    assert_eq!(machine.clients(), clients);
    assert!(host.admin("/livez").starts_with("HTTP/1.1 200 "));
}

#[test]
fn a_silent_monitor_keeps_no_other_vm_waiting_at_the_start_and_at_the_end() {
    let mut host = Host::start();
    let machine = Machine::start(host.path("good.sock"), 0);
    let silent = Silent::start(&host.path("silent.sock"));
    host.put("good", &vm_file(machine.path(), "127.0.0.71:1"));
    host.put("silent", &vm_file(&host.path("silent.sock"), "127.0.0.72:1"));
    until("silent counts", || host.booked("silent") == Some((4, 1024)));
    host.kill();
    let asked = Instant::now();
    host.run();
    assert!(asked.elapsed() < SOON, "ready after {:?}", asked.elapsed());
    assert_eq!(host.booked("silent"), Some((4, 1024)));
    let is_seen = |state: serde_json::Value| {
        let vms = state["vms"].as_array().unwrap().clone();
        vms.iter().any(|vm| vm["name"]["name"] == "good" && !vm["seen"].is_null())
    };
    until("the other is served", || is_seen(host.state()));
    for _ in 0..3 {
        host.say(&["pause", "silent", "--for", "1h"]);
        host.say(&["resume", "silent"]);
    }
    let asked = Instant::now();
    assert_eq!(host.stop(), Some(0));
    assert!(asked.elapsed() < ENDS_WITHIN, "ended after {:?}", asked.elapsed());
    drop(silent);
}

#[test]
fn a_start_on_a_full_disk_is_as_good_as_running_on_one() {
    let mut host = Host::start();
    let machine = Machine::start(host.path("a.sock"), 0);
    host.put("a", &vm_file(machine.path(), "127.0.0.71:1"));
    until("a is booked", || host.booked("a").is_some());
    host.say(&["freeze"]);
    assert_eq!(host.stop(), Some(0));
    // Whatever is written beside the file finds no room.
    std::os::unix::fs::symlink("/dev/full", host.path("state/state.new")).unwrap();
    host.run();
    assert_eq!(host.state()["frozen"], true);
    until("it is said", || host.say(&["top"]).contains("state: cannot be written"));
    let (_, said) = host.fail(&["thaw"]);
    assert!(said.contains("will not survive a restart"), "{said}");
    assert_eq!(host.state()["frozen"], false);
    fs::remove_file(host.path("state/state.new")).unwrap();
    until("it is written", || !host.say(&["top"]).contains("cannot be written"));
    host.kill();
    host.run();
    assert_eq!(host.state()["frozen"], false);
}

#[test]
fn an_order_whose_sender_gave_up_while_the_host_was_stopped_is_not_done_later() {
    let host = Host::start();
    for _ in 0..2 {
        until("the socket is at rest", || host.connections() == 0);
        host.signal("STOP");
        // The host may notice a sender's end before it begins the order, hence several senders.
        let freeze = || host.command(&["freeze"]).stderr(Stdio::null()).spawn().unwrap();
        let mut killed: Vec<Child> = (0..5).map(|_| freeze()).collect();
        // The command line looks whether the socket is served, and connects again for the order. On a
        // busy machine a sender may give up before it has sent: another one takes its place.
        until("the orders are sent", || {
            for sender in &mut killed {
                if sender.try_wait().unwrap().is_some() {
                    *sender = freeze();
                }
            }
            host.connections() >= 2 * killed.len()
        });
        // A sender that is killed before it has written proves nothing, and breaks nothing.
        std::thread::sleep(Duration::from_millis(300));
        for sender in &mut killed {
            sender.kill().unwrap();
            sender.wait().unwrap();
        }
        let mut gave_up = UnixStream::connect(host.path("host.sock")).unwrap();
        let late = "POST /v1/freeze HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
                    content-length: 0\r\nwindlass-not-after: 1700000000000\r\n\r\n";
        gave_up.write_all(late.as_bytes()).unwrap();
        host.signal("CONT");
        let mut answer = String::new();
        gave_up.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
        assert!(answer.contains("not done: the host came to it only after"), "{answer}");
        let state = host.state();
        assert!(state["frozen"] == false, "{state}");
        let bad = host.raw(late.replace("1700000000000", "soon").as_bytes());
        assert!(bad.starts_with("HTTP/1.1 400 "), "{bad}");
        assert!(bad.contains("windlass-not-after = soon"), "{bad}");
        host.say(&["freeze"]);
        assert_eq!(host.state()["frozen"], true);
        host.say(&["thaw"]);
        assert_eq!(host.state()["frozen"], false);
    }
}

#[test]
fn systemd_hears_when_the_host_is_ready_alive_and_about_to_end() {
    let mut host = Host::prepare();
    let systemd = UnixDatagram::bind(host.path("notify.sock")).unwrap();
    systemd.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let until_said = |wanted: &str| {
        let mut words = [0; 40];
        let said = (0..20).any(|_| {
            let length = systemd.recv(&mut words).unwrap_or_default();
            std::str::from_utf8(&words[..length]).unwrap().lines().any(|word| word == wanted)
        });
        assert!(said, "never said: {wanted}");
    };
    host.run();
    until_said("READY=1");
    until_said("WATCHDOG=1");
    until_said("WATCHDOG=1");
    assert_eq!(host.stop(), Some(0));
    until_said("STOPPING=1");
}

/// A monitor as that of a QEMU that is stopped: its queue is full, and it accepts no client.
struct Silent {
    _listener: UnixListener,
    _queue: Vec<UnixStream>,
}

impl Silent {
    fn start(path: &std::path::Path) -> Self {
        let listener = listen(path);
        let queue = (0..2).map(|_| UnixStream::connect(path).unwrap()).collect();
        Self { _listener: listener, _queue: queue }
    }
}
