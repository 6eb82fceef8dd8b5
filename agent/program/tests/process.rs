//! The whole programs `windlass-agent` and `windlass-plugin`, with hypervisors and guests that
//! only talk.

#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "process/billing.rs"]
mod billing;
#[path = "process/cluster.rs"]
mod cluster;
#[path = "process/guest.rs"]
mod guest;
#[path = "process/receiver.rs"]
mod receiver;
#[path = "process/socket.rs"]
mod socket;
#[path = "process/support.rs"]
mod support;

use guest::Guest;
use receiver::Receiver;
use serde_json::json;
use std::fs::File;
use std::net::SocketAddr;
use std::os::unix::net::UnixDatagram;
use support::{Agent, Folder, Plugin, fail, speaks_to, vm_file};
use windlass_testkit::qmp::Machine;
use windlass_testkit::wait::until;

/// A node with room for three units; the VM `a` may have four.
const LIST: &str = "\
[[node]]\nname = \"n\"\ncpu = 4\nmemory = \"768MiB\"\n\
[[vm]]\nname = \"a\"\nnode = \"n\"\nmin = { cpu = 1, memory = \"256MiB\" }\n\
max = { cpu = 2, memory = \"1GiB\" }\n";

#[test]
fn a_vm_gets_what_the_plugin_permits_and_gives_back_what_it_does_not_need() {
    let plugin = Plugin::start(LIST);
    let folder = Folder::new();
    let machine = Machine::start(folder.path("a.sock"), 0);
    let guest = Guest::start();
    let agent = Agent::start(&folder, &plugin);
    folder.put("a", &vm_file(machine.path(), guest.address()));
    until("the agent has spoken", || plugin.booked("a").is_some_and(|(_, slots)| slots == 2));
    until("it is registered", || agent.pod("a")["runner"]["server"]["mode"] == "running");

    guest.load(3.4);
    until("it has all that the node has", || agent.slots("a") == Some(6));
    assert_eq!(plugin.booked("a"), Some((2, 6)));
    assert_eq!(agent.pod("a")["runner"]["lastApproved"]["mem"], 6);
    until("the guest was told", || guest.told() == Some(6 * 128));
    until("its state says what was heard of the guest", || {
        let (pod, runner) = (agent.pod("a"), &agent.pod("a")["runner"]);
        runner["lastMetrics"] == json!({ "loadAvg1M": 3.4, "loadAvg5M": 3.4 })
            && runner["server"]["protoVersion"] == 4
            && pod["status"]["lastSuccessfulInformantComm"].is_string()
    });
    let pod = agent.pod("a");
    assert_eq!(pod["status"]["endpointID"], "a");
    let runner = &pod["runner"];
    assert_eq!(runner["scheduler"]["info"]["IP"], "127.0.0.1");
    let desc = &runner["server"]["desc"];
    assert_eq!(desc["agentServeAddr"], json!(guest.callback().unwrap().to_string()), "{desc}");
    assert_eq!((&desc["minProtoVersion"], &desc["maxProtoVersion"]), (&json!(1), &json!(4)));
    assert!(runner["server"]["seqNum"].as_u64() > Some(0), "{runner}");
    assert_eq!(runner["informant"]["protoVersion"], 4);
    assert!(runner["informant"]["metricsMethod"]["prometheus"]["port"].is_u64(), "{runner}");

    plugin.write(&LIST.replace("768MiB", "1GiB"));
    plugin.signal("HUP");
    until("it has its maximum", || {
        agent.slots("a") == Some(8) && plugin.booked("a") == Some((2, 8))
    });

    guest.load(0.1);
    until("it is back where it was", || agent.slots("a") == Some(2));
    until("the books know", || plugin.booked("a").is_some_and(|(_, slots)| slots == 2));
    assert!(guest.agreed() > 0, "memory was taken from a guest that was not asked");
    let text = agent.metrics();
    for name in [
        "autoscaling_agent_scheduler_plugin_requests_total{code=\"200\"}",
        "autoscaling_agent_scheduler_plugin_requested_mem_change_total{direction=\"inc\"}",
        "autoscaling_agent_scheduler_plugin_accepted_mem_change_total{direction=\"inc\"}",
        "autoscaling_agent_informant_requested_mem_change_total{direction=\"dec\"} 768",
        "autoscaling_agent_informant_approved_mem_change_total{direction=\"dec\"} 768",
        "autoscaling_agent_informant_approved_mem_change_total{direction=\"inc\"} 768",
        "autoscaling_agent_runner_starts 1",
        "autoscaling_agent_informant_outbound_requests_total{endpoint=\"/downscale\",code=\"200\"}",
        "autoscaling_agent_informant_inbound_requests_total{endpoint=\"/resume\",code=\"200\"}",
        "autoscaling_agent_tracked_vms_current 1",
        "windlass_agent_vm_files 1",
        "windlass_agent_file_problems 0",
    ] {
        assert!(text.lines().any(|line| line.starts_with(name)), "{name} in\n{text}");
    }
}

#[test]
fn neither_growth_nor_books_are_lost_over_restarts_of_both() {
    let mut plugin = Plugin::start(LIST);
    let folder = Folder::new();
    let machine = Machine::start(folder.path("a.sock"), 0);
    let guest = Guest::start();
    guest.load(3.4);
    folder.put("a", &vm_file(machine.path(), guest.address()));
    let mut agent = Agent::start(&folder, &plugin);
    until("it has all that the node has", || agent.slots("a") == Some(6));

    plugin.kill();
    let silent = || agent.pod("a")["runner"]["lastSchedulerError"].is_string();
    until("the agent says that nobody answers", silent);
    until("so does its log", || agent.logged("plugin does not answer") == 1);
    assert_eq!(agent.slots("a"), Some(6), "it keeps what it has");
    // Until it is heard of it counts with its maximum, which is more than there is.
    plugin.restart();
    until("the books are right again", || plugin.booked("a") == Some((2, 6)));
    assert_eq!(agent.slots("a"), Some(6));
    assert_eq!(agent.logged("plugin does not answer"), 1);
    assert_eq!(agent.logged("plugin answers again"), 1);

    let port = guest.callback();
    agent.kill();
    assert_eq!(plugin.booked("a"), Some((2, 6)), "who is silent keeps what it was given");
    agent.restart();
    until("it is registered", || agent.pod("a")["runner"]["server"]["mode"] == "running");
    assert_eq!(guest.callback(), port, "informants find it where it was");
    until("it is seen", || agent.slots("a") == Some(6));
    assert_eq!(plugin.booked("a"), Some((2, 6)));
}

#[test]
fn an_informant_that_is_silent_is_said_once_and_so_is_its_return() {
    let plugin = Plugin::start(LIST);
    let folder = Folder::new();
    let machine = Machine::start(folder.path("a.sock"), 0);
    let nobody = SocketAddr::from(([127, 0, 0, 1], 1));
    folder.put("a", &vm_file(machine.path(), nobody));
    let agent = Agent::start_with(&folder, &plugin, "[silence]\nafter = 1\ngrace = 1\n");
    until("it is said", || agent.logged("informant is silent") == 1);
    let tries = "windlass_agent_requests_total{peer=\"informant\",answered=\"no-answer\"} 4";
    until("it is asked again", || agent.metrics().lines().any(|line| line == tries));
    assert_eq!(agent.logged("informant is silent"), 1);
    let (guest, clients) = (Guest::start(), machine.clients());
    folder.put("a", &vm_file(machine.path(), guest.address()));
    until("it is back", || agent.logged("informant is heard again") == 1);
    assert_eq!(
        machine.clients(),
        clients,
        "another address of the informant changes no connection"
    );
}

#[test]
fn a_vm_that_the_plugin_does_not_know_stays_as_it_is() {
    let plugin = Plugin::start(LIST);
    let folder = Folder::new();
    let machine = Machine::start(folder.path("b.sock"), 256);
    let guest = Guest::start();
    guest.load(3.4);
    let agent = Agent::start(&folder, &plugin);
    folder.put("b", &vm_file(machine.path(), guest.address()));
    let refused = "autoscaling_agent_scheduler_plugin_requests_total{code=\"404\"}";
    until("it is refused", || agent.metrics().lines().any(|line| line.starts_with(refused)));
    assert_eq!(agent.slots("b"), Some(4));
    assert_eq!(agent.pod("b")["runner"]["lastApproved"], serde_json::Value::Null);

    folder.put("broken", "qmp = 1\ninformant = 2\n");
    let problems = "windlass_agent_file_problems 1";
    until("a broken file is counted", || agent.metrics().lines().any(|line| line == problems));
    let log = agent.log();
    for words in ["qmp = 1: must be", "informant = 2: must be", "min.cpu: is missing"] {
        assert!(log.contains(words), "{words} in {log}");
    }
    folder.remove("b");
    let tracked = "autoscaling_agent_tracked_vms_current 1";
    assert!(agent.metrics().lines().any(|line| line == tracked));
    drop(machine);
    let none = "autoscaling_agent_tracked_vms_current 0";
    until("it is forgotten with its hypervisor", || {
        agent.metrics().lines().any(|line| line == none)
    });
}

#[test]
fn a_plugin_that_takes_no_version_of_ours_is_said_once_until_it_takes_one_again() {
    let plugin = Receiver::start();
    // As long as an answer may well be.
    let words = "Protocol version mismatch: need v9.0 but got another";
    let mismatch: &str = format!("{words}{}", " ".repeat(2_000)).leak();
    plugin.say(400, mismatch);
    let folder = Folder::new();
    let machine = Machine::start(folder.path("a.sock"), 0);
    let guest = Guest::start();
    folder.put("a", &vm_file(machine.path(), guest.address()));
    let agent = Agent::start_at(&folder, &plugin.address().to_string(), "");
    let warned = || {
        let log = agent.log();
        let lines = log.lines().filter(|line| line.contains("plugin takes no version"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let asked = |version: &str| {
        let stated = format!("\"protoVersion\":{version}");
        plugin.heard().iter().filter(|body| body.contains(&stated)).count()
    };
    until("every version was refused three times", || asked("1") >= 3 && asked("7") >= 3);
    let said = warned();
    assert_eq!(said.len(), 1, "{said:#?}");
    let place = plugin.address().to_string();
    for words in ["WARN", &place, "v1.0", "v5.0", "need v9.0 but got another"] {
        assert!(said[0].contains(words), "{words} in {said:?}");
    }
    let counted = "windlass_agent_requests_total{peer=\"plugin\",answered=\"version\"}";
    assert!(agent.metrics().lines().any(|line| line.starts_with(counted)));

    // Refused for another reason: it has read the version.
    plugin.say(404, "pod not found");
    until("it is heard", || agent.log().contains("plugin takes a version again"));
    plugin.say(400, mismatch);
    until("it is said again", || warned().len() == 2);
}

#[test]
fn the_agent_ends_in_good_order_and_takes_its_leave() {
    let plugin = Plugin::start(LIST);
    let folder = Folder::new();
    let machine = Machine::start(folder.path("a.sock"), 0);
    let guest = Guest::start();
    folder.put("a", &vm_file(machine.path(), guest.address()));
    let systemd = UnixDatagram::bind(folder.path("notify.sock")).unwrap();
    systemd.set_nonblocking(true).unwrap();
    let mut agent = Agent::start(&folder, &plugin);
    until("it is registered", || agent.pod("a")["runner"]["server"]["mode"] == "running");
    folder.write("agent.toml", "plugin = \"http://127.0.0.1:1\"\ntimes.size = 3\n");
    agent.signal("HUP");
    until("a bad file is said", || agent.log().contains("times.size = 3: must be 100ms to 2s"));
    assert_eq!(agent.stop(), Some(0), "{}", agent.log());
    assert!(guest.left() > 0, "it did not take leave of the guest");
    assert!(agent.log().contains("SIGTERM"), "{}", agent.log());
    let mut word = [0; 20];
    let length = systemd.recv(&mut word).unwrap();
    let word = String::from_utf8_lossy(&word[..length]);
    assert!(word.contains("READY=1") || word == "WATCHDOG=1", "{word}");
}

#[test]
fn what_cannot_be_is_refused_in_words_and_with_a_code_of_its_own() {
    let plugin = Plugin::start(LIST);
    let folder = Folder::new();
    let agent = Agent::start(&folder, &plugin);
    let config = folder.path("agent.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    let taken = folder.path("taken.toml");
    let admin = format!("admin = \"{}\"", agent.admin);
    std::fs::write(&taken, text.replace("admin = \"127.0.0.1:0\"", &admin)).unwrap();
    folder.write("odd.json", "{\"informant\":{\"downscaleTimeoutSeconds\":0}}");
    let odd = folder.path("odd.json");
    let free = folder.path("free.sock");
    let free = free.to_str().unwrap();
    for (args, code, words) in [
        (&["--config", "/nonexistent.toml"][..], 66, "there is no such file"),
        (&["--config", "/nonexistent.yaml"], 64, "must end in .toml or .json"),
        (&["--plugin", "plugin:10299"], 64, "does not begin with http://"),
        (&["--pod-ip", "here"], 64, "invalid value 'here'"),
        (&["--admin", "9100"], 64, "invalid value '9100'"),
        (&["--compute-unit-cpu", "0.04"], 64, "must be 0.05 to 64 vCPUs; the nearest is 0.05"),
        (&["--compute-unit-memory", "1GB"], 64, "GB is no unit of memory here; write GiB"),
        (&["--compute-unit-memory", "2TiB"], 64, "must be 1MiB to 1TiB; the nearest is 1TiB"),
        (
            &["--config", odd.to_str().unwrap()],
            65,
            "informant.downscaleTimeoutSeconds = 0: must be",
        ),
        (&["--config", odd.to_str().unwrap()], 65, "--plugin: is needed"),
        (
            &["--config", config.to_str().unwrap(), "--socket", free],
            73,
            "another agent has this state_dir",
        ),
        (
            &["--config", taken.to_str().unwrap(), "--socket", free],
            73,
            "cannot serve admin at 127.0.0.1:",
        ),
        (&["--config", config.to_str().unwrap()], 73, "another process listens there"),
        (
            &[
                "--config",
                config.to_str().unwrap(),
                "--socket",
                free,
                "--admin-socket",
                "/proc/none",
            ],
            73,
            "cannot serve the admin socket /proc/none: ",
        ),
    ] {
        let (got, said) = fail(args);
        assert!(got == code && said.contains(words), "{args:?} ended with {got}: {said}");
    }
}

#[test]
fn what_nobody_reads_is_no_failure_and_what_cannot_be_written_is_one() {
    let folder = Folder::new();
    let place = folder.path("");
    let place = place.display();
    folder.write(
        "agent.toml",
        &format!(
            "plugin = \"http://127.0.0.1:1\"\nstate_dir = \"{place}state\"\n\
             vms_dir = \"{place}vms.d\"\nsocket = \"{place}host.sock\"\nadmin = \"127.0.0.1:0\"\ndump_state = \"127.0.0.1:0\"\n"
        ),
    );
    let config = folder.path("agent.toml");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let (code, said) = speaks_to(writer, &config);
    assert_eq!(code, 0, "{said}");
    let full = File::options().write(true).open("/dev/full").unwrap();
    let (code, said) = speaks_to(full, &config);
    assert!(code == 73 && said.contains("cannot write to standard output: "), "{code}: {said}");
}
