//! What a shell offers where a VM is to be named.

use crate::support::{Host, PROGRAM, until, vm_file};
use axum::Router;
use axum::http::HeaderMap;
use axum::routing::get;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use windlass_kit::server::{Counts, Limits, Reloads, Tls, TlsFiles, TlsListener, serve};
use windlass_kit::tasks::Tasks;
use windlass_testkit::Folder;
use windlass_testkit::tls::{Ca, Valid};

#[test]
fn a_shell_offers_the_vms_of_the_host() {
    let host = Host::start();
    for vm in ["db1", "db2", "web"] {
        host.put(vm, &vm_file(&host.path(&format!("{vm}.sock")), "127.0.0.71:1"));
    }
    until("all are known", || host.say(&["vm", "list"]).contains("web"));
    for (line, offered) in [
        ("windlass explain db", &["db1", "db2"][..]),
        ("windlass vm check w", &["web"]),
        ("windlass vm release d", &["db1", "db2"]),
        ("windlass fre", &["freeze"]),
        ("windlass top --so", &["--sort", "--socket"]),
    ] {
        assert_eq!(of_host(line, &host.path("host.sock")), offered, "{line}");
    }
    let nowhere = host.path("nowhere.sock");
    assert!(of_host("windlass explain db", &nowhere).is_empty());
    let said = format!("windlass explain --socket {} db", host.path("host.sock").display());
    assert_eq!(of_host(&said, &nowhere), ["db1", "db2"]);
}

#[test]
fn a_shell_offers_the_vms_that_the_plugin_of_a_cluster_shows() {
    let host = Host::start();
    host.put("db3", &vm_file(&host.path("db3.sock"), "127.0.0.71:1"));
    until("it is known", || host.say(&["vm", "list"]).contains("db3"));
    let (folder, runtime) = (Folder::create().unwrap(), Runtime::new().unwrap());
    let ca = Ca::new("plugin");
    let _entered = runtime.enter();
    let tasks = Tasks::default();
    let at = runtime.block_on(plugin(&ca, &folder, &tasks));
    let files = [folder.put("ca.crt", ca.pem()), folder.put("token", "t")];
    let [ca, token] = files.map(|file| file.display().to_string());
    let (socket, server) = (host.path("host.sock").display().to_string(), format!("https://{at}"));
    let trusted = [("WINDLASS_SOCKET", &*socket), ("WINDLASS_CA", &ca), ("WINDLASS_TOKEN", "t")];
    let asked = [&trusted[..], &[("WINDLASS_SERVER", &*server)]].concat();
    for (line, offered) in [
        ("windlass explain shop/d", &["shop/db1", "shop/db2"][..]),
        ("windlass explain --namespace shop d", &["db1", "db2"]),
        ("windlass explain -n other d", &[]),
        ("windlass pause d", &["db3"]),
    ] {
        assert_eq!(completed(line, &asked), offered, "{line}");
    }
    let said = format!("windlass explain --server {server} --ca {ca} --token {token} shop/d");
    assert_eq!(completed(&said, &trusted[..1]), ["shop/db1", "shop/db2"]);
    assert!(completed("windlass explain --server https://127.0.0.1:1 d", &trusted).is_empty());
    assert_eq!(completed("windlass explain d", &trusted), ["db3"]);
    tasks.stop();
}

/// A plugin that shows two VMs to whoever has the token.
async fn plugin(ca: &Ca, folder: &Folder, tasks: &Tasks) -> SocketAddr {
    let pair = ca.signs("plugin", Valid::Now);
    let (certificate, key) = (folder.put("crt", pair.certificate), folder.put("key", pair.key));
    let tls = Tls::load(TlsFiles { certificate, key, client_ca: None }, Reloads::default());
    let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = tcp.local_addr().unwrap();
    let all = || {
        async |headers: HeaderMap| {
            assert_eq!(headers["authorization"], "Bearer t");
            json!({"at": 1, "vms": (["db1", "db2"].map(view)), "left_out": 0}).to_string()
        }
    };
    let shown =
        Router::new().route("/v1/vms", get(all())).route("/v1/namespaces/shop/vms", get(all()));
    let limits = Limits::small(Counts::default());
    let listener = TlsListener::new(tcp, tls.unwrap());
    tasks.vital("plugin", serve(listener, shown, limits, tasks.stopping()));
    at
}

fn view(vm: &str) -> Value {
    let (name, size) =
        (json!({"namespace": "shop", "name": vm}), json!({"cpu": 1000, "mem": 1024}));
    json!({
        "object": name, "pod": name, "node": "n", "bounds": {"min": size, "max": size}, "priority": 0,
        "reserved": size, "condition": {"reason": "Following", "message": ""},
    })
}

fn of_host(line: &str, socket: &Path) -> Vec<String> {
    completed(line, &[("WINDLASS_SOCKET", socket.to_str().unwrap())])
}

/// What bash, which has the script, offers at the end of this line, with these variables.
fn completed(line: &str, variables: &[(&str, &str)]) -> Vec<String> {
    let words = line.split(' ').map(|word| format!("{word:?}")).collect::<Vec<_>>().join(" ");
    let script = format!(
        "source <(windlass completions bash)\nCOMP_WORDS=({words})\n\
         COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))\nCOMP_TYPE=9\n\
         _clap_complete_windlass windlass \"${{COMP_WORDS[COMP_CWORD]}}\" x\n\
         printf '%s\\n' \"${{COMPREPLY[@]}}\""
    );
    let folder = Path::new(PROGRAM).parent().unwrap().display();
    let path = format!("{folder}:{}", std::env::var("PATH").unwrap());
    let shell = Command::new("bash")
        .args(["--norc", "-c", &script])
        .env("PATH", path)
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    assert!(shell.stderr.is_empty(), "{}", String::from_utf8_lossy(&shell.stderr));
    let offered = String::from_utf8(shell.stdout).unwrap();
    offered.lines().map(|word| word.trim().to_owned()).filter(|word| !word.is_empty()).collect()
}
