//! What a shell offers where a VM is to be named.

use crate::support::{Host, PROGRAM, until, vm_file};
use std::path::Path;
use std::process::Command;

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
        assert_eq!(completed(line, &host.path("host.sock")), offered, "{line}");
    }
    let nowhere = host.path("nowhere.sock");
    assert!(completed("windlass explain db", &nowhere).is_empty());
    let said = format!("windlass explain --socket {} db", host.path("host.sock").display());
    assert_eq!(completed(&said, &nowhere), ["db1", "db2"]);
}

/// What bash, which has the script, offers at the end of this line.
fn completed(line: &str, socket: &Path) -> Vec<String> {
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
        .env("WINDLASS_SOCKET", socket)
        .output()
        .unwrap();
    assert!(shell.stderr.is_empty(), "{}", String::from_utf8_lossy(&shell.stderr));
    let offered = String::from_utf8(shell.stdout).unwrap();
    offered.lines().map(|word| word.trim().to_owned()).filter(|word| !word.is_empty()).collect()
}
