//! What a plugin is told about itself: our plugin.toml, or the reference's JSON.
//!
//! All problems of a file are reported together, each with the field, what stands there and what
//! may. An unknown key is a problem.

use crate::keys::{JSON_KEYS, OVERRIDE_KEYS, PLUGIN_KEYS};
use crate::lists::Lists;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use windlass_kit::check::{Check, Form, address, cpu, memory, time};
use windlass_kit::config::{parse_json, parse_toml};
use windlass_kit::problem::Problem;
use windlass_protocol::vm_file::Node;
use windlass_protocol::{Bytes, ComputeUnit, MilliCpu, Resources, VmInfo, limits, quantity};

/// The longest time that gathering the state may take.
const LONGEST_DUMP: Duration = Duration::from_secs(60);

/// What a plugin is told about itself.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginConfig {
    /// Where agents ask for permits.
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

/// What the command line and the environment say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// In place of `admin`.
    pub admin: Option<SocketAddr>,
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
    /// Reads plugin.toml, with the lists in it.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn from_toml(text: &str) -> Result<(Self, Lists), Vec<Problem>> {
        Given::default().toml(text)
    }

    /// Reads the reference's JSON, of any of its releases from v0.12.2 on.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn from_json(text: &str) -> Result<Self, Vec<Problem>> {
        Given::default().json(text)
    }

    /// What differs from `other` and is only read at the start.
    pub fn needs_restart(&self, other: &Self) -> Vec<&'static str> {
        [
            ("listen", self.listen != other.listen),
            ("dump_state", self.dump_state != other.dump_state),
            ("admin", self.admin != other.admin),
        ]
        .into_iter()
        .filter_map(|(name, differs)| differs.then_some(name))
        .collect()
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

    fn addresses(&self, check: &mut Check) {
        let dump = self.dump_state.map(|(at, _)| at);
        let all =
            [("listen", Some(self.listen)), ("dump_state", dump), ("admin", Some(self.admin))];
        for (nth, (name, at)) in all.iter().enumerate() {
            for (other, theirs) in &all[..nth] {
                let (Some(at), Some(theirs)) = (at, theirs) else { continue };
                let same = at.ip() == theirs.ip()
                    || at.ip().is_unspecified()
                    || theirs.ip().is_unspecified();
                if same && at.port() == theirs.port() && at.port() != 0 {
                    check.wrong(name, at, &format!("must not be the address of {other}"));
                }
            }
        }
    }
}

// === impl Cluster ===

impl Cluster {
    fn read(check: &mut Check) -> Self {
        let text = |node: &Node| node.text().map(str::to_owned);
        let name = check.get("schedulerName", |node| text(node).filter(|text| !text.is_empty()));
        let seconds = check.get("migrationDeletionRetrySeconds", |node| whole(node, 86_400));
        Self {
            scheduler_name: name.unwrap_or_default(),
            migration_retry_seconds: seconds.unwrap_or_default(),
            node_group_label: check.get("k8sNodeGroupLabel", text).unwrap_or_default(),
        }
    }
}

// === impl Given ===

impl Given {
    /// Reads plugin.toml, with the lists in it.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn toml(&self, text: &str) -> Result<(PluginConfig, Lists), Vec<Problem>> {
        let table = parse_toml(text).map_err(|problem| vec![problem.into()])?;
        let mut check = Check::of(PLUGIN_KEYS, table, Form::Toml);
        let unit = ComputeUnit::new(
            check.get("compute_unit.cpu", |n| cpu(n, 64)).unwrap_or(MilliCpu::from_cores(1)),
            check
                .get("compute_unit.memory", |n| {
                    memory(n, Bytes::from_mib(1), Bytes::from_gib(1024))
                })
                .unwrap_or(Bytes::from_gib(1)),
        );
        let unit = unit.expect("neither axis may be zero by its range");
        let listen = check.get("listen", address).unwrap_or(everywhere(10299));
        let dump = check.get("dump_state", address).unwrap_or(here(10298));
        let range = Duration::from_millis(100)..=LONGEST_DUMP;
        let limit = check.get("dump_state_timeout", |node| time(node, &range));
        let admin = check.get("admin", address).unwrap_or(here(10305));
        let admin = self.admin.unwrap_or(admin);
        let slot = VmInfo::DEFAULT_MEMORY_SLOT;
        let lists = Lists::read(&mut check, slot);
        let usual = Rule { unit, system: Resources::ZERO, watermark: (1.0, 1.0) };
        let config = PluginConfig {
            listen,
            dump_state: Some((dump, limit.unwrap_or(Duration::from_secs(5)))),
            admin,
            slot,
            rules: Rules { usual, named: Vec::new() },
            cluster: Cluster::default(),
        };
        config.addresses(&mut check);
        check.finish((config, lists))
    }

    /// Reads the reference's JSON, of any of its releases from v0.12.2 on.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn json(&self, text: &str) -> Result<PluginConfig, Vec<Problem>> {
        let table = parse_json(text).map_err(|problem| vec![problem.into()])?;
        let mut check = Check::of(JSON_KEYS, table, Form::Json);
        let slot = check
            .get("memBlockSize", |node| amount(node).filter(|slot| limits::slot(*slot)))
            .unwrap_or(VmInfo::DEFAULT_MEMORY_SLOT);
        let base = Base::read(&mut check, slot);
        let usual = Rule::read(&mut check, slot, base, DEFAULTS);
        let named = overrides(&mut check, slot, base);
        let cluster = Cluster::read(&mut check);
        unused(&mut check);
        let dump = if check.has_table("dumpState") {
            let port = check.get("dumpState.port", |node| whole(node, 65_535)).unwrap_or(10_298);
            let limit = check.get("dumpState.timeoutSeconds", |node| whole(node, 60)).unwrap_or(5);
            Some((port, limit))
        } else {
            None
        };
        let dump_state = dump.and_then(|(port, seconds)| {
            Some((everywhere(u16::try_from(port).ok()?), Duration::from_secs(seconds)))
        });
        let config = PluginConfig {
            listen: everywhere(10299),
            dump_state,
            admin: self.admin.unwrap_or(here(10305)),
            slot,
            rules: Rules { usual, named },
            cluster,
        };
        config.addresses(&mut check);
        check.finish(config)
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

/// What holds for every node that says nothing else.
#[derive(Clone, Copy)]
struct Base {
    unit: ComputeUnit,
    watermark: (f64, f64),
}

/// The names of a rule's keys: of `nodeDefaults`, or of an override.
type Names = [&'static str; 6];

const DEFAULTS: Names = [
    "nodeDefaults.cpu.watermark",
    "nodeDefaults.cpu.system",
    "nodeDefaults.memory.watermark",
    "nodeDefaults.memory.system",
    "nodeDefaults.computeUnit.vCPUs",
    "nodeDefaults.computeUnit.mem",
];

const OVERRIDE: Names = [
    "config.cpu.watermark",
    "config.cpu.system",
    "config.memory.watermark",
    "config.memory.system",
    "config.computeUnit.vCPUs",
    "config.computeUnit.mem",
];

// === impl Rule ===

impl Rule {
    fn read(check: &mut Check, slot: Bytes, base: Base, names: Names) -> Self {
        let [cpu_mark, cpu_system, mem_mark, mem_system, unit_cpu, unit_mem] = names;
        let marks = (check.get(cpu_mark, share), check.get(mem_mark, share));
        let system = Resources {
            cpu: check
                .get(cpu_system, |node| node.cpu().filter(|cpu| !cpu.is_zero()))
                .unwrap_or_default(),
            mem: check
                .get(mem_system, |node| amount(node).filter(|mem| !mem.is_zero()))
                .unwrap_or_default(),
        };
        let cpu = check.get(unit_cpu, |node| cpu(node, 64)).unwrap_or(base.unit.cpu());
        let slots = check.get(unit_mem, |node| whole(node, 65_535));
        let mem = slots.map_or(base.unit.mem(), |slots| slot.saturating_mul(slots));
        let unit = ComputeUnit::new(cpu, mem);
        Self {
            unit: unit.expect("neither axis may be zero by its range"),
            system,
            watermark: (marks.0.unwrap_or(base.watermark.0), marks.1.unwrap_or(base.watermark.1)),
        }
    }
}

// === impl Base ===

impl Base {
    fn read(check: &mut Check, slot: Bytes) -> Self {
        let all = check.get("watermark", share).unwrap_or(1.0);
        let cpu_mark = check.get("nodeConfig.cpu.watermark", share).unwrap_or(all);
        let mem_mark = check.get("nodeConfig.memory.watermark", share).unwrap_or(all);
        let cpu = check.get("computeUnit.vCPUs", |node| cpu(node, 64));
        let (least, most) = (Bytes::from_mib(1), Bytes::from_gib(1024));
        let mem = check
            .get("computeUnit.mem", |node| amount(node).filter(|mem| (least..=most).contains(mem)));
        // No less than a slot, so that it can be said in slots.
        let mem = mem.unwrap_or(Bytes::from_gib(1).max(slot));
        let unit = ComputeUnit::new(cpu.unwrap_or(MilliCpu::from_cores(1)), mem);
        let unit = unit.expect("neither axis may be zero by its range");
        Self { unit, watermark: (cpu_mark, mem_mark) }
    }
}

/// What the reference uses to place and move VMs: it is still to be what it should.
fn unused(check: &mut Check) {
    for name in ["doMigration", "scoring.randomize", "randomizeScores"] {
        check.get(name, Node::truth);
    }
    check.get("k8sAvailabilityZoneLabel", |node| node.text().map(drop));
    for name in [
        "nodeDefaults.minUsageScore",
        "nodeDefaults.maxUsageScore",
        "nodeDefaults.scorePeak",
        "nodeConfig.minUsageScore",
        "nodeConfig.maxUsageScore",
        "nodeConfig.scorePeak",
        "scoring.minUsageScore",
        "scoring.maxUsageScore",
        "scoring.scorePeak",
    ] {
        check.get(name, score);
    }
    for name in [
        "eventQueueWorkers",
        "reconcileWorkers",
        "logSuccessiveFailuresThreshold",
        "startupEventHandlingTimeoutSeconds",
        "patchRetryWaitSeconds",
        "k8sCRUDTimeoutSeconds",
    ] {
        check.get(name, |node| whole(node, 86_400));
    }
    for name in ["ignoreNamespaces", "ignoredNamespaces"] {
        check.get(name, texts);
    }
    check.get("nodeMetricLabels", |node| {
        let text = |node: &Node| *node == Node::Null || node.text().is_some();
        node.table()?.values().all(text).then_some(())
    });
}

fn overrides(check: &mut Check, slot: Bytes, base: Base) -> Vec<(Vec<String>, Rule)> {
    let list = check.get("nodeOverrides", |node| node.list().map(<[Node]>::to_vec));
    let mut named = Vec::new();
    for (nth, entry) in list.unwrap_or_default().into_iter().enumerate() {
        let place = format!("nodeOverrides[{nth}]");
        let Node::Table(table) = entry else {
            check.wrong(&place, &entry, "must be an object");
            continue;
        };
        let mut inner = Check::of(OVERRIDE_KEYS, table, Form::Json);
        let nodes = inner.required("nodes", names).unwrap_or_default();
        let rule = Rule::read(&mut inner, slot, base, OVERRIDE);
        for name in ["config.minUsageScore", "config.maxUsageScore", "config.scorePeak"] {
            inner.get(name, score);
        }
        match inner.finish((nodes, rule)) {
            Ok(entry) => named.push(entry),
            Err(problems) => check.add(problems.into_iter().map(|p| p.within(&place))),
        }
    }
    named
}

fn names(node: &Node) -> Option<Vec<String>> {
    texts(node).filter(|names| !names.is_empty())
}

fn texts(node: &Node) -> Option<Vec<String>> {
    node.list()?.iter().map(|node| node.text().map(str::to_owned)).collect()
}

/// A share: above 0, at most 1.
fn share(node: &Node) -> Option<f64> {
    node.number().filter(|share| *share > 0.0 && *share <= 1.0)
}

fn score(node: &Node) -> Option<f64> {
    node.number().filter(|score| (0.0..=1.0).contains(score))
}

/// An amount of memory as Kubernetes writes it.
fn amount(node: &Node) -> Option<Bytes> {
    match node.text() {
        Some(text) => quantity::memory(text).ok(),
        None => node.memory(),
    }
}

/// A whole number from 1 to `most`.
fn whole(node: &Node, most: u64) -> Option<u64> {
    u64::try_from(node.whole()?).ok().filter(|number| (1..=most).contains(number))
}

const fn here(port: u16) -> SocketAddr {
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), port)
}

const fn everywhere(port: u16) -> SocketAddr {
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::UNSPECIFIED), port)
}
