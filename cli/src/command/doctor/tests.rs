//! How a report reads, and what is found on machines and in files made for it.

mod cluster;

use super::cgroup::{Limits, Servers};
use super::report::{Check, Report};
use super::vms::{finding, fits};
use super::{Args, conflicts, files};
use crate::options::Format;
use crate::out::Output;
use expect_test::expect;
use std::fs;
use std::os::unix::net::UnixListener;
use std::path::Path;
use windlass_drivers::DriverError;
use windlass_drivers_qemu::check::Finding;
use windlass_protocol::{Bytes, MilliCpu, Resources};
use windlass_testkit::Folder;

#[test]
fn a_stopped_qemu_is_not_explained_by_another_client() {
    let section = |found: &Finding| {
        let check = serde_json::to_value(finding(found)).unwrap();
        check["see"].as_str().unwrap().to_owned()
    };
    let unreached = |error: &DriverError| section(&Finding::unreached(error));
    let place = || "/run/db1.sock".to_owned();
    let stopped = "docs/troubleshooting.md#one-qemu-is-stopped";
    assert_eq!(unreached(&DriverError::Stopped { place: place(), pid: 7 }), stopped);
    assert_eq!(section(&Finding::lost()), stopped);
    let other = "docs/troubleshooting.md#does-not-answer-it-serves-one-client-at-a-time";
    assert_eq!(unreached(&DriverError::Taken { place: place() }), other);
}

#[test]
fn a_report_says_what_is_wrong_what_to_do_and_where_to_read_on() {
    let report = report();
    expect![[r#"
        machine
          ✓ the machine has 8 vCPU / 32GiB; VMs may have 8 vCPU / 31GiB
          ‼ there is no /dev/kvm: guests are emulated, which is slow
              Is virtualization on in the firmware?
              see docs/host.md#what-a-vm-needs

        VM db1
          ✗ the control group of QEMU (pid 4242) ends at 2GiB, and the VM may grow to 4GiB: the kernel would
            kill QEMU
              Raise the limit.
              see docs/host.md#the-service

        1 ✓  1 ‼  1 ✗  something does not work
    "#]].assert_eq(&report.text(false, 100));
    expect![[r#"
        {
          "sections": [
            {
              "name": "machine",
              "checks": [
                {
                  "verdict": "good",
                  "found": "the machine has 8 vCPU / 32GiB; VMs may have 8 vCPU / 31GiB"
                },
                {
                  "verdict": "limited",
                  "found": "there is no /dev/kvm: guests are emulated, which is slow",
                  "advice": "Is virtualization on in the firmware?",
                  "see": "docs/host.md#what-a-vm-needs"
                }
              ]
            },
            {
              "name": "VM db1",
              "checks": [
                {
                  "verdict": "failed",
                  "found": "the control group of QEMU (pid 4242) ends at 2GiB, and the VM may grow to 4GiB: the kernel would kill QEMU",
                  "advice": "Raise the limit.",
                  "see": "docs/host.md#the-service"
                }
              ]
            }
          ]
        }"#]].assert_eq(&serde_json::to_string_pretty(&report).unwrap());
    assert!(report.has_failed());
    let coloured = report.text(true, 100);
    assert!(
        coloured.contains('\u{1b}') && !report.text(false, 100).contains('\u{1b}'),
        "{coloured:?}"
    );
}

#[test]
fn files_are_judged_one_by_one_and_together() {
    let dir = Folder::create().unwrap();
    let place = dir.path().display().to_string();
    let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
    fs::create_dir(dir.path().join("vms.d")).unwrap();
    write(
        "host.toml",
        &format!("vms_dir = \"{place}/vms.d\"\n[node]\ncpu = 2\nmemory = \"2GiB\"\n"),
    );
    let vm = |at: &str| {
        format!(
            "qmp = \"/run/a.sock\"\ninformant = \"{at}\"\n[min]\ncpu = 1\nmemory = \"1GiB\"\n\
             [max]\ncpu = 4\nmemory = \"1GiB\"\n"
        )
    };
    write("vms.d/a.toml", &vm("192.168.122.31:10301"));
    write("vms.d/b.toml", &vm("192.168.122.32:10301"));
    let said = |path: &Path| {
        let mut report = Report::default();
        report.add("files", files::checks(&files::read(path)));
        report.text(false, 1_000).replace(&place, "DIR")
    };
    expect![[r#"
        files
          ✓ DIR/host.toml is valid
          ✗ DIR/vms.d/b.toml: qmp = /run/a.sock: a has this monitor, which serves one client at a time (this VM is not managed)
              Correct the file; `windlass check FILE` says whether it is right.
              see docs/configuration.md#vm-file
          ✓ 1 VM file is valid
          ‼ host.toml: callback_listen = 127.0.0.1: the guest of a at 192.168.122.31:10301 cannot call back there; set the host's address on that network
              see docs/configuration.md#hosttoml
          ‼ a.toml: max = 4 vCPU / 1GiB: the node has 2 vCPU / 2GiB, so the VM never has its maximum
              see docs/configuration.md#vm-file

        2 ✓  2 ‼  1 ✗  something does not work
    "#]].assert_eq(&said(&dir.path().join("host.toml")));
    expect![[r#"
        files
          ✗ DIR/gone.toml: there is no such file
              An empty one will do; `windlass check --keys` lists the keys.
              see docs/configuration.md#hosttoml

        0 ✓  0 ‼  1 ✗  something does not work
    "#]]
    .assert_eq(&said(&dir.path().join("gone.toml")));
}

#[tokio::test]
async fn a_stopped_agent_s_own_socket_is_looked_at_without_a_host_toml() {
    let dir = Folder::create().unwrap();
    let place = dir.path().display().to_string();
    let agent =
        "plugin = \"http://127.0.0.1:1\"\nadmin = \"127.0.0.1:2\"\ndump_state = \"127.0.0.1:0\"";
    dir.put("agent.toml", format!("socket = \"{place}/own.sock\"\n{agent}\n"));
    let said = async |socket: Option<&str>| {
        let args = Args {
            config: None,
            socket: socket.map(|name| dir.at(name)),
            format: Format { output: Output::Text },
        };
        super::examine(&args, dir.path()).await.text(false, 1_000).replace(&place, "DIR")
    };
    let without = said(None).await;
    for part in [
        "host\n  ✗ no host answers at DIR/own.sock: there is no such socket",
        "`systemctl status windlass-agent` and `journalctl -u windlass-agent` say why.",
        " group windlass",
        "✗ windlass-agent does not answer at 127.0.0.1:2/livez",
    ] {
        assert!(without.contains(part), "{part}: {without}");
    }
    let told = said(Some("told.sock")).await;
    assert!(told.contains("no host answers at DIR/told.sock"), "{told}");
    // The host is stopped, and the agent's socket is there.
    dir.put("host.toml", format!("socket = \"{place}/host.sock\"\nadmin = \"127.0.0.1:2\"\n"));
    let _served = UnixListener::bind(dir.at("own.sock")).unwrap();
    let configs = super::installed(dir.path());
    let files: Vec<_> = configs.iter().map(|config| files::read(config)).collect();
    let (socket, client) = super::reach(super::sockets(&files));
    assert_eq!((socket, client.is_ok()), (dir.at("own.sock"), true));
}

#[test]
fn what_two_files_claim_is_said_and_what_differs_is_not() {
    let dir = Folder::create().unwrap();
    let place = dir.path().display().to_string();
    let plugin = "plugin = \"http://127.0.0.1:1\"";
    dir.put("host.toml", "callback_ports = \"10400-10500\"\n");
    dir.put("agent.toml", format!("{plugin}\ndump_state = \"0.0.0.0:10290\"\n"));
    dir.put(
        "plugin.toml",
        "listen = \"127.0.0.1:10290\"\nadmin = \"127.0.0.1:10450\"\n\
         dump_state = \"127.0.0.1:0\"\n[[node]]\nname = \"a\"\ncpu = 1\nmemory = \"1GiB\"\n",
    );
    let said = |names: &[&str]| {
        let files: Vec<_> = names.iter().map(|name| files::read(&dir.at(name))).collect();
        let mut report = Report::default();
        report.add("ports", conflicts::checks(&files.iter().collect::<Vec<_>>()));
        report.text(false, 1_000).replace(&place, "DIR")
    };
    expect![[r#"
        ports
          ‼ DIR/host.toml: socket = /run/windlass/host.sock is socket of DIR/agent.toml, too
              Of two programs that run at once, the second cannot have it: change one file.
              see docs/configuration.md#hosttoml
          ‼ DIR/host.toml: admin = 127.0.0.1:10304 is admin of DIR/agent.toml, too
              Of two programs that run at once, the second cannot have it: change one file.
              see docs/configuration.md#hosttoml
          ‼ DIR/host.toml: callback_ports = 10400-10500 overlap 10310-11309 of DIR/agent.toml
              Of two programs that run at once, the second cannot have it: change one file.
              see docs/configuration.md#hosttoml
          ‼ DIR/host.toml: callback_ports = 10400-10500 hold admin of DIR/plugin.toml, 127.0.0.1:10450
              Of two programs that run at once, the second cannot have it: change one file.
              see docs/configuration.md#hosttoml
          ‼ DIR/agent.toml: dump_state = 0.0.0.0:10290 is listen of DIR/plugin.toml, too
              Of two programs that run at once, the second cannot have it: change one file.
              see docs/agent.md#agenttoml
          ‼ DIR/agent.toml: callback_ports = 10310-11309 hold admin of DIR/plugin.toml, 127.0.0.1:10450
              Of two programs that run at once, the second cannot have it: change one file.
              see docs/agent.md#agenttoml

        0 ✓  6 ‼  0 ✗  works, within limits
    "#]].assert_eq(&said(&["host.toml", "agent.toml", "plugin.toml"]));
    dir.put(
        "agent.toml",
        format!(
            "{plugin}\nsocket = \"/run/a.sock\"\nadmin = \"127.0.0.1:10305\"\n\
             callback_ports = \"10501-10600\"\n"
        ),
    );
    dir.put("gone.toml", "x = 1");
    assert!(said(&["host.toml", "agent.toml", "gone.toml"]).starts_with("0 ✓  0 ‼  0 ✗"));
}

#[test]
fn qemu_is_found_by_its_monitor_and_limited_by_every_group_above_it() {
    let dir = Folder::create().unwrap();
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("proc/17/cmdline", "windlass\0vm\0check\0--qmp\0/run/a.sock\0");
    write("proc/18/cmdline", "qemu\0-qmp\0unix:/run/a.sock.old,server=on\0");
    write("proc/19/cmdline", "qemu\0-chardev\0socket,id=w,path=/run/a.sock,server=on\0");
    write("proc/19/cgroup", "0::/machine.slice/a.scope\n");
    write("sys/fs/cgroup/machine.slice/memory.max", "2147483648\n");
    write("sys/fs/cgroup/machine.slice/a.scope/memory.max", "max\n");
    write("sys/fs/cgroup/machine.slice/a.scope/cpu.max", "150000 100000\n");
    write("proc/self/mountinfo", "30 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    let servers = Servers::find(dir.path(), []);
    let found = servers.limits(Path::new("/run/a.sock"), None).unwrap();
    let (memory, cpu) = (Some(Bytes::from_gib(2)), Some(MilliCpu::from_milli(1_500)));
    assert_eq!(found, Limits { pid: 19, memory, cpu, is_unsure: false });
    assert_eq!(servers.limits(Path::new("/run/b.sock"), None), None);
    let mut report = Report::default();
    let most = |cpus, gib| Resources::new(MilliCpu::from_cores(cpus), Bytes::from_gib(gib));
    let said = [most(1, 1), most(2, 1), most(1, 2)].map(|most| fits(&found, most));
    report.add("VM a", said.to_vec());
    expect![[r#"
        VM a
          ✓ no control group keeps QEMU (pid 19) from the VM's maximum, 1 vCPU / 1GiB
          ‼ the control group of QEMU (pid 19) gives it 1.5 CPU, and the VM may grow to 2 vCPU
              Raise the limit of its slice or scope above `max`, or lower `max`.
              see docs/host.md#what-a-vm-needs
          ✗ the control group of QEMU (pid 19) ends at 2GiB, and the VM may grow to 2GiB: the kernel would
            kill QEMU
              Raise the limit of its slice or scope above `max`, or lower `max`.
              see docs/host.md#what-a-vm-needs

        1 ✓  1 ‼  1 ✗  something does not work
    "#]].assert_eq(&report.text(false, 100));
}

/// The limit of Windlass follows the VM: what stood there before it is what keeps the VM from its maximum.
#[test]
fn a_limit_of_windlass_keeps_no_vm_from_its_maximum() {
    let dir = Folder::create().unwrap();
    dir.put("proc/19/cmdline", "qemu\0-qmp\0unix:/run/a.sock,server=on\0");
    dir.put("proc/19/cgroup", "8:cpu,cpuacct:/vms/a\n0::/\n");
    dir.put("proc/self/mountinfo", "30 23 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n");
    let quota = |group: &str, quota: &str| {
        dir.put(&format!("sys/fs/cgroup/cpu/{group}/cpu.cfs_quota_us"), quota);
        dir.put(&format!("sys/fs/cgroup/cpu/{group}/cpu.cfs_period_us"), "100000\n");
    };
    quota("vms", "800000\n");
    quota("vms/a", "25000\n");
    let state = dir.at("state");
    let limits = |servers: Servers, seen| {
        let limits = servers.limits(Path::new("/run/a.sock"), seen).unwrap();
        (limits.cpu.map(MilliCpu::milli), limits.is_unsure)
    };
    let find = || Servers::find(dir.path(), [state.as_path()]);
    assert_eq!(limits(find(), None), (Some(250), false), "it is not of Windlass");
    dir.put(
        "state/limits/vms-a.json",
        r#"{"group":"/vms/a","version":"v1","folder":"/sys/fs/cgroup/cpu/vms/a","unit":null,
            "drop_ins":[],"boot":"","inode":1,"found":{"quota":null,"period":100000},
            "ours":[{"quota":25000,"period":100000}]}"#,
    );
    assert_eq!(limits(find(), None), (Some(8_000), false), "Windlass keeps what it found");
    dir.put("state/limits/vms-a.json", "not to be read");
    let seen = |found: Option<u64>| windlass_protocol::Seen {
        plugged: MilliCpu::from_cores(1),
        limit: Some(MilliCpu::from_milli(250)),
        found_limit: found.map(MilliCpu::from_milli),
        memory: windlass_protocol::MemorySeen::default(),
        state: windlass_protocol::RunState::Running,
    };
    assert_eq!(limits(find(), Some(seen(None))), (Some(8_000), false), "the host says it");
    assert_eq!(limits(find(), Some(seen(Some(250)))), (Some(250), false));
    assert_eq!(limits(find(), None), (Some(250), true), "neither says it");
}

fn report() -> Report {
    let mut report = Report::default();
    report.add("nothing", Vec::new());
    report.add(
        "machine",
        vec![
            Check::good("the machine has 8 vCPU / 32GiB; VMs may have 8 vCPU / 31GiB"),
            Check::limited(
                "there is no /dev/kvm: guests are emulated, which is slow",
                "Is virtualization on in the firmware?",
                "docs/host.md#what-a-vm-needs",
            ),
        ],
    );
    let long = "the control group of QEMU (pid 4242) ends at 2GiB, and the VM may grow to 4GiB: the kernel would kill QEMU";
    report.add("VM db1", vec![Check::failed(long, "Raise the limit.", "docs/host.md#the-service")]);
    report
}
