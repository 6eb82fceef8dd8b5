//! What is found of programs whose VMs are those of a cluster: on a machine of it, and for a pod.

use crate::command::doctor::report::Report;
use crate::command::doctor::{Args, examine, files, machine, programs};
use crate::options::Format;
use crate::out::Output;
use expect_test::expect;
use std::net::TcpListener;
use std::path::Path;
use windlass_testkit::Folder;
use windlass_testkit::tls::{Ca, Valid};

#[tokio::test]
async fn a_plugin_of_a_cluster_is_looked_at_where_it_listens_and_by_what_it_shows() {
    let (dir, taken) = (Folder::create().unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
    let place = dir.path().display().to_string();
    let ca = Ca::new("ca");
    let pair = ca.signs("plugin", Valid::Now);
    for (name, text) in [("crt", &*pair.certificate), ("key", &pair.key), ("ca", ca.pem())] {
        dir.put(name, text);
    }
    let at = taken.local_addr().unwrap();
    let port = format!(":{}", at.port());
    let plugin = |more: &str| {
        let text = format!(
            "admin = \"127.0.0.1:2\"\ndump_state = \"127.0.0.1:0\"\n[kubernetes]\n{more}permits = \"{at}\"\n\
             plain_permits = \"127.0.0.1:0\"\nextender = \"127.0.0.1:0\"\n[kubernetes.tls]\n\
             certificate = \"{place}/crt\"\nkey = \"{place}/key\"\nclient_ca = \"{place}/ca\"\n"
        );
        dir.put("plugin.toml", text)
    };
    let kubeconfig = format!("kubeconfig = \"{place}/kubeconfig\"\n");
    let said = async |path: &Path| found(path).await.replace(&place, "DIR").replace(&port, ":PORT");
    dir.put("kubeconfig", "");
    expect![[r#"
        plugin
          ✗ windlass-plugin does not answer at 127.0.0.1:2/livez: cannot connect to 127.0.0.1:2
              `systemctl status windlass-plugin` says whether it runs. If it does, has another process the port?
              see docs/troubleshooting.md#the-host-does-nothing

        files
          ✓ DIR/plugin.toml is valid
          ✓ kubernetes.tls.certificate, kubernetes.tls.key, kubernetes.tls.client_ca, kubernetes.kubeconfig can be used

        ports
          ✓ no process has the address of dump_state, admin, kubernetes.plain_permits, kubernetes.extender
          ✗ kubernetes.permits = 127.0.0.1:PORT is taken by another process
              `ss -ltnp sport = :PORT` says by which.
              see docs/plugin.md#plugintoml

        3 ✓  0 ‼  2 ✗  something does not work
    "#]].assert_eq(&said(&plugin(&kubeconfig)).await);
    std::fs::remove_file(dir.at("kubeconfig")).unwrap();
    std::fs::remove_file(dir.at("ca")).unwrap();
    std::fs::create_dir(dir.at("ca")).unwrap();
    expect![[r#"
        plugin
          ✗ windlass-plugin does not answer at 127.0.0.1:2/livez: cannot connect to 127.0.0.1:2
              `systemctl status windlass-plugin` says whether it runs. If it does, has another process the port?
              see docs/troubleshooting.md#the-host-does-nothing

        files
          ✓ DIR/plugin.toml is valid
          ✗ kubernetes.tls.client_ca = DIR/ca: is a directory
              Is this the right path?
              see docs/plugin.md#plugintoml
          ✗ kubernetes.kubeconfig = DIR/kubeconfig is not there
              Is this the right path?
              see docs/plugin.md#plugintoml

        ports
          ✓ no process has the address of dump_state, admin, kubernetes.plain_permits, kubernetes.extender
          ✗ kubernetes.permits = 127.0.0.1:PORT is taken by another process
              `ss -ltnp sport = :PORT` says by which.
              see docs/plugin.md#plugintoml

        2 ✓  0 ‼  4 ✗  something does not work
    "#]].assert_eq(&said(&plugin(&kubeconfig)).await);
    std::fs::remove_dir(dir.at("ca")).unwrap();
    dir.put("ca", "no certificate");
    expect![[r#"
        plugin
          ‼ windlass-plugin does not answer at 127.0.0.1:2/livez: cannot connect to 127.0.0.1:2
              A program without `kubeconfig` runs in a pod, which has files and ports of its own: `kubectl --namespace windlass get pods` says whether it runs.
              see docs/troubleshooting.md#the-host-does-nothing

        files
          ✓ DIR/plugin.toml is valid
          ‼ kubernetes.tls.client_ca: DIR/ca: must hold a certificate in PEM
              A program without `kubeconfig` runs in a pod, which has files and ports of its own: `kubectl --namespace windlass get pods` says whether it runs.
              see docs/plugin.md#plugintoml

        ports
          ✓ no process has the address of dump_state, admin, kubernetes.plain_permits, kubernetes.extender
          ‼ kubernetes.permits = 127.0.0.1:PORT is taken by another process
              A program without `kubeconfig` runs in a pod, which has files and ports of its own: `kubectl --namespace windlass get pods` says whether it runs.
              see docs/plugin.md#plugintoml

        2 ✓  3 ‼  0 ✗  works, within limits
    "#]].assert_eq(&said(&plugin("")).await);
}

#[tokio::test]
async fn an_agent_of_a_cluster_is_no_host_and_has_no_vm_files() {
    let (dir, plugin) = (Folder::create().unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
    let place = dir.path().display().to_string();
    dir.put("ca", Ca::new("ca").pem());
    let at = plugin.local_addr().unwrap().to_string();
    let agent = |more: &str| {
        let text = format!(
            "plugin = \"https://{at}\"\nplugin_ca = \"{place}/ca\"\nplugin_token = \"{place}/token\"\n\
             admin = \"127.0.0.1:2\"\ndump_state = \"127.0.0.1:0\"\n[kubernetes]\n{more}"
        );
        dir.put("agent.toml", text)
    };
    let told = |text: String| text.replace(&place, "DIR").replace(&at, "AT");
    agent("");
    let format = Format { output: Output::Text };
    let args = Args { config: None, socket: Some(dir.at("none.sock")), format };
    let report = examine(&args, dir.path()).await;
    assert!(!report.has_failed());
    let report = report.text(false, 1_000);
    // What the machine is like, and so the counts, differ.
    let (machine, rest) = report.split_once("\n\n").unwrap();
    let (rest, _) = rest.rsplit_once("\n\n").unwrap();
    assert!(machine.starts_with("machine\n"), "{report}");
    expect![[r#"
        agent
          ‼ windlass-agent does not answer at 127.0.0.1:2/livez: cannot connect to 127.0.0.1:2
              A program without `kubeconfig` runs in a pod, which has files and ports of its own: `kubectl --namespace windlass get pods` says whether it runs.
              see docs/troubleshooting.md#the-host-does-nothing
          ✓ the plugin listens at AT

        files
          ✓ DIR/agent.toml is valid
          ‼ plugin_token = DIR/token is not there
              A program without `kubeconfig` runs in a pod, which has files and ports of its own: `kubectl --namespace windlass get pods` says whether it runs.
              see docs/agent.md#agenttoml

        ports
          ✓ no process has the address of admin, dump_state"#]].assert_eq(&told(rest.to_owned()));
    dir.put("token", "t");
    dir.put("kubeconfig", "");
    dir.put("pods", "no folder");
    let here = format!("kubeconfig = \"{place}/kubeconfig\"\npods_dir = \"{place}/pods\"\n");
    let files = files::read(&agent(&here));
    let mut report = Report::default();
    report.add("files", files::checks(&files));
    expect![[r#"
        files
          ✓ DIR/agent.toml is valid
          ✗ kubernetes.pods_dir = DIR/pods: not a directory
              Is this the right path?
              see docs/agent.md#agenttoml

        1 ✓  0 ‼  1 ✗  something does not work
    "#]]
    .assert_eq(&told(report.text(false, 1_000)));
}

/// What is said of the program with this file, whose ports it has not.
async fn found(path: &Path) -> String {
    let files = files::read(path);
    let (name, checks) = programs::checks(&files).await.unwrap();
    let mut report = Report::default();
    report.add(name, checks);
    report.add("files", files::checks(&files));
    report.add("ports", machine::ports(&files, false));
    report.text(false, 1_000)
}
