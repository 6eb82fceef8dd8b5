//! Detects a part of the process that hangs.
//!
//! ```text
//!            10 turns of the watchdog without a turn of the part
//!   turning ────────────────────────────────────────────────────► hanging
//!      ▲                    the part turns                           │
//!      └─────────────────────────────────────────────────────────────┘
//! ```
//!
//! Each part turns at least once per second, and names with each turn what it waits for next. The watchdog
//! counts its own turns, one per second: while the machine or the process is stopped, neither turns, so no
//! part hangs. A hanging part is logged once and fails `/livez`. The watchdog then stops its reports to
//! systemd, which restarts the process.

use crate::catch_panic::lock;
use crate::notify::Notify;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

/// The period of the watchdog, and the longest period of a part.
pub const TURN: Duration = Duration::from_secs(1);

/// A part hangs after this many turns of the watchdog without a turn of the part.
const PATIENCE: u32 = 10;

/// Counts the turns of every part. Clones are cheap and share the counts.
#[derive(Clone, Debug, Default)]
pub struct Watchdog {
    turns: Arc<Mutex<Turns>>,
    hanging: Gauge,
    hangs: Counter,
}

/// A part reports its turns through this. Dropping it ends the watch.
#[derive(Debug)]
pub struct Pulse {
    id: u64,
    turns: Arc<Mutex<Turns>>,
}

/// A part that hangs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hanging {
    /// Its name.
    pub part: String,
    /// What it waits for, by its last turn.
    pub waits_for: &'static str,
}

#[derive(Debug, Default)]
struct Turns {
    next: u64,
    parts: BTreeMap<u64, Part>,
}

#[derive(Debug)]
struct Part {
    name: String,
    waits_for: &'static str,
    /// Whether it turned since the last turn of the watchdog.
    turned: bool,
    /// Turns of the watchdog since its last turn.
    quiet: u32,
}

/// A change to log.
#[derive(Debug, PartialEq, Eq)]
enum Word {
    Hangs(Hanging),
    /// A part that hung turns again.
    Back(String),
}

// === impl Watchdog ===

impl Watchdog {
    /// Starts to watch a part.
    pub fn watch(&self, name: impl Into<String>) -> Pulse {
        let id = lock(&self.turns).add(name.into());
        Pulse { id, turns: self.turns.clone() }
    }

    /// The hanging parts.
    pub fn hanging(&self) -> Vec<Hanging> {
        lock(&self.turns).hanging()
    }

    /// Registers the metrics.
    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("windlass");
        let hanging = "Parts of the process that have not turned for ten seconds";
        registry.register("hanging_parts", hanging, self.hanging.clone());
        let hangs = "Times that a part of the process was found hanging";
        registry.register("hangs", hangs, self.hangs.clone());
    }

    /// Turns until `stop`. Each turn without a hanging part reports to systemd.
    pub async fn run(self, systemd: Notify, stop: CancellationToken) -> Result<(), Infallible> {
        let mut turns = interval(TURN);
        turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while stop.run_until_cancelled(turns.tick()).await.is_some() {
            self.turn();
            if self.hanging().is_empty() {
                systemd.alive();
            }
        }
        systemd.stopping();
        Ok(())
    }

    fn turn(&self) {
        let words = lock(&self.turns).turn();
        for word in words {
            match word {
                Word::Hangs(Hanging { part, waits_for }) => {
                    self.hangs.inc();
                    error!(part, waits_for, "hangs: it has not turned for ten seconds");
                }
                Word::Back(part) => info!(part, "turns again"),
            }
        }
        let hanging = self.hanging().len();
        self.hanging.set(i64::try_from(hanging).unwrap_or(i64::MAX));
    }
}

// === impl Pulse ===

impl Pulse {
    /// The part has turned, and now waits for this.
    pub fn turn(&self, waits_for: &'static str) {
        lock(&self.turns).turned(self.id, waits_for);
    }

    /// The part has turned, and rests for this long before its next look; `false`: it is told to stop.
    pub async fn rest(
        &self,
        waits_for: &'static str,
        time: Duration,
        stop: &CancellationToken,
    ) -> bool {
        let until = tokio::time::Instant::now() + time;
        loop {
            self.turn(waits_for);
            // A part that rests for longer than the watchdog's patience is alive.
            let turn = until.min(tokio::time::Instant::now() + TURN);
            tokio::select! {
                biased;
                () = stop.cancelled() => return false,
                () = tokio::time::sleep_until(turn) => {}
            }
            if turn == until {
                return true;
            }
        }
    }

    /// The part now waits for this, before its next turn.
    pub fn at(&self, waits_for: &'static str) {
        lock(&self.turns).at(self.id, waits_for);
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        lock(&self.turns).parts.remove(&self.id);
    }
}

// === impl Turns ===

impl Turns {
    fn add(&mut self, name: String) -> u64 {
        self.next += 1;
        let part = Part { name, waits_for: "its start", turned: true, quiet: 0 };
        self.parts.insert(self.next, part);
        self.next
    }

    fn turned(&mut self, id: u64, waits_for: &'static str) {
        self.at(id, waits_for);
        if let Some(part) = self.parts.get_mut(&id) {
            part.turned = true;
        }
    }

    fn at(&mut self, id: u64, waits_for: &'static str) {
        if let Some(part) = self.parts.get_mut(&id) {
            part.waits_for = waits_for;
        }
    }

    /// One turn of the watchdog.
    fn turn(&mut self) -> Vec<Word> {
        let mut words = Vec::new();
        for part in self.parts.values_mut() {
            let hung = part.hangs();
            part.quiet = if part.turned { 0 } else { part.quiet.saturating_add(1) };
            part.turned = false;
            match (hung, part.hangs()) {
                (false, true) => words.push(Word::Hangs(part.as_hanging())),
                (true, false) => words.push(Word::Back(part.name.clone())),
                (false, false) | (true, true) => {}
            }
        }
        words
    }

    fn hanging(&self) -> Vec<Hanging> {
        self.parts.values().filter(|part| part.hangs()).map(Part::as_hanging).collect()
    }
}

// === impl Part ===

impl Part {
    const fn hangs(&self) -> bool {
        self.quiet >= PATIENCE
    }

    fn as_hanging(&self) -> Hanging {
        Hanging { part: self.name.clone(), waits_for: self.waits_for }
    }
}

#[cfg(test)]
mod tests;
