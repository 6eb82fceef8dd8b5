//! One connection to one monitor: greeting, commands with a deadline, and what its end means.
//!
//! A monitor serves one client. Another one is accepted by the kernel and then left waiting, so
//! a monitor that accepts and does not greet in time is *taken* if its process is seen to run,
//! *stopped* if it is seen to be, and otherwise *silent*. *Gone* is said only where no socket or
//! no process is left, never for silence.
//!
//! After a lost answer the connection is closed: whether the command was carried out is open,
//! and only a look over a new connection can tell. A call that is dropped before its answer
//! leaves the connection usable; its answer is thrown away when it comes.

use crate::awaited::{Answer, Awaited};
use crate::peer::Peer;
use crate::reader::{Answers, NOTICES, Reader, Unplugging};
use crate::wire::{Line, Lines, QmpError, Version, words};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt::Debug;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;
use windlass_drivers::{DriverError, Notice};

/// How long QEMU has to answer a command. A busy guest holds its main lock for a second at most.
pub(crate) const ANSWER: Duration = Duration::from_secs(5);

/// How long to wait for what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// To accept and greet. QEMU greets from a thread that the guest cannot hold up.
    pub(crate) greeting: Duration,
    /// To answer a command.
    pub(crate) answer: Duration,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Link {
    path: PathBuf,
    pub(crate) limits: Limits,
    /// Which QEMU greeted.
    pub(crate) version: Version,
    peer: Peer,
    next_id: u64,
    /// `None` once the connection is not to be used any more.
    write: Option<Box<dyn Writes>>,
    /// A command was begun, and not known to be written whole.
    writing: bool,
    awaited: Awaited,
    /// Devices that the guest was asked to give back over this connection.
    pub(crate) unplugging: Unplugging,
    /// The reader, which ends with this value.
    reader: JoinSet<String>,
}

/// The writing half of a connection.
pub(crate) trait Writes: AsyncWrite + Debug + Send + Unpin {}

impl<W: AsyncWrite + Debug + Send + Unpin> Writes for W {}

/// Why a command has no result.
#[derive(Debug, Error)]
pub(crate) enum CallError {
    /// QEMU said no.
    #[error(transparent)]
    Said(QmpError),
    /// There is no answer.
    #[error(transparent)]
    Lost(DriverError),
}

/// An object below another.
#[derive(Deserialize)]
pub(crate) struct Child {
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
}

// === impl Limits ===

impl Default for Limits {
    fn default() -> Self {
        Self { greeting: Duration::from_secs(3), answer: ANSWER }
    }
}

// === impl Link ===

impl Link {
    /// Connects, waits for the greeting, and enters command mode.
    pub(crate) async fn open(
        path: &Path,
        limits: Limits,
    ) -> Result<(Self, mpsc::Receiver<Notice>), DriverError> {
        Self::open_by(path, path, limits).await
    }

    /// The same, of the monitor at `path`, whose socket is reached at another one.
    pub(crate) async fn open_by(
        socket: &Path,
        path: &Path,
        limits: Limits,
    ) -> Result<(Self, mpsc::Receiver<Notice>), DriverError> {
        let silent = |_| silence(path, &Peer::last_of(path));
        let stream = timeout(limits.greeting, UnixStream::connect(socket))
            .await
            .map_err(silent)?
            .map_err(|error| connect_error(path, &error))?;
        let peer = Peer::of(&stream, path);
        let (read, write) = stream.into_split();
        Self::over(path, limits, peer, read, Box::new(write)).await
    }

    /// Waits for the greeting, and enters command mode, over a connection to `peer`.
    pub(crate) async fn over<R>(
        path: &Path,
        limits: Limits,
        peer: Peer,
        read: R,
        write: Box<dyn Writes>,
    ) -> Result<(Self, mpsc::Receiver<Notice>), DriverError>
    where
        R: AsyncRead + Send + Unpin + 'static,
    {
        let silent = |_| silence(path, &peer);
        let mut lines = Lines::new(read);
        let first = timeout(limits.greeting, lines.next()).await.map_err(silent)?;
        let version = match first {
            Ok(Some(Line::Greeting(greeting))) => greeting.version.qemu,
            Ok(Some(Line::Answer(..) | Line::Event(_))) => {
                return Err(DriverError::Broken("its first line is no greeting".to_owned()));
            }
            Ok(None) => return Err(ended(path, &peer, "it ended before its greeting").await),
            Err(error) => return Err(ended(path, &peer, &error.to_string()).await),
        };
        let awaited = Awaited::default();
        let (notices, noticed) = mpsc::channel(NOTICES);
        let unplugging = Unplugging::default();
        let answers = Answers(awaited.clone());
        let reader = Reader { lines, answers, notices, unplugging: unplugging.clone() };
        let mut link = Self {
            path: path.to_owned(),
            limits,
            version,
            peer,
            next_id: 1,
            write: Some(write),
            writing: false,
            awaited,
            unplugging,
            reader: JoinSet::from_iter([reader.run()]),
        };
        link.call("qmp_capabilities", Value::Null).await.map_err(|error| match error {
            CallError::Said(said) => DriverError::Broken(said.to_string()),
            CallError::Lost(lost) => lost,
        })?;
        Ok((link, noticed))
    }

    /// The process at the other end, if it can be seen.
    pub(crate) fn pid(&self) -> Option<i32> {
        self.peer.pid()
    }

    /// Carries out one command. `Null` stands for no arguments.
    pub(crate) async fn call(
        &mut self,
        command: &'static str,
        arguments: Value,
    ) -> Result<(), CallError> {
        let [answer] = self.exchange([(command, arguments)]).await?;
        answer.map(drop).map_err(CallError::Said)
    }

    /// Asks a question that changes nothing, and reads the answer as `T`.
    pub(crate) async fn ask<T: DeserializeOwned>(
        &mut self,
        command: &'static str,
        arguments: Value,
    ) -> Result<T, CallError> {
        let [answer] = self.exchange([(command, arguments)]).await?;
        read(command, answer)
    }

    /// Asks questions that change nothing and have no arguments, all at once; QEMU answers them one
    /// after another. [`read`] reads each answer.
    pub(crate) async fn ask_all<const N: usize>(
        &mut self,
        commands: [&'static str; N],
    ) -> Result<[Answer; N], CallError> {
        self.exchange(commands.map(|command| (command, Value::Null))).await
    }

    /// Reads one property of one object.
    pub(crate) async fn property<T: DeserializeOwned>(
        &mut self,
        path: &str,
        property: &str,
    ) -> Result<T, CallError> {
        self.ask("qom-get", json!({ "path": path, "property": property })).await
    }

    /// What is below an object.
    pub(crate) async fn children(&mut self, path: &str) -> Result<Vec<Child>, CallError> {
        self.ask("qom-list", json!({ "path": path })).await
    }

    /// Has commands carried out in this order, and waits for the answer to each.
    async fn exchange<const N: usize>(
        &mut self,
        commands: [(&'static str, Value); N],
    ) -> Result<[Answer; N], CallError> {
        if self.writing {
            // A call was dropped in the middle of its lines; the next would be read as their rest.
            self.close();
        }
        if self.write.is_none() {
            let why = "it was closed after a lost answer".to_owned();
            return Err(CallError::Lost(DriverError::Broken(why)));
        }
        let (first, limit) = (self.next_id, self.limits.answer);
        let mut lines = String::new();
        let names = commands.map(|(command, arguments)| {
            lines.push_str(&line(self.next_id, command, &arguments));
            self.next_id += 1;
            command
        });
        let mut answers = self.awaited.begin(first, N);
        let late = |nth: usize| {
            let command = names.get(nth).copied().unwrap_or_default();
            CallError::Lost(DriverError::NoAnswer { command, limit })
        };
        if timeout(limit, self.send(&lines)).await.is_err() {
            self.close();
            return Err(late(0));
        }
        let mut came = 0;
        loop {
            match timeout(limit, &mut answers).await {
                Ok(Ok(answers)) => {
                    let missing = || DriverError::Broken("an answer is missing".to_owned());
                    return answers.try_into().map_err(|_| CallError::Lost(missing()));
                }
                Ok(Err(_)) => {
                    let why = self.why_over().await;
                    // Boxed, because a connection ends once.
                    let error = Box::pin(ended(&self.path, &self.peer, &why)).await;
                    return Err(CallError::Lost(error));
                }
                // Each has time of its own: QEMU answers one after another.
                Err(_) if self.awaited.came() > came => came = self.awaited.came(),
                Err(_) => {
                    self.close();
                    return Err(late(came));
                }
            }
        }
    }

    /// Writes whole lines.
    async fn send(&mut self, lines: &str) {
        self.writing = true;
        if let Some(write) = &mut self.write {
            // Where nothing can be written any more, the reader knows better why.
            let _ = write.write_all(lines.as_bytes()).await;
        }
        self.writing = false;
    }

    /// Why the connection ended.
    async fn why_over(&mut self) -> String {
        let why = self.reader.join_next().await.and_then(Result::ok);
        self.close();
        why.unwrap_or_else(|| "it ended".to_owned())
    }

    /// Makes room for the next connection: the monitor serves one at a time.
    fn close(&mut self) {
        self.write = None;
        self.writing = false;
        self.reader.abort_all();
    }
}

/// A command as QEMU takes it. Names of commands have no character that JSON escapes.
fn line(id: u64, command: &'static str, arguments: &Value) -> String {
    if arguments.is_null() {
        format!("{{\"execute\":\"{command}\",\"id\":{id}}}\n")
    } else {
        format!("{{\"execute\":\"{command}\",\"id\":{id},\"arguments\":{arguments}}}\n")
    }
}

/// Reads the answer to a question.
pub(crate) fn read<T: DeserializeOwned>(
    command: &'static str,
    answer: Answer,
) -> Result<T, CallError> {
    answer.map_err(CallError::Said)?.read().map_err(|error| {
        let why = words(&format!("answer to {command}: {error}"));
        CallError::Lost(DriverError::Broken(why))
    })
}

/// The result, unless QEMU said no: then it has nothing of the kind.
pub(crate) fn unless_refused<T>(result: Result<T, CallError>) -> Result<Option<T>, CallError> {
    match result {
        Ok(result) => Ok(Some(result)),
        Err(CallError::Said(_)) => Ok(None),
        Err(lost @ CallError::Lost(_)) => Err(lost),
    }
}

// === impl CallError ===

impl CallError {
    /// As a caller of a driver sees it, when `command` as a whole has changed nothing yet.
    pub(crate) fn of(self, command: &'static str) -> DriverError {
        self.after(0, command)
    }

    /// The same, after `done` parts of `command`: then a refusal is not one of the whole.
    pub(crate) fn after(self, done: usize, command: &'static str) -> DriverError {
        match self {
            Self::Said(QmpError { desc, .. }) if done > 0 => {
                DriverError::Partly { command, reason: desc }
            }
            Self::Said(QmpError { desc, .. }) => DriverError::Refused { command, reason: desc },
            Self::Lost(lost) => lost,
        }
    }
}

pub(crate) fn connect_error(path: &Path, error: &std::io::Error) -> DriverError {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the list of kinds of io errors is open")]
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
            DriverError::Gone { place: place(path), why: error.to_string() }
        }
        // The monitor's queue of clients is full.
        ErrorKind::WouldBlock => silence(path, &Peer::last_of(path)),
        _ => DriverError::Broken(format!("{}: {error}", path.display())),
    }
}

/// What it means that a monitor does not greet.
fn silence(path: &Path, peer: &Peer) -> DriverError {
    let place = place(path);
    match peer.stopped() {
        Some(pid) => DriverError::Stopped { place, pid },
        None if peer.is_seen() => DriverError::Taken { place },
        None => DriverError::Silent { place },
    }
}

/// What the end of a connection means.
async fn ended(path: &Path, peer: &Peer, why: &str) -> DriverError {
    if peer.is_dead().await {
        return DriverError::Gone { place: place(path), why: "its process ended".to_owned() };
    }
    if !path.exists() {
        return DriverError::Gone { place: place(path), why: "its socket is gone".to_owned() };
    }
    DriverError::Broken(why.to_owned())
}

fn place(monitor: &Path) -> String {
    monitor.display().to_string()
}
