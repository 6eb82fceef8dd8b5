//! A proxy before a monitor that can hold back commands or answers.
//!
//! It reads both directions line by line and knows which answer belongs to which command, so
//! "the answer to `qom-set`" can be held while QEMU has long done it, or "the command
//! `device_add`" before QEMU has heard of it. What is behind a held line in the same
//! direction waits too, as it would on a slow wire. A client that goes takes what is held
//! for it along; since its going and [`Proxy::release`] can be noticed in either order,
//! [`Proxy::hang_up`] is what makes sure that a held command never reaches QEMU. What changes a
//! guest's size is written down, with its time.

use crate::LabError;
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// The commands that change what a guest has.
pub const CHANGES: &[&str] = &["device_add", "device_del", "object-add", "object-del", "qom-set"];

/// A command that changes what a guest has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// When QEMU was told.
    pub at: Instant,
    /// The command with its arguments, as the client wrote it.
    pub text: String,
}

/// What is held back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hold {
    /// Nothing.
    #[default]
    Nothing,
    /// Commands of these names, before QEMU hears of them.
    Commands(&'static [&'static str]),
    /// Answers to commands of these names, after QEMU has carried them out.
    Answers(&'static [&'static str]),
}

/// A monitor with a proxy before it.
pub struct Proxy {
    path: PathBuf,
    order: watch::Sender<Order>,
    held: watch::Receiver<u64>,
    passed: Passed,
    _tasks: JoinSet<()>,
}

/// What the connections are told.
#[derive(Clone, Copy, Debug, Default)]
struct Order {
    hold: Hold,
    /// Connections of an earlier era end.
    era: u64,
}

/// What went through.
type Passed = Arc<Mutex<Record>>;

#[derive(Default)]
struct Record {
    /// The commands, and how often.
    commands: BTreeMap<String, u64>,
    changes: Vec<Change>,
}

#[derive(Clone)]
struct Wires {
    order: watch::Receiver<Order>,
    held: watch::Sender<u64>,
    passed: Passed,
}

struct Pair {
    wires: Wires,
    era: u64,
    /// Names of commands that QEMU has not answered.
    open: VecDeque<String>,
    /// Lines to QEMU and lines to the client that wait.
    waiting: [VecDeque<Line>; 2],
}

struct Line {
    text: String,
    /// The command that it is, or that it answers; empty for all else.
    command: String,
    counted: bool,
}

const TO_QEMU: usize = 0;
const TO_CLIENT: usize = 1;

/// Most lines that wait in one direction.
const MOST_WAITING: usize = 10_000;

// === impl Proxy ===

impl Proxy {
    /// Listens at `path` for clients of the monitor at `target`; must be called in a tokio
    /// runtime.
    ///
    /// # Errors
    /// If it cannot listen there.
    pub fn start(path: &Path, target: &Path) -> Result<Self, LabError> {
        let listener = UnixListener::bind(path)
            .map_err(|source| LabError::File { path: path.to_owned(), source })?;
        let (order, orders) = watch::channel(Order::default());
        let (counter, held) = watch::channel(0);
        let passed = Passed::default();
        let wires = Wires { order: orders, held: counter, passed: Arc::clone(&passed) };
        let mut tasks = JoinSet::new();
        tasks.spawn(serve(listener, target.to_owned(), wires));
        Ok(Self { path: path.to_owned(), order, held, passed, _tasks: tasks })
    }

    /// Where it listens.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Holds from now on; what was held before and is not to be held any more goes on.
    pub fn hold(&self, hold: Hold) {
        self.order.send_modify(|order| order.hold = hold);
    }

    /// Lets everything go on.
    pub fn release(&self) {
        self.hold(Hold::Nothing);
    }

    /// Ends every connection, and with it what is held; new ones are welcome, and nothing is
    /// held of them.
    pub fn hang_up(&self) {
        self.order.send_modify(|order| *order = Order { hold: Hold::Nothing, era: order.era + 1 });
    }

    /// How many lines were ever held.
    pub fn held(&self) -> u64 {
        *self.held.borrow()
    }

    /// The commands that reached QEMU, and how often each.
    pub fn passed(&self) -> BTreeMap<String, u64> {
        self.record().commands.clone()
    }

    /// The commands that changed what the guest has, in the order in which QEMU was told them.
    pub fn changes(&self) -> Vec<Change> {
        self.record().changes.clone()
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.passed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until more lines than `before` were held.
    ///
    /// # Errors
    /// [`LabError::Late`].
    pub async fn until_held(&self, before: u64, limit: Duration) -> Result<(), LabError> {
        let mut held = self.held.clone();
        let late = || LabError::Late {
            what: format!("line to hold: {:?}", self.order.borrow().hold),
            limit,
            seen: format!("{before} held"),
        };
        match timeout(limit, held.wait_for(|&now| now > before)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(late()),
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // Its folder may be gone already.
        let _left = fs::remove_file(&self.path);
    }
}

async fn serve(listener: UnixListener, target: PathBuf, wires: Wires) {
    let mut pairs = JoinSet::new();
    loop {
        let Ok((client, _)) = listener.accept().await else { continue };
        while pairs.try_join_next().is_some() {}
        let (target, wires) = (target.clone(), wires.clone());
        pairs.spawn(async move {
            let Ok(qemu) = UnixStream::connect(&target).await else { return };
            let era = wires.order.borrow().era;
            let pair = Pair { wires, era, open: VecDeque::new(), waiting: Default::default() };
            // Either side may hang up at any time: that ends the pair, and closes the other.
            let _ended = pair.run(client, qemu).await;
        });
    }
}

// === impl Pair ===

impl Pair {
    async fn run(mut self, client: UnixStream, qemu: UnixStream) -> io::Result<()> {
        let (mut from_client, mut to_client) = halves(client);
        let (mut from_qemu, mut to_qemu) = halves(qemu);
        loop {
            tokio::select! {
                line = from_client.next_line() => {
                    let Some(text) = line? else { return Ok(()) };
                    let command = name(&text);
                    self.wait(TO_QEMU, text, command)?;
                }
                line = from_qemu.next_line() => {
                    let Some(text) = line? else { return Ok(()) };
                    let command =
                        if is_answer(&text) { self.open.pop_front() } else { None };
                    self.wait(TO_CLIENT, text, command.unwrap_or_default())?;
                }
                changed = self.wires.order.changed() => changed.map_err(io::Error::other)?,
            }
            if self.wires.order.borrow().era != self.era {
                return Ok(());
            }
            self.pass(TO_QEMU, &mut to_qemu).await?;
            self.pass(TO_CLIENT, &mut to_client).await?;
        }
    }

    fn wait(&mut self, way: usize, text: String, command: String) -> io::Result<()> {
        if self.waiting[way].len() >= MOST_WAITING {
            return Err(io::Error::other("too much waits"));
        }
        self.waiting[way].push_back(Line { text, command, counted: false });
        Ok(())
    }

    async fn pass(&mut self, way: usize, to: &mut OwnedWriteHalf) -> io::Result<()> {
        while let Some(line) = self.waiting[way].front_mut() {
            let holding = match self.wires.order.borrow().hold {
                Hold::Nothing => false,
                Hold::Commands(names) => way == TO_QEMU && names.contains(&&*line.command),
                Hold::Answers(names) => way == TO_CLIENT && names.contains(&&*line.command),
            };
            if holding {
                if !std::mem::replace(&mut line.counted, true) {
                    self.wires.held.send_modify(|held| *held += 1);
                }
                return Ok(());
            }
            let at = Instant::now();
            to.write_all(format!("{}\n", line.text).as_bytes()).await?;
            if let Some(line) = self.waiting[way].pop_front()
                && way == TO_QEMU
            {
                let mut passed = self.wires.passed.lock().unwrap_or_else(PoisonError::into_inner);
                *passed.commands.entry(line.command.clone()).or_default() += 1;
                if CHANGES.contains(&&*line.command) {
                    passed.changes.push(Change { at, text: line.text });
                }
                self.open.push_back(line.command);
            }
        }
        Ok(())
    }
}

fn halves(stream: UnixStream) -> (Lines<BufReader<OwnedReadHalf>>, OwnedWriteHalf) {
    let (read, write) = stream.into_split();
    (BufReader::new(read).lines(), write)
}

fn name(text: &str) -> String {
    let command: Value = serde_json::from_str(text).unwrap_or_default();
    command["execute"].as_str().unwrap_or_default().to_owned()
}

fn is_answer(text: &str) -> bool {
    let line: Value = serde_json::from_str(text).unwrap_or_default();
    line.get("return").is_some() || line.get("error").is_some()
}
