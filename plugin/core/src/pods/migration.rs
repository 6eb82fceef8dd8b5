//! The migrations of a cluster's VMs: what their objects say, and what is asked for.
//!
//! A VM moves from the moment at which its migration is asked for until that is over or gone, whoever made it. What is asked
//! for and not answered counts as moving, and is asked for again: a migration of its name that is there is as good.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;
use windlass_protocol::{Moment, VmName};

/// As many migrations are remembered that are gone.
const GONE: usize = 64;

/// How many VMs move at a time, and for how long others rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MigrationTerms {
    /// From one node.
    pub per_node: usize,
    /// In the cluster, those that others move too.
    pub in_all: usize,
    /// A VM whose migration ended is not moved again for this long.
    pub rests: Duration,
    /// A migration of the plugin's whose VM has no second pod on a node by then is given up.
    pub placed_within: Duration,
}

/// A migration, as its object says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migration {
    /// The object's name.
    pub name: VmName,
    /// The object's uid.
    pub uid: String,
    /// The object of the VM that moves.
    pub vm: VmName,
    /// The plugin made it, this process or an earlier one.
    pub is_ours: bool,
    /// It has succeeded or failed.
    pub is_over: bool,
}

/// A VM that is to move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// The VM's object.
    pub vm: VmName,
    /// The uid of that.
    pub object: String,
    /// The VM's pod.
    pub pod: VmName,
    /// The node that it is on.
    pub node: String,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A migration is asked for. One that is there already is as good.
    Begin(Move),
    /// A migration of the plugin's is deleted.
    Delete {
        /// The object's name.
        name: VmName,
        /// The object's uid.
        uid: String,
        /// The VM found no other node in time; otherwise the migration is over.
        is_given_up: bool,
    },
}

/// The migrations of a cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct Migrations {
    pub(crate) is_listed: bool,
    /// By the object's name, and since when each is known.
    pub(crate) known: BTreeMap<VmName, (Migration, Moment)>,
    /// By the VM's object: those that are asked for and that no word tells of yet.
    pub(crate) asked: BTreeMap<VmName, Move>,
    /// By the VM's object: not chosen before that.
    pub(crate) rest: BTreeMap<VmName, Moment>,
    /// The pods of VMs that move, by the VM's object.
    pub(crate) pods: BTreeMap<VmName, BTreeSet<VmName>>,
    gone: VecDeque<String>,
}

// === impl MigrationTerms ===

impl Default for MigrationTerms {
    fn default() -> Self {
        let (rests, placed_within) = (Duration::from_secs(600), Duration::from_secs(120));
        Self { per_node: 1, in_all: 4, rests, placed_within }
    }
}

// === impl Move ===

impl Move {
    /// The name of the migration that is asked for: one for each VM, so that it is asked for twice in vain.
    pub fn migration(&self) -> VmName {
        let VmName { namespace, name } = &self.vm;
        VmName { namespace: namespace.clone(), name: format!("windlass-{name}") }
    }

    /// Whether a migration that is there is as good as one that is asked for.
    pub fn is_served_by(&self, there: &Migration) -> bool {
        there.vm == self.vm && !there.is_over
    }
}

// === impl Migrations ===

impl Migrations {
    pub(crate) fn is_moving(&self, vm: &VmName) -> bool {
        self.asked.contains_key(vm) || self.active().any(|migration| migration.vm == *vm)
    }

    /// The VMs that move.
    pub(crate) fn moving(&self) -> BTreeSet<&VmName> {
        self.asked.keys().chain(self.active().map(|migration| &migration.vm)).collect()
    }

    fn active(&self) -> impl Iterator<Item = &Migration> {
        self.known.values().map(|(migration, _)| migration).filter(|migration| !migration.is_over)
    }

    pub(crate) fn see(&mut self, migration: Migration, terms: MigrationTerms, now: Moment) {
        if self.gone.contains(&migration.uid) {
            return;
        }
        self.asked.remove(&migration.vm);
        let known = self.known.get(&migration.name).filter(|(it, _)| it.uid == migration.uid);
        let was_over = known.is_some_and(|(it, _)| it.is_over);
        let since = known.map_or(now, |(_, since)| *since);
        // The answer to its creation may come after the word that it is over.
        let is_over = migration.is_over || was_over;
        if is_over && !was_over {
            self.rest(migration.vm.clone(), terms, now);
        }
        let migration = Migration { is_over, ..migration };
        self.known.insert(migration.name.clone(), (migration, since));
    }

    pub(crate) fn forget(&mut self, name: &VmName, uid: &str, terms: MigrationTerms, now: Moment) {
        self.gone.push_back(uid.to_owned());
        let many = self.gone.len().saturating_sub(GONE);
        self.gone.drain(..many);
        if let Some((gone, _)) = self.known.get(name).filter(|(it, _)| it.uid == uid).cloned() {
            self.known.remove(name);
            if !gone.is_over {
                self.rest(gone.vm, terms, now);
            }
        }
    }

    pub(crate) fn rest(&mut self, vm: VmName, terms: MigrationTerms, now: Moment) {
        self.rest.retain(|_, until| now < *until);
        self.rest.insert(vm, now.after(terms.rests));
    }
}
