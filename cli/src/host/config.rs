//! host.toml: what a host is told about itself, checked as a whole.
//!
//! All problems of a file are reported together, each with the field, what stands there and
//! what may. An unknown key is a problem: a misspelt one would otherwise be a silent default.

use super::keys::{HOST_KEYS, range};
use crate::problem::Problem;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use windlass_protocol::vm_file::Node;
use windlass_protocol::{Bytes, ComputeUnit, MilliCpu};

/// The longest path of a unix socket.
const LONGEST_SOCKET: usize = 107;
const LEAST_CPU: MilliCpu = MilliCpu::from_milli(50);
const TABLES: [&str; 2] = ["node", "compute_unit"];

/// What a host is told about itself.
#[derive(Clone, Debug, PartialEq)]
pub struct HostConfig {
    /// Where it keeps what survives a restart.
    pub state_dir: PathBuf,
    /// Where it looks for VM files.
    pub vms_dir: PathBuf,
    /// Where the command line reaches it.
    pub socket: PathBuf,
    /// Where health and metrics are served.
    pub admin: SocketAddr,
    /// Where informants call back.
    pub callback_listen: IpAddr,
    /// One port per VM.
    pub callback_ports: RangeInclusive<u16>,
    /// Whether a parked vCPU leaves the books.
    pub trust_guest_parking: bool,
    /// What may be promised to VMs.
    pub node: NodeConfig,
    /// The step that sizes move in.
    pub unit: ComputeUnit,
}

/// What may be promised to VMs, as far as the file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeConfig {
    /// vCPUs; absent: the host's count.
    pub cpu: Option<MilliCpu>,
    /// Memory.
    pub memory: NodeMemory,
}

/// Memory that may be promised to VMs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeMemory {
    /// This much.
    Exactly(Bytes),
    /// The host's, less this.
    AllBut(Bytes),
}

// === impl HostConfig ===

impl HostConfig {
    /// Checks what host.toml says.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn from_text(text: &str) -> Result<Self, Vec<Problem>> {
        let table: BTreeMap<String, Node> =
            windlass_kit::config::parse_toml(text).map_err(|problem| {
                let line = problem.line.map_or(String::new(), |line| format!("line {line}: "));
                vec![Problem::without_value(problem.field, format!("{line}{}", problem.message))]
            })?;
        let mut check = Check::of(table);
        let config = check.host();
        check.unknown();
        check.combinations(&config);
        if check.problems.is_empty() { Ok(config) } else { Err(check.problems) }
    }

    /// What differs from `other` and is only read at the start.
    pub fn needs_restart(&self, other: &Self) -> Vec<&'static str> {
        [
            ("state_dir", self.state_dir != other.state_dir),
            ("vms_dir", self.vms_dir != other.vms_dir),
            ("socket", self.socket != other.socket),
            ("admin", self.admin != other.admin),
            ("callback_listen", self.callback_listen != other.callback_listen),
            ("callback_ports", self.callback_ports != other.callback_ports),
            ("trust_guest_parking", self.trust_guest_parking != other.trust_guest_parking),
            ("compute_unit", self.unit != other.unit),
        ]
        .into_iter()
        .filter_map(|(name, differs)| differs.then_some(name))
        .collect()
    }
}

/// The values that were not looked at yet, and what was found wrong with the others.
struct Check {
    nodes: BTreeMap<String, Node>,
    problems: Vec<Problem>,
}

impl Check {
    /// With the keys of tables as `node.cpu` and so on.
    fn of(table: BTreeMap<String, Node>) -> Self {
        let mut check = Self { nodes: BTreeMap::new(), problems: Vec::new() };
        for (name, node) in table {
            let known = TABLES.contains(&name.as_str());
            match node {
                Node::Table(inner) if known => {
                    let inner =
                        inner.into_iter().map(|(key, node)| (format!("{name}.{key}"), node));
                    check.nodes.extend(inner);
                }
                Node::Bool(_)
                | Node::Whole(_)
                | Node::Float(_)
                | Node::Text(_)
                | Node::List(_)
                | Node::Table(_) => {
                    if known {
                        check.wrong(&name, &node, "must be a table, as [node]");
                    } else {
                        check.nodes.insert(name, node);
                    }
                }
            }
        }
        check
    }

    /// Every key is looked at, also when an earlier one is wrong.
    fn host(&mut self) -> HostConfig {
        let unit = ComputeUnit::new(
            self.get("compute_unit.cpu", |node| cpu(node, 64)).unwrap_or(MilliCpu::from_cores(1)),
            self.get("compute_unit.memory", |node| {
                memory(node, Bytes::from_mib(1), Bytes::from_gib(1024))
            })
            .unwrap_or(Bytes::from_gib(1)),
        );
        HostConfig {
            state_dir: self.get("state_dir", path).unwrap_or("/var/lib/windlass".into()),
            vms_dir: self.get("vms_dir", path).unwrap_or("/etc/windlass/vms.d".into()),
            socket: self
                .get("socket", |node| {
                    path(node).filter(|path| path.as_os_str().len() <= LONGEST_SOCKET)
                })
                .unwrap_or("/run/windlass/host.sock".into()),
            admin: self
                .get("admin", |node| node.text()?.parse().ok())
                .unwrap_or(SocketAddr::from((Ipv4Addr::LOCALHOST, 10304))),
            callback_listen: self
                .get("callback_listen", |node| node.text()?.parse().ok())
                .unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            callback_ports: self.get("callback_ports", ports).unwrap_or(10310..=10399),
            trust_guest_parking: self.get("trust_guest_parking", Node::truth).unwrap_or(false),
            node: self.node(),
            unit: unit.expect("neither axis may be zero by its range"),
        }
    }

    fn node(&mut self) -> NodeConfig {
        let cpu = self.get("node.cpu", |node| cpu(node, 4096));
        if let (Some(memory), Some(reserved)) =
            (self.nodes.get("node.memory"), self.nodes.get("node.reserved"))
        {
            let both = format!("{memory} and node.reserved = {reserved}");
            self.wrong("node.memory", &both, "say one of the two, not both");
        }
        let exactly = self
            .get("node.memory", |node| memory(node, Bytes::from_mib(64), Bytes::from_gib(1 << 20)))
            .map(NodeMemory::Exactly);
        let all_but = self.get("node.reserved", Node::memory).unwrap_or(Bytes::from_gib(1));
        NodeConfig { cpu, memory: exactly.unwrap_or(NodeMemory::AllBut(all_but)) }
    }

    fn get<T>(&mut self, name: &'static str, read: impl FnOnce(&Node) -> Option<T>) -> Option<T> {
        let node = self.nodes.remove(name)?;
        let value = read(&node);
        if value.is_none() {
            self.wrong(name, &node, &format!("must be {}", range(name)));
        }
        value
    }

    /// What nobody looked at is not a key.
    fn unknown(&mut self) {
        for (name, node) in std::mem::take(&mut self.nodes) {
            let keys: Vec<_> = HOST_KEYS.iter().map(|key| key.name).collect();
            let keys = keys.join(", ");
            self.wrong(&name, &node, &format!("is not a key; the keys are {keys}"));
        }
    }

    /// What is right by itself and wrong together.
    fn combinations(&mut self, config: &HostConfig) {
        if config.state_dir == config.vms_dir {
            let dir = config.vms_dir.display().to_string();
            self.wrong("vms_dir", &dir, "must not be the same folder as state_dir");
        }
        let HostConfig { admin, callback_listen, callback_ports, .. } = config;
        let same_address = admin.ip() == *callback_listen
            || admin.ip().is_unspecified()
            || callback_listen.is_unspecified();
        if same_address && callback_ports.contains(&admin.port()) {
            let ports = format!("{}-{}", callback_ports.start(), callback_ports.end());
            let limit = format!("must not contain {}, the port of admin", admin.port());
            self.wrong("callback_ports", &ports, &limit);
        }
    }

    fn wrong(&mut self, name: &str, value: &impl Display, limit: &str) {
        self.problems.push(Problem::new(name, value, limit));
    }
}

fn path(node: &Node) -> Option<PathBuf> {
    let text = node.text()?;
    (Path::new(text).is_absolute() && !text.contains('\0')).then(|| PathBuf::from(text))
}

fn cpu(node: &Node, most: u64) -> Option<MilliCpu> {
    node.cpu().filter(|cpu| (LEAST_CPU..=MilliCpu::from_cores(most)).contains(cpu))
}

fn memory(node: &Node, least: Bytes, most: Bytes) -> Option<Bytes> {
    node.memory().filter(|memory| (least..=most).contains(memory))
}

fn ports(node: &Node) -> Option<RangeInclusive<u16>> {
    let (first, last) = node.text()?.split_once('-')?;
    let (first, last): (u16, u16) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    (first > 0 && first <= last).then_some(first..=last)
}
