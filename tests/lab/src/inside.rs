//! What the guest's kernel says that it has, told by the load program.

use crate::LabError;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long it may take until what was asked for is done: an emulated guest at its limits, on a
/// machine that has other things to do, is slow.
const LIMIT: Duration = Duration::from_secs(60);

/// How long figures may take; after that they would be old.
const FRESH: Duration = Duration::from_secs(8);

/// A guest as it sees itself. What it could not read is `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Inside {
    /// Memory that the kernel manages, in bytes.
    pub mem_total: Option<u64>,
    /// Memory that programs can still have, in bytes.
    pub mem_available: Option<u64>,
    /// Memory that nobody uses, in bytes.
    pub mem_free: Option<u64>,
    /// vCPUs in use.
    pub cpus_online: Option<u32>,
    /// vCPUs plugged.
    pub cpus_present: Option<u32>,
    /// The kernel's load average over one minute.
    pub load1: Option<f64>,
    /// Over five minutes.
    pub load5: Option<f64>,
    /// Over fifteen minutes.
    pub load15: Option<f64>,
    /// Processes that the kernel killed for want of memory.
    pub oom_kills: Option<u64>,
    /// Seconds since boot.
    pub uptime: Option<f64>,
    /// Different after each boot.
    pub boot_id: Option<String>,
    /// The onlining policy for added memory.
    pub onlining: Option<String>,
    /// Processes of the load program that compute.
    pub workers: u32,
    /// Bytes that the load program holds.
    pub held: u64,
    /// Bytes that it is to hold in the end.
    pub wanted: u64,
    /// How often the kernel killed the process that holds them.
    pub holders_killed: u64,
    /// The informant's process, if it runs.
    pub informant: Option<u32>,
    /// The versions that it was started with, as its `--versions` takes them.
    pub informant_versions: Option<String>,
    /// Memory of the informant that is resident, in bytes.
    pub informant_resident: Option<u64>,
    /// The most that was ever resident, in bytes.
    pub informant_peak: Option<u64>,
    /// How often the informant ended without having been asked to.
    pub informants_ended: u64,
}

/// Sends the load program one request, and gives what stands behind `ok`.
pub(crate) async fn ask(at: SocketAddr, request: &str) -> Result<String, LabError> {
    ask_within(LIMIT, at, request).await
}

async fn ask_within(limit: Duration, at: SocketAddr, request: &str) -> Result<String, LabError> {
    let reply = timeout(limit, talk(at, request)).await;
    let reply = reply.unwrap_or_else(|_| Err(broken(format!("no answer to {request:?}"))))?;
    match reply.split_once(' ') {
        _ if reply == "ok" => Ok(String::new()),
        Some(("ok", rest)) => Ok(rest.to_owned()),
        Some(("error", words)) => {
            Err(LabError::Declined { request: request.to_owned(), words: words.to_owned() })
        }
        _ => Err(broken(format!("answered {reply:?}"))),
    }
}

/// Asks for the figures.
pub(crate) async fn figures(at: SocketAddr) -> Result<Inside, LabError> {
    let json = ask_within(FRESH, at, "figures").await?;
    serde_json::from_str(&json).map_err(|error| broken(format!("{error} in {json}")))
}

async fn talk(at: SocketAddr, request: &str) -> Result<String, LabError> {
    let lost = |error: std::io::Error| broken(error.to_string());
    let mut stream = TcpStream::connect(at).await.map_err(lost)?;
    stream.write_all(format!("{request}\n").as_bytes()).await.map_err(lost)?;
    let mut reply = String::new();
    BufReader::new(stream).read_line(&mut reply).await.map_err(lost)?;
    match reply.strip_suffix('\n') {
        Some(line) => Ok(line.to_owned()),
        None => Err(broken(format!("hung up after {reply:?}"))),
    }
}

fn broken(words: String) -> LabError {
    LabError::Broken { peer: "the load program".to_owned(), words }
}
