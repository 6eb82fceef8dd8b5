//! The lab's own monitor: one command at a time, each with a deadline.
//!
//! Windlass has a client of its own; sharing it would let one mistake hide in both.

use crate::LabError;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::sync::Mutex;
use tokio::time::timeout;

/// How long a command may take.
const LIMIT: Duration = Duration::from_secs(20);

/// A monitor, connected when it is first used and again after a loss.
pub struct Qmp {
    path: PathBuf,
    line: Mutex<Option<Line>>,
}

struct Line {
    stream: BufReader<UnixStream>,
    commands: u64,
}

// === impl Qmp ===

impl Qmp {
    /// The monitor at this path.
    pub fn at(path: &Path) -> Self {
        Self { path: path.to_owned(), line: Mutex::new(None) }
    }

    /// Carries out a command and gives its answer.
    ///
    /// # Errors
    /// [`LabError::Refused`] with QEMU's words; [`LabError::Broken`] where there is no answer.
    pub async fn execute(&self, command: &str, arguments: Value) -> Result<Value, LabError> {
        let mut held = self.line.lock().await;
        // Taken out, so that a failure or a caller who gives up leaves no half-read answer.
        let taken = held.take();
        let talk = async {
            let mut line = match taken {
                Some(line) => line,
                None => Line::connect(&self.path).await?,
            };
            let answer = line.execute(command, arguments).await?;
            Ok((line, answer))
        };
        let (line, answer) = timeout(LIMIT, talk)
            .await
            .unwrap_or_else(|_| Err(self.broken(&format!("no answer to {command}"))))?;
        *held = Some(line);
        answer.map_err(|words| LabError::Refused { command: command.to_owned(), words })
    }

    fn broken(&self, words: &str) -> LabError {
        LabError::Broken { peer: self.path.display().to_string(), words: words.to_owned() }
    }
}

// === impl Line ===

impl Line {
    async fn connect(path: &Path) -> Result<Self, LabError> {
        let stream = UnixStream::connect(path)
            .await
            .map_err(|source| LabError::File { path: path.to_owned(), source })?;
        let mut line = Self { stream: BufReader::new(stream), commands: 0 };
        let greeting = line.read().await?;
        if greeting.get("QMP").is_none() {
            return Err(broken(format!("greeted with {greeting}")));
        }
        line.execute("qmp_capabilities", json!({})).await?.map_err(broken)?;
        Ok(line)
    }

    async fn execute(
        &mut self,
        command: &str,
        arguments: Value,
    ) -> Result<Result<Value, String>, LabError> {
        self.commands += 1;
        let id = self.commands;
        let said = json!({"execute": command, "arguments": arguments, "id": id});
        let stream = self.stream.get_mut();
        stream.write_all(format!("{said}\n").as_bytes()).await.map_err(lost)?;
        loop {
            let mut heard = self.read().await?;
            if heard.get("id").and_then(Value::as_u64) != Some(id) {
                continue;
            }
            return match heard.get_mut("return") {
                Some(answer) => Ok(Ok(answer.take())),
                None => Ok(Err(heard["error"]["desc"].as_str().unwrap_or("?").to_owned())),
            };
        }
    }

    async fn read(&mut self) -> Result<Value, LabError> {
        let mut text = String::new();
        if self.stream.read_line(&mut text).await.map_err(lost)? == 0 {
            return Err(broken("end of file".to_owned()));
        }
        serde_json::from_str(&text).map_err(|error| broken(format!("{error} in {text:?}")))
    }
}

fn broken(words: String) -> LabError {
    LabError::Broken { peer: "qemu's monitor".to_owned(), words }
}

#[expect(clippy::needless_pass_by_value, reason = "the shape that map_err takes")]
fn lost(error: std::io::Error) -> LabError {
    broken(error.to_string())
}
