//! `windlass check DIR`: a folder of configuration, file by file and all of it together.

use expect_test::{Expect, expect};
use std::fs;
use std::process::Command;

#[test]
fn a_folder_is_checked_file_by_file_and_as_a_whole() {
    let folder = Folder::new();
    folder.write("host.toml", "[node]\ncpu = 1\nmemory = \"1GiB\"\n");
    folder.write("notes.toml", "name = \"n\"\n");
    folder.write("agent.toml", "plugin = \"http://10.0.0.5:10299\"\nadmin = \"127.0.0.1:10311\"\n");
    folder.write("plugin.json", "{\"memBlockSize\": \"1Gi\"}");
    folder.write("settings.json", "{}");
    std::os::unix::fs::symlink(folder.0.at("vms.d"), folder.0.at("list.toml")).unwrap();
    folder.write("vms.d/db1.toml", &vm("/run/db1.sock", "127.0.0.2:10301", 4));
    folder.write("vms.d/db2.toml", &vm("/run/db1.sock", "192.168.122.31:10301", 1));
    folder.write("vms.d/web.toml", &vm("/run/web.sock", "192.168.122.32:10301", 1));
    folder.write("vms.d/bad.toml", "qmp = 7\n");
    folder.write("vms.d/.db1.toml.swp", "nothing");
    folder.check(
        65,
        expect![[r#"
            DIR/host.toml: valid
            DIR/plugin.json: valid
            DIR/vms.d/db1.toml: valid
            DIR/vms.d/web.toml: valid
            --
            windlass: warning: DIR/host.toml: callback_listen = 127.0.0.1: the guest of web at 192.168.122.32:10301 cannot call back there; set the host's address on that network
            windlass: warning: DIR/notes.toml: is of no known kind, and was not checked; --kind says which
            windlass: warning: DIR/vms.d/db1.toml: max = 4 vCPU / 1GiB: the node has 1 vCPU / 1GiB, so the VM never has its maximum
            windlass: DIR/agent.toml: callback_ports = 10310-11309: must not contain 10311, the port of admin
            DIR/list.toml: is no file
            DIR/vms.d/bad.toml: qmp = 7: must be an absolute path of at most 107 bytes
            DIR/vms.d/bad.toml: informant: is missing: an IP address and a port above 0, as "127.0.0.2:10301"; names are not looked up
            DIR/vms.d/bad.toml: min.cpu: is missing: 0.05 to 512 vCPUs
            DIR/vms.d/bad.toml: min.memory: is missing: 1 to 65535 whole memory slots
            DIR/vms.d/bad.toml: max.cpu: is missing: 0.05 to 512 vCPUs, no less than min.cpu
            DIR/vms.d/bad.toml: max.memory: is missing: 1 to 65535 whole memory slots, no less than min.memory
            DIR/vms.d/db2.toml: qmp = /run/db1.sock: db1 has this monitor, which serves one client at a time
        "#]],
    );
}

#[test]
fn vm_files_beside_host_toml_and_those_of_its_vms_dir_are_found() {
    let folder = Folder::new();
    folder.write("host.toml", "");
    folder.write("db1.toml", &vm("/run/db1.sock", "127.0.0.2:10301", 1));
    folder.check(0, expect!["DIR/host.toml: valid\nDIR/db1.toml: valid\n--\n"]);
    fs::remove_file(folder.0.at("db1.toml")).unwrap();
    let place = folder.0.path().display();
    folder.write("host.toml", &format!("vms_dir = \"{place}/machines\"\n"));
    folder.write("machines/db1.toml", &vm("/run/db1.sock", "127.0.0.2:10301", 1));
    folder.write("machines/host.toml", &vm("/run/host.sock", "127.0.0.3:10301", 1));
    folder.check(
        0,
        expect![[r#"
            DIR/host.toml: valid
            --
        "#]],
    );
}

#[test]
fn a_folder_without_configuration_is_said_to_be_one() {
    let folder = Folder::new();
    folder.write("readme", "");
    folder.check(66, expect!["--\nwindlass: DIR: holds neither host.toml nor a VM file\n"]);
}

#[test]
fn a_file_that_does_not_tell_its_kind_is_read_as_the_one_that_is_said() {
    let folder = Folder::new();
    folder.write("eu1.toml", "state_dir = \"/var/lib/eu1\"\n");
    let whole = |kind: &[&str]| folder.run(&[kind, &[folder.0.path().to_str().unwrap()]].concat());
    let file = folder.0.at("eu1.toml");
    let one = |kind: &[&str]| folder.run(&[kind, &[file.to_str().unwrap()]].concat());
    let (code, said) = one(&[]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("warning: DIR/eu1.toml: is read as host.toml; --kind says"), "{said}");
    folder.write("eu1.json", "{}");
    let (code, said) = folder.run(&[folder.0.at("eu1.json").to_str().unwrap()]);
    assert_eq!(code, 65, "{said}");
    assert!(said.contains("says nothing by which its kind is known: say --kind"), "{said}");
    assert_eq!(one(&["--kind", "host"]), (0, "DIR/eu1.toml: valid\n--\n".to_owned()));
    assert_eq!(one(&["--kind", "agent"]).0, 65, "it names no plugin");
    fs::remove_file(folder.0.at("eu1.json")).unwrap();
    assert_eq!(whole(&["--kind", "host"]), (0, "DIR/eu1.toml: valid\n--\n".to_owned()));
    assert_eq!(whole(&["--kind", "books"]).0, 65);
    let (code, said) = whole(&[]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("is of no known kind, and was not checked; --kind says which"), "{said}");
}

/// A folder. It goes with this value.
struct Folder(windlass_testkit::Folder);

impl Folder {
    fn new() -> Self {
        let folder = windlass_testkit::Folder::create().unwrap();
        fs::create_dir(folder.at("vms.d")).unwrap();
        Self(folder)
    }

    fn write(&self, name: &str, text: &str) {
        self.0.put(name, text);
    }

    /// What is said of it, standard output before standard error.
    fn check(&self, code: i32, said: Expect) {
        let (is, text) = self.run(&[self.0.path().to_str().unwrap()]);
        said.assert_eq(&text);
        assert_eq!(is, code, "{text}");
    }

    fn run(&self, args: &[&str]) -> (i32, String) {
        let program = env!("CARGO_BIN_EXE_windlass");
        let output = Command::new(program).arg("check").args(args).output().unwrap();
        let [out, err] = [output.stdout, output.stderr].map(|b| String::from_utf8(b).unwrap());
        let text = format!("{out}--\n{err}").replace(&self.0.path().display().to_string(), "DIR");
        (output.status.code().unwrap(), text)
    }
}

fn vm(qmp: &str, informant: &str, most: u32) -> String {
    format!(
        "qmp = \"{qmp}\"\ninformant = \"{informant}\"\n[min]\ncpu = 0.25\nmemory = \"256MiB\"\n[max]\n\
         cpu = {most}\nmemory = \"1GiB\"\n"
    )
}
