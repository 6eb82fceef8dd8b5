//! Which node's books a VM is in: every node with its books, and where each VM is at home.
//!
//! A new list makes a new directory around the books that stay: what was promised is not
//! forgotten by a reload. A VM that no agent speaks for counts with its maximum.

use crate::config::{PluginConfig, Rule};
use crate::lists::{ListedVm, Lists};
use axum::Router;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use windlass_kit::clock::Clock;
use windlass_plugin::metrics::Metrics;
use windlass_plugin::{Shared, router};
use windlass_plugin_core::Books;
use windlass_protocol::{Resources, VmName};

/// Every node with its books, and where each VM is at home.
#[derive(Clone)]
pub(crate) struct Directory {
    /// By name.
    pub(crate) nodes: BTreeMap<String, Place>,
    /// For whoever asks for a VM that is not listed, or asks nothing that can be understood.
    pub(crate) nobody: Place,
    homes: BTreeMap<VmName, String>,
}

/// A node and its books.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) books: Shared,
    /// What it has, as it is listed.
    pub(crate) total: Resources,
    pub(crate) rule: Rule,
    pub(crate) vms: BTreeMap<VmName, ListedVm>,
    pub(crate) router: Router,
    /// Answers so far, by status and by whether the request had metrics.
    answers: Arc<Mutex<BTreeMap<(u16, bool), u64>>>,
}

// === impl Directory ===

impl Directory {
    /// Of no node.
    pub(crate) fn empty(config: &PluginConfig, clock: Clock, metrics: &Metrics) -> Self {
        let nobody = Place::new(config.rules.usual, Resources::ZERO, clock, metrics);
        Self { nodes: BTreeMap::new(), nobody, homes: BTreeMap::new() }
    }

    /// The same with these lists, whose problems were looked for.
    pub(crate) fn with(
        &self,
        config: &PluginConfig,
        lists: &Lists,
        clock: Clock,
        metrics: &Metrics,
    ) -> Self {
        let left = self.leave(lists);
        let mut nodes = BTreeMap::new();
        for (name, total) in &lists.nodes {
            let rule = config.rules.of(name);
            let known = self.nodes.get(name).cloned();
            let mut place = known.unwrap_or_else(|| Place::new(rule, *total, clock, metrics));
            (place.total, place.rule) = (*total, rule);
            place.books.set_unit(rule.unit);
            let here = lists.vms.iter().filter(|(_, vm)| vm.node == *name);
            place.settle(here.map(|(vm, l)| (vm.clone(), l.clone())).collect(), &left);
            nodes.insert(name.clone(), place);
        }
        let homes = lists.vms.iter().map(|(vm, listed)| (vm.clone(), listed.node.clone()));
        Self { nodes, nobody: self.nobody.clone(), homes: homes.collect() }
    }

    /// Takes VMs out of the books of nodes that they are not on any more; what they were promised
    /// there. Who asks for one of them before it is entered elsewhere is told that it is unknown.
    fn leave(&self, lists: &Lists) -> BTreeMap<VmName, Resources> {
        let mut left = BTreeMap::new();
        for (name, place) in &self.nodes {
            for vm in place.vms.keys() {
                let stays = lists.vms.get(vm).is_some_and(|listed| listed.node == *name);
                if !stays {
                    let promised = place.books.with_books(|books| {
                        let promised = books.reserved_for(vm);
                        books.leave(vm);
                        promised
                    });
                    left.extend(promised.map(|promised| (vm.clone(), promised)));
                }
            }
        }
        left
    }

    /// The node that this VM is on, or the place for all that are on none.
    pub(crate) fn home_of(&self, vm: Option<&VmName>) -> &Place {
        let home = vm.and_then(|vm| self.homes.get(vm)).and_then(|name| self.nodes.get(name));
        home.unwrap_or(&self.nobody)
    }
}

// === impl Place ===

impl Place {
    fn new(rule: Rule, total: Resources, clock: Clock, metrics: &Metrics) -> Self {
        let room = total.saturating_sub(rule.system);
        let books = Shared::counting(Books::new(room), rule.unit, clock, metrics.clone());
        let router = router(books.clone());
        Self { books, total, rule, vms: BTreeMap::new(), router, answers: Arc::default() }
    }

    /// What may be promised to VMs.
    pub(crate) fn room(&self) -> Resources {
        self.total.saturating_sub(self.rule.system)
    }

    /// Enters the VMs that are new here, and updates what is known of the others. `left` is what
    /// those that come from another node were promised there.
    fn settle(&mut self, here: BTreeMap<VmName, ListedVm>, left: &BTreeMap<VmName, Resources>) {
        let room = self.room();
        self.books.with_books(|books| {
            books.set_room(room);
            for (vm, listed) in &here {
                if books.is_spoken_for(vm) {
                    books.update(vm, listed.record());
                } else {
                    let before = left.get(vm).copied().unwrap_or_default();
                    books.presume(vm.clone(), listed.record(), listed.bounds.max.max(before));
                }
                books.set_moving(vm, listed.moving);
            }
        });
        self.vms = here;
    }

    /// Counts an answer.
    pub(crate) fn answered(&self, status: u16, with_metrics: bool) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        *answers.entry((status, with_metrics)).or_default() += 1;
    }

    /// Answers so far, by status and by whether the request had metrics.
    pub(crate) fn answers(&self) -> BTreeMap<(u16, bool), u64> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
