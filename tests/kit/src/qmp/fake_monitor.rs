//! A monitor that does as a test's script says, and as a small machine does where that says nothing.
//!
//! The sizes of the machine do not change: it shows which commands follow from answers. What a
//! hypervisor does with them is tested with a real one.

use super::{GREETING, Sizes, refusal, reply};
use crate::Folder;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;

/// What to do about one command.
#[derive(Clone, Debug)]
pub enum Reply {
    /// As the machine that it knows would.
    Usual,
    /// With this result.
    Result(Value),
    /// With an error of this class and these words.
    Error(&'static str, &'static str),
    /// With these bytes, and nothing else.
    Raw(Vec<u8>),
    /// With these bytes first, then as usual.
    After(Vec<u8>),
    /// Not at all, and the connection stays.
    Silence,
    /// Not at all, and the connection ends.
    HangUp,
}

/// Commands with their arguments, as they came.
type Asked = Arc<Mutex<Vec<(String, Value)>>>;

type Script = dyn FnMut(&str, &Value) -> Reply + Send;

/// A monitor. It ends with this value.
#[derive(Debug)]
pub struct FakeMonitor {
    path: PathBuf,
    asked: Asked,
    _serving: JoinSet<()>,
    _folder: Folder,
}

// === impl FakeMonitor ===

impl FakeMonitor {
    /// One that answers each command as `script` says, one client after another.
    pub fn new(script: impl FnMut(&str, &Value) -> Reply + Send + 'static) -> Self {
        Self::serving(|listener, asked| serve(listener, asked, Box::new(script)))
    }

    /// One that accepts, and leaves its clients waiting.
    pub fn taken() -> Self {
        Self::serving(|listener, _| async move {
            let _kept = listener.accept().await;
            std::future::pending::<()>().await;
        })
    }

    /// One that sends this in place of a greeting, and then hangs up.
    pub fn greeting_with(bytes: Vec<u8>) -> Self {
        Self::serving(|listener, _| async move {
            let (mut client, _) = listener.accept().await.unwrap();
            // A client that has heard enough does not stay to the end.
            let _ = client.write_all(&bytes).await;
        })
    }

    fn serving<F>(serve: impl FnOnce(UnixListener, Asked) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let folder = Folder::create().unwrap();
        let (path, asked) = (folder.at("qmp.sock"), Asked::default());
        let listener = UnixListener::bind(&path).unwrap();
        let serving = JoinSet::from_iter([serve(listener, Arc::clone(&asked))]);
        Self { path, asked, _serving: serving, _folder: folder }
    }

    /// Where it listens.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Each command that changes something, with its arguments.
    pub fn changes(&self) -> Vec<(String, Value)> {
        let asked = self.asked.lock().unwrap();
        let is_question = |name: &str| name.starts_with("query-") || name.starts_with("qom-");
        let changes = asked.iter().filter(|(name, _)| {
            name != "qmp_capabilities" && (!is_question(name) || name == "qom-set")
        });
        changes.cloned().collect()
    }

    /// 2 of 4 vCPUs and 256 MiB; of 1 GiB of virtio-mem 128 MiB were asked for, and 64 MiB are there.
    fn usual_answer(command: &str, arguments: &Value) -> Option<Value> {
        let mut machine = Sizes { requested: 128 << 20, ..Sizes::small(64) };
        machine.answer(command, arguments)
    }
}

async fn serve(listener: UnixListener, asked: Asked, mut script: Box<Script>) {
    loop {
        let (client, _) = listener.accept().await.unwrap();
        // A client that goes away is no failure of the monitor.
        let _ = converse(client, &asked, &mut script).await;
    }
}

async fn converse(
    client: UnixStream,
    asked: &Mutex<Vec<(String, Value)>>,
    script: &mut Script,
) -> std::io::Result<()> {
    let (read, mut write): (OwnedReadHalf, OwnedWriteHalf) = client.into_split();
    let mut lines: Lines<BufReader<OwnedReadHalf>> = BufReader::new(read).lines();
    write.write_all(format!("{GREETING}\r\n").as_bytes()).await?;
    while let Some(line) = lines.next_line().await? {
        let request: Value = serde_json::from_str(&line).unwrap();
        let command = request["execute"].as_str().unwrap().to_owned();
        let (arguments, id) = (request["arguments"].clone(), request["id"].clone());
        asked.lock().unwrap().push((command.clone(), arguments.clone()));
        let usual = || reply(&id, FakeMonitor::usual_answer(&command, &arguments));
        let line = |value: Value| format!("{value}\r\n").into_bytes();
        let bytes = match script(&command, &arguments) {
            Reply::Usual => line(usual()),
            Reply::Result(result) => line(reply(&id, Some(result))),
            Reply::Error(class, words) => line(refusal(&id, class, words)),
            Reply::Raw(bytes) => bytes,
            Reply::After(mut bytes) => {
                bytes.extend(line(usual()));
                bytes
            }
            Reply::Silence => continue,
            Reply::HangUp => return Ok(()),
        };
        write.write_all(&bytes).await?;
    }
    Ok(())
}
