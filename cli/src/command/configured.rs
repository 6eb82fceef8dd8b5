//! A file of configuration: of which kind it is, and what it says.
//!
//! `windlass check` and `windlass doctor` read the files of every program, each by the checks by which
//! the program itself reads it.

use crate::host::config::HostConfig;
use crate::host::room::Machine;
use crate::host::together::misfits;
use crate::problem::Problem;
use serde::Serialize;
use std::net::SocketAddr;
use std::path::Path;
use windlass_agent_config::config::{AgentConfig, CommandLine};
use windlass_agent_host::basics::Basics;
use windlass_kit::config::{Unread, read_list, read_text};
use windlass_plugin_config::config::PluginConfig;
use windlass_plugin_config::lists::Lists;
use windlass_protocol::VmInfo;
use windlass_protocol::vm_file::VmFile;

/// What a file is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// host.toml, of `windlass host`.
    Host,
    /// agent.toml or the reference's JSON, of windlass-agent; billing is a part of it.
    Agent,
    /// plugin.toml or the reference's JSON, of windlass-plugin.
    Plugin,
    /// Nodes and VMs alone, for windlass-plugin with a JSON.
    Books,
    /// A VM file.
    Vm,
}

/// What a valid file says.
#[derive(Debug)]
pub(super) enum Configured {
    Host(HostConfig),
    Agent(Box<AgentConfig>),
    Plugin(PluginConfig),
    /// VMs alone, of a VM file or of a list.
    Vms,
}

/// The text of a file, of this kind unless that is to be found out: as long as its program takes it.
pub(super) fn text(file: &Path, kind: Option<Kind>) -> Result<String, Unread> {
    match read_text(file) {
        Err(too_long @ Unread::TooLong { .. }) => {
            let list = read_list(file);
            let found = || Kind::of(file, list.as_deref().unwrap_or_default());
            match kind.or_else(found) {
                Some(Kind::Plugin | Kind::Books) => list,
                Some(Kind::Host | Kind::Agent | Kind::Vm) | None => Err(too_long),
            }
        }
        read => read,
    }
}

// === impl Kind ===

impl Kind {
    /// By the file's folder, its name, or a key that only this kind has, also where the syntax of the
    /// file is broken.
    pub(super) fn of(file: &Path, text: &str) -> Option<Self> {
        let name = |path: Option<&Path>| {
            path.and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned())
        };
        let keys: Vec<&str> = text.lines().map(key).collect();
        let has = |known: &[&str]| keys.iter().any(|key| known.contains(key));
        if name(file.parent()).is_some_and(|folder| folder.ends_with("vms.d"))
            || has(&["qmp", "informant"])
        {
            return Some(Self::Vm);
        }
        match name(Some(file)).unwrap_or_default().as_str() {
            "host.toml" => Some(Self::Host),
            "agent.toml" | "agent.json" => Some(Self::Agent),
            "plugin.toml" | "plugin.json" | "autoscale-enforcer-config.json" => Some(Self::Plugin),
            json if json.ends_with(".json") => {
                let holds = |words: &[&str]| words.iter().any(|word| text.contains(word));
                if holds(&["\"memBlockSize\"", "\"nodeDefaults\"", "\"nodeConfig\""]) {
                    Some(Self::Plugin)
                } else {
                    holds(&["\"scaling\"", "\"scheduler\""]).then_some(Self::Agent)
                }
            }
            _ if has(&["plugin"]) => Some(Self::Agent),
            _ if has(&["[[node]]", "[[vm]]"]) => Some(Self::Plugin),
            _ if has(&["[node]", "socket", "node.cpu", "node.memory"]) => Some(Self::Host),
            _ => None,
        }
    }

    /// Reads the text of such a file.
    pub(super) fn read(self, file: &Path, text: &str) -> Result<Configured, Vec<Problem>> {
        let is_json = file.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
        match self {
            Self::Host => HostConfig::from_text(text).map(Configured::Host),
            Self::Agent => agent(text, is_json).map(Configured::Agent),
            Self::Plugin if is_json => PluginConfig::from_json(text, None).map(Configured::Plugin),
            Self::Plugin => {
                let (config, lists) = PluginConfig::from_toml(text, None)?;
                config.rooms(&lists).map(|()| Configured::Plugin(config))
            }
            Self::Books => {
                Lists::from_text(text, VmInfo::DEFAULT_MEMORY_SLOT).map(|_| Configured::Vms)
            }
            Self::Vm => {
                let stem = file.file_stem().unwrap_or_default().to_string_lossy();
                windlass_vm_files::text::parse(&stem, text).map(|_| Configured::Vms)
            }
        }
    }
}

/// What the command line is to say besides is taken as said.
fn agent(text: &str, is_json: bool) -> Result<Box<AgentConfig>, Vec<Problem>> {
    let mut said = CommandLine { node_name: Some("node".to_owned()), ..CommandLine::default() };
    let config = if is_json {
        said.plugin = "http://127.0.0.1:10299".parse().ok();
        AgentConfig::from_json(text, &said)
    } else {
        AgentConfig::from_toml(text, &said)
    };
    config.map(Box::new)
}

/// The key or the table that a line begins with, as it is written.
fn key(line: &str) -> &str {
    line.split(['=', '#']).next().unwrap_or_default().trim()
}

// === impl Configured ===

impl Configured {
    /// Of the program that sizes VMs.
    pub(super) fn basics(&self) -> Option<&Basics> {
        match self {
            Self::Host(config) => Some(&config.basics),
            Self::Agent(config) => Some(&config.basics),
            Self::Plugin(_) | Self::Vms => None,
        }
    }

    /// The same, if VM files are for it, and people reach it at a socket: in a cluster neither is so.
    pub(super) fn of_host(&self) -> Option<&Basics> {
        self.basics().filter(|_| !self.is_of_cluster())
    }

    /// The same, if informants call back at an address of this machine: in a pod the pod has it.
    pub(super) fn called_back(&self) -> Option<&Basics> {
        self.basics().filter(|_| !self.is_in_pod())
    }

    /// Whether the API server of a cluster says which VMs there are.
    fn is_of_cluster(&self) -> bool {
        match self {
            Self::Agent(config) => config.kubernetes.is_some(),
            Self::Plugin(config) => config.kubernetes.is_some(),
            Self::Host(_) | Self::Vms => false,
        }
    }

    /// Whether the program runs in a pod, which has ports and files of its own: it reaches the API server by the service
    /// account of that pod.
    pub(super) fn is_in_pod(&self) -> bool {
        let kubeconfig = match self {
            Self::Agent(config) => config.kubernetes.as_ref().map(|of| &of.kubeconfig),
            Self::Plugin(config) => config.kubernetes.as_ref().map(|of| &of.kubeconfig),
            Self::Host(_) | Self::Vms => None,
        };
        kubeconfig.is_some_and(Option::is_none)
    }

    /// What does not fit together of this file and these VM files, as [`misfits`] names it.
    pub(super) fn misfits(&self, files: &[&VmFile]) -> Vec<(Option<String>, Problem)> {
        match self {
            Self::Host(config) => {
                let room = Machine::here().room(config.node).ok();
                misfits("host.toml", &config.basics, room, files)
            }
            Self::Agent(config) if !self.is_of_cluster() => {
                misfits("agent.toml", &config.basics, None, files)
            }
            Self::Agent(_) | Self::Plugin(_) | Self::Vms => Vec::new(),
        }
    }

    /// Where the program listens besides its call-back ports, by key.
    pub(super) fn addresses(&self) -> Vec<(&'static str, SocketAddr)> {
        match self {
            Self::Host(config) => config.basics.addresses(),
            Self::Agent(config) => config.basics.addresses(),
            Self::Plugin(config) => config.addresses(),
            Self::Vms => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_known_by_its_folder_its_name_or_a_key() {
        for (file, text, kind) in [
            ("/etc/windlass/vms.d/db1.toml", "", Some(Kind::Vm)),
            ("/srv/old.vms.d/host.toml", "socket = \"/s\"", Some(Kind::Vm)),
            ("/srv/db1.toml", "# no key\n qmp=\"/q\"\n[broken", Some(Kind::Vm)),
            ("db1.toml", "informant = 1", Some(Kind::Vm)),
            ("/etc/windlass/host.toml", "socket = \"/s\"\n# qmp", Some(Kind::Host)),
            ("host.toml", "", Some(Kind::Host)),
            ("big.toml", "[node]\ncpu = 1", Some(Kind::Host)),
            ("agent.toml", "", Some(Kind::Agent)),
            ("eu1.toml", "plugin = \"http://10.0.0.5:10299\"", Some(Kind::Agent)),
            ("config.json", "{\n  \"scaling\": {", Some(Kind::Agent)),
            ("plugin.toml", "", Some(Kind::Plugin)),
            ("nodes.toml", "[[node]]\nname = \"a\"", Some(Kind::Plugin)),
            ("config.json", "{\n  \"memBlockSize\": \"1Gi\"", Some(Kind::Plugin)),
            ("other.toml", "name = 1", None),
            ("other.json", "{}", None),
        ] {
            assert_eq!(Kind::of(Path::new(file), text), kind, "{file}: {text}");
        }
    }

    #[test]
    fn a_program_of_a_cluster_has_other_addresses_and_neither_vm_files_nor_a_socket() {
        let agent = "plugin = \"http://10.0.0.5:1\"\n";
        let plain = "[kubernetes]\nplain_permits = \"127.0.0.1:1\"\n";
        for (kind, text, of_host, called_back, listens) in [
            (Kind::Host, String::new(), true, true, "admin"),
            (Kind::Agent, agent.to_owned(), true, true, "admin dump_state"),
            (
                Kind::Agent,
                format!("{agent}[kubernetes]\nkubeconfig = \"/k\""),
                false,
                true,
                "admin dump_state",
            ),
            (Kind::Agent, format!("{agent}[kubernetes]"), false, false, "admin dump_state"),
            (
                Kind::Plugin,
                "[[node]]\nname = \"a\"\ncpu = 1\nmemory = \"1GiB\"".to_owned(),
                false,
                false,
                "listen dump_state admin",
            ),
            (
                Kind::Plugin,
                plain.to_owned(),
                false,
                false,
                "dump_state admin kubernetes.permits kubernetes.plain_permits kubernetes.extender",
            ),
            (
                Kind::Plugin,
                format!("{plain}plain_extender = true"),
                false,
                false,
                "dump_state admin kubernetes.plain_permits kubernetes.extender",
            ),
        ] {
            let read = kind.read(Path::new("a.toml"), &text).unwrap();
            let is_there = (read.of_host().is_some(), read.called_back().is_some());
            assert_eq!(is_there, (of_host, called_back), "{text}");
            let keys: Vec<_> = read.addresses().into_iter().map(|(key, _)| key).collect();
            assert_eq!(keys.join(" "), listens, "{text}");
        }
    }

    #[test]
    fn a_list_of_vms_may_be_longer_than_other_files() {
        let folder = windlass_testkit::Folder::create().unwrap();
        let length = |file: &str, kind| text(&folder.at(file), kind).map(|text| text.len()).ok();
        for name in ["plugin.toml", "host.toml", "nodes.toml"] {
            folder.put(name, "# a long comment\n".repeat(20_000));
        }
        assert_eq!(length("plugin.toml", None), Some(340_000));
        assert_eq!((length("host.toml", None), length("nodes.toml", None)), (None, None));
        assert_eq!(length("nodes.toml", Some(Kind::Books)), Some(340_000));
    }

    #[test]
    fn each_kind_is_read_by_its_own_checks() {
        let read = |kind: Kind, file: &str, text: &str| kind.read(Path::new(file), text);
        let billed = "plugin = \"http://10.0.0.5:1\"\n[billing]\nurl = \"http://10.0.0.6\"";
        assert!(read(Kind::Agent, "agent.toml", billed).is_ok());
        assert!(read(Kind::Agent, "agent.json", "{\"plugin\": 1}").is_err());
        let listed = "[[node]]\nname = \"a\"\ncpu = 1\nmemory = \"1GiB\"";
        assert!(read(Kind::Plugin, "plugin.toml", listed).is_ok());
        assert!(read(Kind::Books, "books.toml", listed).is_ok());
        assert!(
            read(Kind::Books, "books.toml", &format!("admin = \"127.0.0.1:1\"\n{listed}")).is_err()
        );
        assert!(read(Kind::Host, "host.toml", listed).is_err());
        assert!(read(Kind::Vm, "a.toml", listed).is_err());
        let problems = read(Kind::Agent, "agent.toml", "").unwrap_err();
        assert!(problems[0].to_string().starts_with("plugin: "), "{problems:?}");
    }
}
