//! Which nodes there are, and which VMs are on them, as a person lists them.

use crate::keys::{BOOKS, LISTED, NODE};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::sync::Arc;
use windlass_kit::config;
use windlass_kit::problem::Problem;
use windlass_plugin_core::VmRecord;
use windlass_plugin_core::cluster::{DeclaredVm, Place};
use windlass_protocol::config::{Node, Reader};
use windlass_protocol::vm_file::{bounds, memory_slot};
use windlass_protocol::{Bounds, Bytes, Resources, VmName};

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
    pub node: Arc<str>,
    /// Between which sizes it moves.
    pub bounds: Bounds,
    /// The step of memory that its agent counts in.
    pub memory_slot: Bytes,
    /// VMs with a higher number go first.
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
        let mut file = config::read(&BOOKS, text)?;
        let lists = Self::read(&mut file, slot);
        file.finish(Some(lists))
    }

    /// Notes a problem of each list that is there, where the API server says which nodes and VMs there are.
    pub(crate) fn forbid(file: &mut Reader) {
        for list in ["node", "vm"] {
            if let Some(node) = file.peek(list).cloned() {
                let limit =
                    "must not be there with [kubernetes], whose nodes and VMs are the API server's";
                file.wrong(list, &node, limit);
            }
        }
    }

    /// Reads `node` and `vm` of a table. Every entry is looked at, also when another is wrong.
    pub(crate) fn read(file: &mut Reader, slot: Bytes) -> Self {
        let nodes = |list: &Node| entries("node", list, read_node).filter(|all| !all.is_empty());
        let nodes = file.required_with("node", nodes).unwrap_or_default();
        // A node with a problem is still one that VMs may name.
        let named: BTreeSet<_> = nodes.iter().filter_map(|entry| entry.name.clone()).collect();
        let nodes = take(file, nodes, |_, _, _| ());
        let vms = |list: &Node| entries("vm", list, |table| read_vm(table, slot));
        let vms = file.find_with("vm", vms).unwrap_or_default();
        let on_a_node = |file: &mut Reader, place: &str, vm: &ListedVm| {
            if !named.is_empty() && !named.contains(&*vm.node) {
                let known: Vec<_> = named.iter().map(String::as_str).collect();
                let limit = format!("is no [[node]]; there are {}", known.join(", "));
                file.wrong(&format!("{place}.node"), &vm.node, &limit);
            }
        };
        Self { nodes, vms: take(file, vms, on_a_node) }
    }
}

/// The entries of a list by name, which each has for itself; `judge` says what else is wrong with one.
fn take<K: Ord + Display, T>(
    file: &mut Reader,
    list: Vec<Entry<(K, T)>>,
    judge: impl Fn(&mut Reader, &str, &T),
) -> BTreeMap<K, T> {
    let mut taken = BTreeMap::new();
    for Entry { place, read, .. } in list {
        match read {
            Ok((name, _)) if taken.contains_key(&name) => {
                file.wrong(&format!("{place}.name"), &name, "is listed already");
            }
            Ok((name, entry)) => {
                judge(file, &place, &entry);
                taken.insert(name, entry);
            }
            Err(problems) => file.add(problems.into_iter().map(|p| p.within(&place))),
        }
    }
    taken
}

// === impl ListedVm ===

impl ListedVm {
    /// What the books need to know of it.
    pub fn record(&self) -> VmRecord {
        VmRecord::listed(self.priority, self.bounds, self.memory_slot)
    }

    /// The VM, as the cluster knows it. It counts with its maximum until an agent speaks for it.
    pub fn declared(&self) -> DeclaredVm {
        let place = if self.moving { Place::Leaving } else { Place::On };
        DeclaredVm {
            uid: None,
            place: place(Arc::clone(&self.node)),
            record: self.record(),
            ceiling: self.bounds.max,
        }
    }
}

fn read_node(table: BTreeMap<String, Node>) -> Result<(String, Resources), Vec<Problem>> {
    let mut file = Reader::of(&NODE, table);
    let name = file.required_with("name", name);
    let (cpu, mem) = (file.required("cpu"), file.required("memory"));
    let room = cpu.zip(mem).map(|(cpu, mem)| Resources { cpu, mem });
    file.finish(name.zip(room))
}

fn read_vm(table: BTreeMap<String, Node>, slot: Bytes) -> Result<(VmName, ListedVm), Vec<Problem>> {
    let mut file = Reader::of(&LISTED, table);
    let namespace = file.get_with("namespace", name);
    let name = file.required_with("name", name).map(|name| VmName { namespace, name });
    let node = file.required_with("node", |node| node.text().map(Arc::from));
    let (priority, moving) = (file.get("priority"), file.get("moving"));
    let slot = memory_slot(&mut file, slot);
    let bounds = bounds(&mut file, slot);
    let vm = node.zip(bounds).zip(slot).map(|((node, bounds), memory_slot)| ListedVm {
        node,
        bounds,
        memory_slot,
        priority,
        moving,
    });
    file.finish(name.zip(vm))
}

pub(crate) fn name(node: &Node) -> Option<String> {
    let text = node.text()?;
    let plain = |c: char| c.is_ascii_alphanumeric() || ['-', '_', '.'].contains(&c);
    let good = (1..=LONGEST_NAME).contains(&text.len()) && text.chars().all(plain);
    good.then(|| text.to_owned())
}

/// An entry of a list, as far as it was read.
pub(crate) struct Entry<T> {
    /// What a problem calls it: its name, or its place, counted from one.
    pub(crate) place: String,
    name: Option<String>,
    pub(crate) read: Result<T, Vec<Problem>>,
}

/// The tables of a list, read one by one; nothing if something else is among them.
pub(crate) fn entries<T>(
    of: &str,
    list: &Node,
    read: impl Fn(BTreeMap<String, Node>) -> Result<T, Vec<Problem>>,
) -> Option<Vec<Entry<T>>> {
    let entry = |(nth, node): (usize, &Node)| {
        let table = node.table()?;
        let name = table.get("name").and_then(name);
        let place = name.as_ref().map_or_else(|| format!("#{}", nth + 1), String::clone);
        Some(Entry { place: format!("{of}[{place}]"), name, read: read(table.clone()) })
    };
    list.list()?.iter().enumerate().map(entry).collect()
}
