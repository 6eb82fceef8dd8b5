//! Every node with its books, as the lists in force have it.
//!
//! New lists make a new directory around the books that stay: a reload keeps what was reserved
//! and granted. Which node knows a VM, and what a list changes in the books, is the core's
//! [`Cluster`].

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use windlass_kit::clock::Clock;
use windlass_plugin::Shared;
use windlass_plugin::metrics::Requests;
use windlass_plugin_config::config::{PluginConfig, Rule};
use windlass_plugin_config::lists::{ListedVm, Lists};
use windlass_plugin_core::cluster::Node;
use windlass_plugin_core::{Books, Cluster};
use windlass_protocol::{Resources, VmName};

#[derive(Clone, Debug)]
pub(crate) struct Directory {
    /// What the plugin was told about itself.
    pub(crate) config: PluginConfig,
    pub(crate) clock: Clock,
    pub(crate) requests: Requests,
    pub(crate) cluster: Cluster<NodeEntry>,
    /// Answers requests for VMs that are not listed, and requests that cannot be understood.
    pub(crate) unlisted: NodeEntry,
}

#[derive(Clone, Debug)]
pub(crate) struct NodeEntry {
    pub(crate) books: Shared,
    /// What it has, as it is listed.
    pub(crate) total: Resources,
    pub(crate) rule: Rule,
    pub(crate) vms: BTreeMap<Arc<VmName>, ListedVm>,
    /// Answers so far, by status and by whether the request had metrics.
    answers: Arc<Mutex<BTreeMap<(u16, bool), u64>>>,
}

// === impl Directory ===

impl Directory {
    /// Of no node.
    pub(crate) fn empty(config: PluginConfig, clock: Clock) -> Self {
        let requests = Requests::default();
        let unlisted = NodeEntry::new(config.rules.usual, clock, &requests);
        Self { config, clock, requests, cluster: Cluster::default(), unlisted }
    }

    /// The same with these lists, whose problems were looked for.
    pub(crate) fn with(&self, config: PluginConfig, lists: &Lists) -> Self {
        let Self { clock, requests, mut cluster, unlisted, .. } = self.clone();
        let room = |(name, total): (&String, &Resources)| {
            (name.clone(), total.saturating_sub(config.rules.of(name).system))
        };
        let vms = named(lists);
        let mut listed: BTreeMap<&str, Vec<(Arc<VmName>, ListedVm)>> = BTreeMap::new();
        for (name, vm) in &vms {
            listed.entry(&vm.node).or_default().push((Arc::clone(name), vm.clone()));
        }
        let hold = |name: &str, known: Option<NodeEntry>| {
            let rule = config.rules.of(name);
            let known = known.unwrap_or_else(|| NodeEntry::new(rule, clock, &requests));
            known.books.set_unit(rule.unit);
            let total = lists.nodes.get(name).copied().unwrap_or_default();
            let vms = listed.remove(name).unwrap_or_default().into_iter().collect();
            NodeEntry { total, rule, vms, ..known }
        };
        let declared = vms.iter().map(|(name, vm)| (Arc::clone(name), vm.declared()));
        cluster.declare(&lists.nodes.iter().map(room).collect(), declared.collect(), hold);
        Self { config, clock, requests, cluster, unlisted }
    }

    /// The node whose books know this VM, or the one that answers for all that are on none.
    pub(crate) fn node_of(&self, vm: Option<&VmName>) -> &NodeEntry {
        vm.and_then(|vm| self.cluster.node_of(vm)).unwrap_or(&self.unlisted)
    }
}

/// The listed VMs. The name of a VM is in memory once, and so is that of each node.
fn named(lists: &Lists) -> Vec<(Arc<VmName>, ListedVm)> {
    let nodes: BTreeMap<&str, Arc<str>> =
        lists.nodes.keys().map(|name| (name.as_str(), name.as_str().into())).collect();
    let named = |(name, vm): (&VmName, &ListedVm)| {
        let node = nodes.get(&*vm.node).unwrap_or(&vm.node);
        (Arc::new(name.clone()), ListedVm { node: Arc::clone(node), ..vm.clone() })
    };
    lists.vms.iter().map(named).collect()
}

// === impl NodeEntry ===

impl NodeEntry {
    /// A node without room.
    fn new(rule: Rule, clock: Clock, requests: &Requests) -> Self {
        let books = Books::new(Resources::ZERO);
        let books = Shared::counting(books, rule.unit, clock, requests.clone());
        let total = Resources::ZERO;
        Self { books, total, rule, vms: BTreeMap::new(), answers: Arc::default() }
    }

    /// The most that may be reserved for VMs.
    pub(crate) fn room(&self) -> Resources {
        self.total.saturating_sub(self.rule.system)
    }

    pub(crate) fn answered(&self, status: u16, with_metrics: bool) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        *answers.entry((status, with_metrics)).or_default() += 1;
    }

    pub(crate) fn answers(&self) -> BTreeMap<(u16, bool), u64> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Node for NodeEntry {
    fn with_books<T>(&self, ask: impl FnOnce(&mut Books) -> T) -> T {
        self.books.with_books(ask)
    }
}
