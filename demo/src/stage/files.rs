//! The files that a user of `windlass host` would write for the script's VMs.

use crate::script::{Player, Script};
use std::fmt::Write;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::Path;
use windlass_protocol::Resources;

/// host.toml, with everything in `folder`.
pub(super) fn host(script: &Script, folder: &Path, ports: &RangeInclusive<u16>) -> String {
    let path = |name: &str| quoted(&folder.join(name).display().to_string());
    let mut text = String::new();
    let _ = writeln!(text, "state_dir = {}", path("state"));
    let _ = writeln!(text, "vms_dir = {}", path("vms.d"));
    let _ = writeln!(text, "socket = {}", path("host.sock"));
    let _ = writeln!(text, "admin = \"127.0.0.1:0\"");
    let _ = writeln!(text, "callback_listen = \"127.0.0.1\"");
    let _ = writeln!(text, "callback_ports = \"{}-{}\"", ports.start(), ports.end());
    let _ = writeln!(text, "cpu_limit = \"trust\"");
    text.push_str(&size("node", script.room));
    text.push_str(&size("compute_unit", script.unit));
    text
}

/// A VM file.
pub(super) fn vm(script: &Script, player: &Player, qmp: &Path, informant: SocketAddr) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "qmp = {}", quoted(&qmp.display().to_string()));
    let _ = writeln!(text, "informant = \"{informant}\"");
    let _ = writeln!(text, "load_window = \"{}\"", script.window);
    let _ = writeln!(text, "priority = {}", player.priority);
    text.push_str(&size("min", player.bounds.min));
    text.push_str(&size("max", player.bounds.max));
    let target = player.target;
    let _ = writeln!(text, "[target]\nload_average = {:?}", target.load_average);
    let _ = writeln!(text, "memory = {:?}", target.memory);
    // What is to be seen is what the policies call for, not how long it is kept.
    text.push_str("[scale_down]\ncpu = \"0s\"\nmemory = \"0s\"\n");
    text
}

fn size(table: &str, size: Resources) -> String {
    format!("[{table}]\ncpu = {}\nmemory = \"{}MiB\"\n", size.cpu, size.mem.mib())
}

/// A TOML string.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::SCRIPT;
    use expect_test::expect;

    #[test]
    fn the_host_has_the_node_of_the_script() {
        expect![[r#"
            state_dir = "/tmp/x/state"
            vms_dir = "/tmp/x/vms.d"
            socket = "/tmp/x/host.sock"
            admin = "127.0.0.1:0"
            callback_listen = "127.0.0.1"
            callback_ports = "20000-20002"
            cpu_limit = "trust"
            [node]
            cpu = 5
            memory = "1792MiB"
            [compute_unit]
            cpu = 1
            memory = "256MiB"
        "#]]
        .assert_eq(&host(&SCRIPT, Path::new("/tmp/x"), &(20000..=20002)));
    }

    #[test]
    fn a_vm_file_has_what_the_player_has() {
        let informant = SocketAddr::from(([127, 0, 0, 7], 10301));
        expect![[r#"
            qmp = "/tmp/\"x\"/qmp.sock"
            informant = "127.0.0.7:10301"
            load_window = "5s"
            priority = 10
            [min]
            cpu = 1
            memory = "256MiB"
            [max]
            cpu = 2
            memory = "512MiB"
            [target]
            load_average = 1.9
            memory = 1.0
            [scale_down]
            cpu = "0s"
            memory = "0s"
        "#]]
        .assert_eq(&vm(&SCRIPT, &SCRIPT.players[0], Path::new("/tmp/\"x\"/qmp.sock"), informant));
    }
}
