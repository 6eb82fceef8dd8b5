//! What `windlass doctor` says of a host that runs, and of one that does not.

use crate::support::{Host, informant, until, vm_file};
use serde_json::Value;
use windlass_testkit::qmp::Machine;

#[test]
fn a_host_is_examined_with_each_of_its_vms() {
    let mut host = Host::start();
    let machine = Machine::start(host.path("a.sock"), 0);
    let (_guest, at) = informant("windlass_cpus_online 2\n");
    host.put("a", &format!("mode = \"observe\"\n{}", vm_file(machine.path(), &at)));
    host.put("b", &vm_file(&host.path("b.sock"), "127.0.0.71:1"));
    let answers = format!("✓ informant: It answers at {at}.");
    let examined = |host: &Host| {
        let output = host.windlass(&["doctor"]);
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    until("the informant answers", || examined(&host).1.contains(&answers));
    let (_, said) = examined(&host);
    for part in ["machine\n", "host\n", "files\n", "ports\n", "VM a\n", "VM b\n"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(
        said.contains("every part of windlass host is alive")
            && said.contains("2 VM files are valid"),
        "{said}"
    );
    assert!(
        said.contains("b.sock is not there") && said.contains("see docs/host.md#what"),
        "{said}"
    );
    assert!(!said.contains('\u{1b}'), "a pipe gets no colour: {said}");
    host.put("c", "qmp = 7\n");
    let once = "c.toml: qmp = 7: must be an absolute path of at most 107 bytes\n    ";
    until("an invalid file is said once, each problem below the other", || {
        let (_, said) = examined(&host);
        said.matches("qmp = 7").count() == 1 && said.contains(once)
    });
    std::fs::remove_file(host.path("vms.d/c.toml")).unwrap();
    let json = host.windlass(&["doctor", "--output", "json"]).stdout;
    let json: Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(json["sections"][0]["name"], "machine");

    host.stop();
    let config = host.path("host.toml").display().to_string();
    let (code, said) = {
        let output = host.windlass(&["doctor", "--config", &config]);
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("✗ no host answers at") && said.contains("2 VM files are valid"),
        "{said}"
    );
}

#[test]
fn an_agent_and_a_plugin_are_examined_by_their_files() {
    let host = Host::prepare();
    let (_guest, at) = informant("windlass_cpus_online 2\n");
    let machine = Machine::start(host.path("a.sock"), 0);
    host.put("a", &vm_file(machine.path(), &at));
    let place = host.path("").display().to_string();
    let write = |name: &str, text: &str| {
        std::fs::write(host.path(name), text).unwrap();
        let output = host.windlass(&["doctor", "--config", host.path(name).to_str().unwrap()]);
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let agent = format!(
        "plugin = \"http://127.0.0.1:1\"\nadmin = \"127.0.0.1:2\"\ndump_state = \"127.0.0.1:0\"\n\
         vms_dir = \"{place}vms.d\"\n"
    );
    let (code, said) = write("agent.toml", &agent);
    assert_eq!(code, Some(1), "{said}");
    for part in [
        "agent\n  ✗ windlass-agent does not answer at 127.0.0.1:2/livez",
        "✗ no plugin listens at 127.0.0.1:1",
        "agent.toml is valid",
        "1 VM file is valid",
        "callback_listen = 127.0.0.1 is an address",
        &format!("VM a\n  ✓ informant: It answers at {at}."),
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    // Another socket than the file's is told by the environment.
    assert!(
        said.contains("host\n  ✗ no host answers at ") && said.contains("host.sock: "),
        "{said}"
    );
    let (code, said) = write("plugin.toml", "admin = \"127.0.0.1:2\"\n");
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("plugin.toml: node: is missing") && said.contains("plugin.md#"),
        "{said}"
    );
    let listed = "admin = \"127.0.0.1:2\"\n[[node]]\nname = \"a\"\ncpu = 4\nmemory = \"4GiB\"\n";
    let (_, said) = write("plugin.toml", listed);
    assert!(said.contains("✗ windlass-plugin does not answer at 127.0.0.1:2/livez"), "{said}");
}
