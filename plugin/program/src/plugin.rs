//! A plugin: the directory in force, how a request is answered from it, and how it is replaced.

use crate::directory::Directory;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use tracing::{error, info, warn};
use windlass_kit::clock::Clock;
use windlass_kit::problem::{Problem, Report};
use windlass_kit::stops::{self, Stops};
use windlass_plugin::Permits;
use windlass_plugin_config::config::PluginConfig;
use windlass_plugin_config::lists::Lists;
use windlass_plugin_core::wire::Refusal;
use windlass_protocol::plugin::RawRequest;

/// A plugin. Clones are one.
#[derive(Clone, Debug)]
pub struct Plugin(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    directory: RwLock<Arc<Directory>>,
    /// Answers so far, by status: also those of nodes that are not listed any more.
    answers: Mutex<BTreeMap<u16, u64>>,
    /// Problems of the last reload, and nodes whose minima exceed their room.
    problems: AtomicI64,
    stops: Stops,
}

// === impl Plugin ===

impl Plugin {
    /// A plugin of these nodes and VMs, each of which counts with its maximum.
    pub fn new(config: PluginConfig, lists: &Lists, clock: Clock) -> Self {
        let directory = Directory::empty(config.clone(), clock).with(config, lists);
        let plugin = Self(Arc::new(Inner {
            directory: RwLock::new(Arc::new(directory)),
            answers: Mutex::default(),
            problems: AtomicI64::new(0),
            stops: Stops::new(clock),
        }));
        plugin.weigh(0);
        plugin
    }

    /// Puts other lists in force, or says in one line why the last ones stay.
    pub fn reload(&self, read: Result<(PluginConfig, &Lists), Report>) {
        let (config, lists) = match read {
            Ok(read) => read,
            Err(report) => {
                let Report { subject, problems, .. } = &report;
                let said: Vec<String> = problems.iter().map(Problem::to_string).collect();
                let why = format!("{subject}: {}", said.join("; "));
                error!(why, "cannot be reloaded; the last valid lists stay in force");
                return self.weigh(report.problems.len());
            }
        };
        let before = self.directory();
        let known = &before.config;
        let restart = config.needs_restart(known).join(", ");
        let PluginConfig { listen, dump_state, admin, .. } = *known;
        let next = before.with(PluginConfig { listen, dump_state, admin, ..config }, lists);
        *self.0.directory.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(next);
        info!(nodes = lists.nodes.len(), vms = lists.vms.len(), "lists read again");
        if !restart.is_empty() {
            warn!(keys = restart, "changed, and takes effect at the next start");
        }
        self.weigh(usize::from(!restart.is_empty()));
    }

    pub(crate) fn directory(&self) -> Arc<Directory> {
        self.0.directory.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notices that the process was stopped.
    pub(crate) fn stops(&self) -> &Stops {
        &self.0.stops
    }

    pub(crate) fn answers(&self) -> BTreeMap<u16, u64> {
        self.0.answers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn problems(&self) -> i64 {
        self.0.problems.load(Ordering::Relaxed)
    }

    /// Minima above the room: some VM never gets its minimum.
    fn weigh(&self, problems: usize) {
        let mut count = problems;
        for (node, entry) in self.directory().cluster.nodes() {
            if let Some(over) = entry.books.with_books(|books| books.minima_over()) {
                let room = entry.room();
                warn!(node, %over, %room, "the minima of its vms come to more than the node has");
                count += 1;
            }
        }
        self.0.problems.store(i64::try_from(count).unwrap_or(i64::MAX), Ordering::Relaxed);
    }
}

impl Permits for Plugin {
    /// The node whose books know the VM answers; what is no request of a listed VM is refused by a
    /// node without VMs. Both count it.
    async fn answer(&self, request: Result<RawRequest, Refusal>) -> Result<Vec<u8>, Refusal> {
        let is_late = self.0.stops.is_just_over();
        let passed_over = Refusal::Passing(stops::WORDS);
        let request =
            request.and_then(|request| if is_late { Err(passed_over) } else { Ok(request) });
        let directory = self.directory();
        let with_metrics = request.as_ref().is_ok_and(RawRequest::has_metrics);
        let node = directory.node_of(request.as_ref().ok().map(RawRequest::vm));
        let answer = node.books.grant(request);
        let status = answer.as_ref().map_or_else(Refusal::status, |_| 200);
        node.answered(status, with_metrics);
        let mut answers = self.0.answers.lock().unwrap_or_else(PoisonError::into_inner);
        *answers.entry(status).or_default() += 1;
        drop(answers);
        answer
    }

    fn passes(&self, refusal: &Refusal) -> bool {
        matches!(refusal, Refusal::Passing(_))
    }
}
