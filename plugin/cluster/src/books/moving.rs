//! Migrations: what the watch tells of them, and what is to be done.

use super::ClusterBooks;
use windlass_plugin_core::pods::{Migration, Move, Step};
use windlass_protocol::Resources;

/// A node that has a watermark.
#[derive(Clone, Debug)]
pub(crate) struct Watermark {
    /// The node.
    pub(crate) name: String,
    /// As much of it may be taken before VMs leave it.
    pub(crate) watermark: Resources,
    /// By how much what is taken and asked for is more, less what leaves already.
    pub(crate) pressure: Resources,
}

// === impl ClusterBooks ===

impl ClusterBooks {
    /// These are the migrations from here on.
    pub fn migrations_listed(&self, all: Vec<Migration>) {
        let now = self.now();
        self.write().migrations_listed(all, now);
    }

    /// The watch, or the answer to its creation, shows a migration.
    pub fn migration_seen(&self, migration: Migration) {
        let now = self.now();
        self.write().migration_seen(migration, now);
    }

    /// The watch shows that a migration is gone.
    pub fn migration_gone(&self, migration: &Migration) {
        let now = self.now();
        self.write().migration_gone(&migration.name, &migration.uid, now);
    }

    /// What is to be done, if this process leads.
    pub(crate) fn migration_plan(&self) -> Vec<Step> {
        let now = self.now();
        if self.serves().is_ok() { self.read().migration_plan(now) } else { Vec::new() }
    }

    /// A migration is asked for now.
    pub(crate) fn migration_sent(&self, goes: &Move) {
        self.write().migration_sent(goes);
    }

    /// The API server refuses a migration that was asked for.
    pub(crate) fn migration_refused(&self, goes: &Move) {
        let now = self.now();
        self.write().migration_refused(goes, now);
    }

    /// The nodes that have a watermark, by name.
    pub(crate) fn watermarks(&self) -> Vec<Watermark> {
        let (now, pods) = (self.now(), self.read());
        let all = pods.watermarks(now);
        all.map(|(name, watermark, pressure)| Watermark {
            name: name.to_owned(),
            watermark,
            pressure,
        })
        .collect()
    }

    /// How many VMs move.
    pub(crate) fn moving(&self) -> usize {
        self.read().moving()
    }
}
