//! Which nodes there are, and which VMs are on them, as a person lists them.

use crate::keys::{BOOKS_KEYS, LISTED_KEYS, NODE_KEYS};
use std::collections::{BTreeMap, BTreeSet};
use windlass_kit::check::{Check, Form, cpu, memory};
use windlass_kit::config::parse_toml;
use windlass_kit::problem::Problem;
use windlass_plugin_core::VmRecord;
use windlass_plugin_core::cluster::{DeclaredVm, Place};
use windlass_protocol::vm_file::Node;
use windlass_protocol::{Bounds, Bytes, MilliCpu, Resources, VmName, limits};

/// The longest name of a node, a namespace or a VM: Kubernetes' own limit.
const LONGEST_NAME: usize = 253;

/// The nodes, and the VMs on them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lists {
    /// What each node has, by its name.
    pub nodes: BTreeMap<String, Resources>,
    /// The VMs.
    pub vms: BTreeMap<VmName, ListedVm>,
}

/// A VM, as it is listed.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedVm {
    /// The node that it is on, which is in the list.
    pub node: String,
    /// Between which sizes it moves.
    pub bounds: Bounds,
    /// The step of memory that its agent counts in.
    pub memory_slot: Bytes,
    /// Who goes first.
    pub priority: i32,
    /// It is about to be moved.
    pub moving: bool,
}

// === impl Lists ===

impl Lists {
    /// Reads a file that holds nothing else; `slot` is for VMs that say none.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn from_text(text: &str, slot: Bytes) -> Result<Self, Vec<Problem>> {
        let table = parse_toml(text).map_err(|problem| vec![problem.into()])?;
        let mut check = Check::of(BOOKS_KEYS, table, Form::Toml);
        let lists = Self::read(&mut check, slot);
        check.finish(lists)
    }

    /// Reads `node` and `vm` of a table. Every entry is looked at, also when another is wrong.
    pub(crate) fn read(check: &mut Check, slot: Bytes) -> Self {
        let mut lists = Self::default();
        let nodes = check.required("node", |node| tables(node).filter(|list| !list.is_empty()));
        // A node with a problem is still one that VMs may name.
        let mut named = BTreeSet::new();
        for (nth, table) in nodes.unwrap_or_default().into_iter().enumerate() {
            let place = place("node", nth, &table);
            named.extend(table.get("name").and_then(name));
            match read_node(table) {
                Ok((name, _)) if lists.nodes.contains_key(&name) => {
                    check.wrong(&format!("{place}.name"), &name, "is listed already");
                }
                Ok((name, room)) => drop(lists.nodes.insert(name, room)),
                Err(problems) => check.add(problems.into_iter().map(|p| p.within(&place))),
            }
        }
        let vms = check.get("vm", tables).unwrap_or_default();
        for (nth, table) in vms.into_iter().enumerate() {
            let place = place("vm", nth, &table);
            match read_vm(table, slot) {
                Ok((name, _)) if lists.vms.contains_key(&name) => {
                    check.wrong(&format!("{place}.name"), &name, "is listed already");
                }
                Ok((name, vm)) => {
                    if !named.is_empty() && !named.contains(&vm.node) {
                        let known: Vec<_> = named.iter().map(String::as_str).collect();
                        let limit = format!("is no [[node]]; there are {}", known.join(", "));
                        check.wrong(&format!("{place}.node"), &vm.node, &limit);
                    }
                    lists.vms.insert(name, vm);
                }
                Err(problems) => check.add(problems.into_iter().map(|p| p.within(&place))),
            }
        }
        lists
    }
}

// === impl ListedVm ===

impl ListedVm {
    /// What the books need to know of it. One whose bounds are whole vCPUs moves in such.
    pub fn record(&self) -> VmRecord {
        let whole = MilliCpu::from_cores(1);
        let Bounds { min, max } = self.bounds;
        let moves = [min.cpu, max.cpu].iter().all(|cpu| cpu.round_down(whole) == *cpu);
        let step = if moves { whole } else { MilliCpu::ZERO };
        VmRecord::new(self.priority, min, self.memory_slot, step)
    }

    /// The VM, as the cluster knows it. It counts with its maximum until an agent speaks for it.
    pub(crate) fn declared(&self) -> DeclaredVm {
        let place = if self.moving { Place::Leaving } else { Place::On };
        DeclaredVm {
            uid: None,
            place: place(self.node.clone()),
            record: self.record(),
            ceiling: self.bounds.max,
        }
    }
}

fn read_node(table: BTreeMap<String, Node>) -> Result<(String, Resources), Vec<Problem>> {
    let mut check = Check::of(NODE_KEYS, table, Form::Toml);
    let name = check.required("name", name);
    let cpu = check.required("cpu", |node| cpu(node, 4096));
    let mem = check
        .required("memory", |node| memory(node, Bytes::from_mib(64), Bytes::from_gib(1 << 20)));
    let room = cpu.zip(mem).map(|(cpu, mem)| Resources { cpu, mem });
    let whole = check.finish(name.zip(room))?;
    Ok(whole.expect("what is missing is a problem"))
}

fn read_vm(table: BTreeMap<String, Node>, slot: Bytes) -> Result<(VmName, ListedVm), Vec<Problem>> {
    let mut check = Check::of(LISTED_KEYS, table, Form::Toml);
    let namespace = check.get("namespace", name).unwrap_or_else(|| "default".to_owned());
    let name = check.required("name", name).map(|name| VmName { namespace, name });
    let node = check.required("node", |node| node.text().map(str::to_owned));
    let priority = check.get("priority", |node| i32::try_from(node.whole()?).ok()).unwrap_or(0);
    let moving = check.get("moving", Node::truth).unwrap_or(false);
    let memory_slot =
        check.get("memory_slot", |n| n.memory().filter(|slot| limits::slot(*slot))).unwrap_or(slot);
    let cpu = |node: &Node| node.cpu().filter(|cpu| limits::cpu(*cpu));
    let mem = |node: &Node| node.memory().filter(|mem| limits::memory(*mem, memory_slot));
    let min = (check.required("min.cpu", cpu), check.required("min.memory", mem));
    let max = (check.required("max.cpu", cpu), check.required("max.memory", mem));
    let resources = |(cpu, mem): (Option<_>, Option<_>)| Some(Resources { cpu: cpu?, mem: mem? });
    let bounds = resources(min).zip(resources(max)).and_then(|(min, max)| {
        let bounds = limits::bounds(min, max, ["max.cpu", "max.memory"]);
        bounds.map_err(|errors| check.add(errors.into_iter().map(Problem::from))).ok()
    });
    let vm = node.zip(bounds).map(|(node, bounds)| ListedVm {
        node,
        bounds,
        memory_slot,
        priority,
        moving,
    });
    let whole = check.finish(name.zip(vm))?;
    Ok(whole.expect("what is missing is a problem"))
}

fn name(node: &Node) -> Option<String> {
    let text = node.text()?;
    let plain = |c: char| c.is_ascii_alphanumeric() || ['-', '_', '.'].contains(&c);
    let good = (1..=LONGEST_NAME).contains(&text.len()) && text.chars().all(plain);
    good.then(|| text.to_owned())
}

/// The tables of a list; nothing if something else is among them.
fn tables(node: &Node) -> Option<Vec<BTreeMap<String, Node>>> {
    node.list()?.iter().map(|node| node.table().cloned()).collect()
}

/// How an entry is called in a problem: by its name, or by its place, counted from one.
fn place(list: &str, nth: usize, table: &BTreeMap<String, Node>) -> String {
    match table.get("name").and_then(name) {
        Some(name) => format!("{list}[{name}]"),
        None => format!("{list}[#{}]", nth + 1),
    }
}
