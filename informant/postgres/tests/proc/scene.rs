//! A server, a guest whose memory follows the server's cache, the program, and an agent.

use crate::server::Server;
use crate::support::agent::Agent;
use crate::support::guest::Guest;
use crate::support::program::Program;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use windlass_testkit::wait::until;

const PROGRAM: &str = env!("CARGO_BIN_EXE_windlass-informant-postgres");

/// All of it, with an agent that counts.
pub(crate) struct Scene {
    pub(crate) agent: Agent,
    pub(crate) program: Program,
    flags: Vec<String>,
    pub(crate) memory: Memory,
    pub(crate) server: Server,
}

/// The guest's memory in MiB; the cache's content is in it, and no larger than its limit.
pub(crate) struct Memory {
    guest: Arc<Guest>,
    figures: Arc<Figures>,
    keeper: Option<JoinHandle<()>>,
}

struct Figures {
    total: AtomicU64,
    beside: AtomicU64,
    full: AtomicU64,
    ended: AtomicBool,
}

impl Scene {
    /// 4 GiB, of which 300 MiB are in use beside a cache with 200 MiB in it.
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    pub(crate) fn start_with(flags: &[&str]) -> Self {
        let server = Server::start();
        let memory = Memory::start(server.data());
        let content = "SELECT least(pg_size_bytes(current_setting('neon.file_cache_size_limit')), \
                       200 * 1048576)";
        let mut all = vec!["--postgres".to_owned(), server.connection()];
        all.extend(["--cache-used-query".to_owned(), content.to_owned()]);
        all.extend(flags.iter().map(|flag| (*flag).to_owned()));
        let program = run(memory.guest.root(), &all);
        let agent = Agent::start(1);
        agent.take_over(&program);
        let scene = Self { agent, program, flags: all, memory, server };
        scene.settle();
        scene
    }

    /// Another informant in the place of this one; the agent registers with it.
    pub(crate) fn restart(&mut self) {
        let next = run(self.memory.guest.root(), &self.flags);
        // The old one ends here, without a word.
        self.program = next;
        self.agent = Agent::start(3);
        self.agent.take_over(&self.program);
        self.settle();
    }

    pub(crate) fn metric(&self, name: &str) -> Option<f64> {
        self.program.metric(&format!("windlass_file_cache_{name}"))
    }

    /// Until PostgreSQL, and the program, say so many MiB.
    pub(crate) fn wait_for_cache(&self, mib: u32) {
        until("the cache's size", || {
            self.metric("limit_bytes") == Some(f64::from(mib) * 1_048_576.0)
        });
        assert_eq!(self.server.setting(), format!("{mib}MB"));
    }

    /// Until what was measured before has left every window.
    pub(crate) fn settle(&self) {
        let samples = || self.program.metric("windlass_informant_samples_total").unwrap();
        let from = samples();
        until("samples", || samples() > from + 25.0);
    }

    /// A `/downscale` with a number of its own.
    pub(crate) fn body(&self, cpu: u32, memory: &str) -> String {
        let id = self.agent.id;
        format!(
            r#"{{"data":{{"cpu":"{cpu}","memory":"{memory}","id":{{"agentID":"{id}"}}}},"sequenceNumber":77}}"#
        )
    }
}

impl Memory {
    fn start(data: PathBuf) -> Self {
        let guest = Arc::new(Guest::new());
        let [total, beside, full] = [4046, 300, 200].map(AtomicU64::new);
        let figures = Arc::new(Figures { total, beside, full, ended: AtomicBool::new(false) });
        figures.show(&guest, &data);
        let (of, at) = (Arc::clone(&figures), Arc::clone(&guest));
        let keep = move || {
            while !of.ended.load(Ordering::SeqCst) {
                of.show(&at, &data);
                std::thread::sleep(Duration::from_millis(20));
            }
        };
        Self { guest, figures, keeper: Some(std::thread::spawn(keep)) }
    }

    pub(crate) fn set_total(&self, mib: u64) {
        self.figures.total.store(mib, Ordering::SeqCst);
    }

    pub(crate) fn set_beside(&self, mib: u64) {
        self.figures.beside.store(mib, Ordering::SeqCst);
    }

    /// How much the cache has to hold.
    pub(crate) fn set_full(&self, mib: u64) {
        self.figures.full.store(mib, Ordering::SeqCst);
    }
}

impl Figures {
    fn show(&self, guest: &Guest, data: &Path) {
        let [total, beside, full] =
            [&self.total, &self.beside, &self.full].map(|figure| figure.load(Ordering::SeqCst));
        let content = full.min(Server::in_file(data).unwrap_or(128));
        let available = total.saturating_sub(beside + content);
        guest.memory(total, available, available);
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.figures.ended.store(true, Ordering::SeqCst);
        if let Some(keeper) = self.keeper.take() {
            let _ = keeper.join();
        }
    }
}

fn run(root: &Path, flags: &[String]) -> Program {
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    Program::start_at(Path::new(PROGRAM), root, &flags)
}
