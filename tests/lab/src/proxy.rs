//! A proxy before a monitor that can hold back commands or answers.
//!
//! It reads both directions line by line and knows which answer belongs to which command, so
//! "the answer to `qom-set`" can be held while QEMU has long done it, or "the command
//! `device_add`" before QEMU has heard of it. What is behind a held line in the same
//! direction waits too, as it would on a slow wire. A client that goes takes what is held
//! for it along: a held command of a dead client never reaches QEMU.

use crate::LabError;
use serde_json::Value;
use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// What is held back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Hold {
    /// Nothing.
    #[default]
    Nothing,
    /// Commands of this name, before QEMU hears of them.
    Command(String),
    /// Answers to commands of this name, after QEMU has carried them out.
    Answer(String),
}

/// A monitor with a proxy before it.
pub struct Proxy {
    path: PathBuf,
    hold: watch::Sender<Hold>,
    held: watch::Receiver<u64>,
    _tasks: JoinSet<()>,
}

struct Pair {
    hold: watch::Receiver<Hold>,
    held: watch::Sender<u64>,
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
        let (hold, holds) = watch::channel(Hold::Nothing);
        let (counter, held) = watch::channel(0);
        let mut tasks = JoinSet::new();
        tasks.spawn(serve(listener, target.to_owned(), holds, counter));
        Ok(Self { path: path.to_owned(), hold, held, _tasks: tasks })
    }

    /// Where it listens.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Holds from now on; what was held before and is not to be held any more goes on.
    pub fn hold(&self, hold: Hold) {
        self.hold.send_replace(hold);
    }

    /// Lets everything go on.
    pub fn release(&self) {
        self.hold(Hold::Nothing);
    }

    /// How many lines were ever held.
    pub fn held(&self) -> u64 {
        *self.held.borrow()
    }

    /// Waits until more lines than `before` were held.
    ///
    /// # Errors
    /// [`LabError::Late`].
    pub async fn until_held(&self, before: u64, limit: Duration) -> Result<(), LabError> {
        let mut held = self.held.clone();
        let late = || LabError::Late {
            what: format!("line to hold: {:?}", *self.hold.borrow()),
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

async fn serve(
    listener: UnixListener,
    target: PathBuf,
    hold: watch::Receiver<Hold>,
    held: watch::Sender<u64>,
) {
    let mut pairs = JoinSet::new();
    loop {
        let Ok((client, _)) = listener.accept().await else { continue };
        while pairs.try_join_next().is_some() {}
        let (target, hold, held) = (target.clone(), hold.clone(), held.clone());
        pairs.spawn(async move {
            let Ok(qemu) = UnixStream::connect(&target).await else { return };
            let pair = Pair { hold, held, open: VecDeque::new(), waiting: Default::default() };
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
                changed = self.hold.changed() => changed.map_err(io::Error::other)?,
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
            let holding = match &*self.hold.borrow() {
                Hold::Nothing => false,
                Hold::Command(name) => way == TO_QEMU && *name == line.command,
                Hold::Answer(name) => way == TO_CLIENT && *name == line.command,
            };
            if holding {
                if !std::mem::replace(&mut line.counted, true) {
                    self.held.send_modify(|held| *held += 1);
                }
                return Ok(());
            }
            to.write_all(format!("{}\n", line.text).as_bytes()).await?;
            if let Some(line) = self.waiting[way].pop_front()
                && way == TO_QEMU
            {
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
