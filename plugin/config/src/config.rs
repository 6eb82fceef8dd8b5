//! What a plugin is told about itself: our plugin.toml, or the reference's JSON.
//!
//! All problems of a file are reported together, each with the field, what stands there and what
//! may. An unknown key is a problem.

use crate::keys::{JSON, OVERRIDE, PLUGIN, UNUSED};
use crate::kubernetes::Kubernetes;
use crate::lists::Lists;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use windlass_kit::addresses::all_differ;
use windlass_kit::config::{self, changed};
use windlass_kit::problem::Problem;
use windlass_protocol::config::{Field, Kind, Node, Reader};
use windlass_protocol::unit_choice::USUAL_MEM;
use windlass_protocol::{Bytes, ComputeUnit, Resources, UnitChoice, VmInfo, quantity};

/// What a plugin is told about itself.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginConfig {
    /// Where agents ask for permits, without a cluster.
    pub listen: SocketAddr,
    /// Where the state is shown, and how long gathering it may take.
    pub dump_state: Option<(SocketAddr, Duration)>,
    /// Where health and metrics are served.
    pub admin: SocketAddr,
    /// The step of memory of VMs that say none.
    pub slot: Bytes,
    /// How nodes are treated.
    pub rules: Rules,
    /// What the reference's JSON says of a cluster.
    pub cluster: Cluster,
    /// The cluster whose nodes and VMs are kept, in place of lists.
    pub kubernetes: Option<Box<Kubernetes>>,
}

/// What the reference's JSON says of a cluster: shown in the state, and not used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cluster {
    /// `schedulerName`; empty: it stands nowhere.
    pub scheduler_name: String,
    /// `migrationDeletionRetrySeconds`; zero: it stands nowhere.
    pub migration_retry_seconds: u64,
    /// `k8sNodeGroupLabel`; empty: it stands nowhere.
    pub node_group_label: String,
}

/// How nodes are treated.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    /// Those that are not named.
    pub usual: Rule,
    /// Those that are; the first that names one counts.
    pub named: Vec<(Vec<String>, Rule)>,
}

/// How a node is treated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// What agents are told.
    pub unit: ComputeUnit,
    /// What is kept from VMs.
    pub system: Resources,
    /// The shares of CPU and memory beyond which the reference would move VMs away.
    pub watermark: (f64, f64),
}

// === impl PluginConfig ===

impl PluginConfig {
    /// Reads plugin.toml, with the lists in it; an `admin` of the command line overrides the file's.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn from_toml(text: &str, admin: Option<SocketAddr>) -> Result<(Self, Lists), Vec<Problem>> {
        let mut file = config::read(&PLUGIN, text)?;
        let slot = VmInfo::DEFAULT_MEMORY_SLOT;
        let (listen, of_file) = (file.get("listen"), file.get("admin"));
        let usual = Rule {
            unit: UnitChoice::read(&mut file).usual(),
            system: Resources::ZERO,
            watermark: (1.0, 1.0),
        };
        let config = Self {
            listen,
            dump_state: Some((file.get("dump_state"), file.get("dump_state_timeout"))),
            admin: admin.unwrap_or(of_file),
            slot,
            rules: Rules { usual, named: Vec::new() },
            cluster: Cluster::default(),
            kubernetes: Kubernetes::read(&mut file).map(Box::new),
        };
        let lists = match &config.kubernetes {
            Some(_) => {
                Lists::forbid(&mut file);
                Lists::default()
            }
            None => Lists::read(&mut file, slot),
        };
        config.check(&mut file);
        file.finish(Some((config, lists)))
    }

    /// Reads the reference's JSON, of any of its releases from v0.12.2 on; of `admin` the same is true.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn from_json(text: &str, admin: Option<SocketAddr>) -> Result<Self, Vec<Problem>> {
        let mut file = config::read(&JSON, text)?;
        let mut own = Reader::of(&PLUGIN, BTreeMap::new());
        let slot = file.get("memBlockSize");
        let base = Rule::base(&mut file, slot);
        let usual = Rule::read(&mut file, slot, base, "nodeDefaults");
        let named = overrides(&mut file, slot, base);
        let cluster = Cluster {
            scheduler_name: file.find("schedulerName").unwrap_or_default(),
            migration_retry_seconds: file.find("migrationDeletionRetrySeconds").unwrap_or_default(),
            node_group_label: file.find("k8sNodeGroupLabel").unwrap_or_default(),
        };
        unused(&mut file);
        let dump_state = file.has_table("dumpState").then(|| {
            let at = SocketAddr::from((Ipv4Addr::UNSPECIFIED, file.get("dumpState.port")));
            (at, file.get("dumpState.timeoutSeconds"))
        });
        let (listen, usual_admin) = (own.get("listen"), own.get("admin"));
        let config = Self {
            listen,
            dump_state,
            admin: admin.unwrap_or(usual_admin),
            slot,
            rules: Rules { usual, named },
            cluster,
            kubernetes: None,
        };
        config.check(&mut file);
        file.finish(Some(config))
    }

    /// What differs from `other` and is only read at the start.
    pub fn needs_restart(&self, other: &Self) -> Vec<&'static str> {
        changed(&[
            ("listen", self.listen != other.listen),
            ("dump_state", self.dump_state != other.dump_state),
            ("admin", self.admin != other.admin),
            ("kubernetes", self.kubernetes != other.kubernetes),
        ])
    }

    /// What is listed, less what is kept from VMs.
    ///
    /// # Errors
    /// A node that would have nothing left, by its name.
    pub fn rooms(&self, lists: &Lists) -> Result<(), Vec<Problem>> {
        let problems: Vec<Problem> = lists
            .nodes
            .iter()
            .filter_map(|(name, total)| {
                let system = self.rules.of(name).system;
                let room = total.saturating_sub(system);
                let limit = format!("must be more than the {system} that are kept for the system");
                (room.cpu.is_zero() || room.mem.is_zero())
                    .then(|| Problem::new(format!("node[{name}]"), total, limit))
            })
            .collect();
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    /// Where it listens, by key.
    pub fn addresses(&self) -> Vec<(&'static str, SocketAddr)> {
        let listen = self.kubernetes.is_none().then_some(("listen", self.listen));
        let dump_state = self.dump_state.map(|(at, _)| ("dump_state", at));
        let own = listen.into_iter().chain(dump_state).chain([("admin", self.admin)]);
        let of_cluster = self.kubernetes.as_deref().map(Kubernetes::addresses);
        own.chain(of_cluster.into_iter().flatten()).collect()
    }

    /// Notes what is right by itself and wrong together.
    fn check(&self, file: &mut Reader) {
        let all: Vec<_> = self.addresses().into_iter().map(|(key, at)| (key, Some(at))).collect();
        all_differ(file, &all);
    }
}

// === impl Rules ===

impl Rules {
    /// How the node of this name is treated.
    pub fn of(&self, node: &str) -> Rule {
        let named = self.named.iter().find(|(nodes, _)| nodes.iter().any(|name| name == node));
        named.map_or(self.usual, |(_, rule)| *rule)
    }
}

// === impl Rule ===

impl Rule {
    /// What holds for every node that says nothing else.
    fn base(file: &mut Reader, slot: Bytes) -> Self {
        let all = file.get("watermark");
        let watermark = (
            file.find("nodeConfig.cpu.watermark").unwrap_or(all),
            file.find("nodeConfig.memory.watermark").unwrap_or(all),
        );
        // No less than a slot, so that it can be said in slots.
        let mem = file.find("computeUnit.mem").unwrap_or(USUAL_MEM.max(slot));
        let unit = UnitChoice { cpu: file.find("computeUnit.vCPUs"), mem: Some(mem) };
        Self { unit: unit.usual(), system: Resources::ZERO, watermark }
    }

    /// Those keys count whose names begin with `of`.
    fn read(file: &mut Reader, slot: Bytes, base: Self, of: &str) -> Self {
        let key = |name: &str| format!("{of}.{name}");
        let (cpu_mark, mem_mark) =
            (file.find(&key("cpu.watermark")), file.find(&key("memory.watermark")));
        let cpu = |node: &Node| node.cpu().filter(|cpu| !cpu.is_zero());
        let mem = |node: &Node| amount(node).filter(|mem| !mem.is_zero());
        let system = Resources {
            cpu: file.find_with(&key("cpu.system"), cpu).unwrap_or_default(),
            mem: file.find_with(&key("memory.system"), mem).unwrap_or_default(),
        };
        let slots: Option<u64> = file.find(&key("computeUnit.mem"));
        let unit = UnitChoice {
            cpu: file.find(&key("computeUnit.vCPUs")).or(Some(base.unit.cpu())),
            mem: slots.map(|slots| slot.saturating_mul(slots)).or(Some(base.unit.mem())),
        };
        let (cpu, mem) = base.watermark;
        let watermark = (cpu_mark.unwrap_or(cpu), mem_mark.unwrap_or(mem));
        Self { unit: unit.usual(), system, watermark }
    }
}

/// What the reference uses to place and move VMs: it is still to be what it should.
fn unused(file: &mut Reader) {
    file.find::<bool>("doMigration");
    for Field { name, kind, .. } in UNUSED {
        if matches!(kind, Kind::Truth) {
            file.find::<bool>(name);
        } else if matches!(kind, Kind::Number { .. }) {
            file.find::<f64>(name);
        } else if matches!(kind, Kind::Whole { .. }) {
            file.find::<u64>(name);
        } else if matches!(kind, Kind::Text { .. }) {
            file.find::<String>(name);
        } else if matches!(kind, Kind::Texts { .. }) {
            file.find::<Vec<String>>(name);
        }
    }
    file.find_with("nodeMetricLabels", |node| {
        let text = |node: &Node| *node == Node::Null || node.text().is_some();
        node.table()?.values().all(text).then_some(())
    });
}

fn overrides(file: &mut Reader, slot: Bytes, base: Rule) -> Vec<(Vec<String>, Rule)> {
    let list = file.find_with("nodeOverrides", |node| node.list().map(<[Node]>::to_vec));
    let mut named = Vec::new();
    for (nth, entry) in list.unwrap_or_default().into_iter().enumerate() {
        let place = format!("nodeOverrides[{nth}]");
        let Node::Table(table) = entry else {
            file.wrong(&place, &entry, "must be an object");
            continue;
        };
        let mut inner = Reader::of(&OVERRIDE, table);
        let nodes = inner.required("nodes").unwrap_or_default();
        let rule = Rule::read(&mut inner, slot, base, "config");
        for name in ["config.minUsageScore", "config.maxUsageScore", "config.scorePeak"] {
            inner.find::<f64>(name);
        }
        match inner.finish(Some((nodes, rule))) {
            Ok(entry) => named.push(entry),
            Err(problems) => file.add(problems.into_iter().map(|p| p.within(&place))),
        }
    }
    named
}

/// An amount of memory as Kubernetes writes it.
fn amount(node: &Node) -> Option<Bytes> {
    match node.text() {
        Some(text) => quantity::memory(text).ok(),
        None => node.memory(),
    }
}
