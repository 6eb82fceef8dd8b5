//! What the programs of pods are told otherwise than in a cluster, because they are processes of one machine.
//!
//! - Every address (`0.0.0.0`) becomes that of the pod, since pods share the machine's ports.
//! - The API server is named by a file: a process has no service account mounted. The identity is that of the pod.
//! - The name of the plugin's Service becomes the address of [`Front`](super::front::Front): the machine's name server does not know it.
//! - Guests of the lab reach the machine at one address, that of an agent on a host: an agent is not told the address of its pod.

use super::front::Addresses;
use crate::host::free_ports;
use std::path::{Path, PathBuf};
use windlass_control_plane::kubelet::runtime::Launch;

/// The Service of the plugin, as manifests name it.
const SERVICE: &str = "windlass-plugin.windlass.svc";

/// Call-back ports of one agent, and how many agents share what is free.
const PART: u16 = 2;
const PARTS: u8 = 8;

/// Changes each launch; `pods` is the kubelets' folder of pods.
pub(super) fn for_machine(
    windlass: &Path,
    pods: PathBuf,
    front: Addresses,
) -> impl Fn(&mut Launch) -> PathBuf + use<> {
    let windlass = windlass.to_owned();
    move |launch| {
        let (address, kubeconfig) = (launch.address, launch.kubeconfig.clone());
        let is_agent = launch.program == "windlass-agent";
        for (path, text) in &mut launch.files {
            *text = text
                .replace(&format!("{SERVICE}:10296"), &front.permits.to_string())
                .replace(&format!("{SERVICE}:10297"), &front.extender.to_string())
                .replace("0.0.0.0", &address.to_string());
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let more = match name {
                "plugin.toml" => format!("permits = \"{address}:10296\"\n"),
                "agent.toml" => String::new(),
                "config.yaml" => {
                    text.push_str(&format!("clientConnection:\n  kubeconfig: {kubeconfig:?}\n"));
                    continue;
                }
                _ => continue,
            };
            let port = if is_agent { 10300 } else { 10298 };
            let table = format!("[kubernetes]\nkubeconfig = {kubeconfig:?}\n{more}");
            *text = format!("dump_state = \"{address}:{port}\"\n{text}");
            *text = text.replace("[kubernetes]\n", &table);
            if is_agent {
                // Agents that start at one moment find the same ports free: each takes its own part of them.
                let part = PART * u16::from(address.octets()[3] % PARTS);
                let first = free_ports().expect("some ports are free").start() + part;
                let range = format!("{first}-{}", first + PART - 1);
                *text = format!("callback_ports = \"{range}\"\n{text}");
            }
        }
        if is_agent {
            launch.env.remove("K8S_POD_IP");
            if let Some(folder) = launch.env.get_mut("WINDLASS_PODS_DIR") {
                *folder = pods.display().to_string();
            }
        }
        if launch.program == "kube-scheduler" {
            launch.args.push(format!("--bind-address={address}"));
            return windlass_control_plane::program("kube-scheduler").to_owned();
        }
        windlass.with_file_name(&launch.program)
    }
}
