//! Options that several commands have.

use crate::api::Done;
use crate::client::{self, Client};
use crate::failure::Failure;
use crate::out::{self, Output};
use clap::Args;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::PathBuf;
use windlass_protocol::config::Node;
use windlass_protocol::{Bytes, MilliCpu};

/// Where a host serves its socket unless told otherwise.
pub(crate) const DEFAULT_SOCKET: &str = "/run/windlass/host.sock";

/// Which host.toml a host reads unless told otherwise.
pub(crate) const DEFAULT_CONFIG: &str = "/etc/windlass/host.toml";

/// How the answer is written.
#[derive(Debug, Args)]
pub(crate) struct Format {
    /// For people, or for programs.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub(crate) output: Output,
}

/// Which host is asked, and how its answer is written.
#[derive(Debug, Args)]
pub(crate) struct HostOptions {
    /// The host's socket; access to it is a matter of file permissions.
    #[arg(long, value_name = "PATH", env = "WINDLASS_SOCKET", default_value = DEFAULT_SOCKET)]
    pub(crate) socket: PathBuf,
    /// How its answer is written.
    #[command(flatten)]
    pub(crate) format: Format,
}

// === impl HostOptions ===

impl HostOptions {
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        Client::to(&self.socket)
    }

    pub(crate) fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        client::run(self.client()?.get(path))
    }

    /// Orders something, and says what it led to.
    pub(crate) fn order<B: Serialize>(&self, path: &str, body: &B) -> Result<(), Failure> {
        self.say(&client::run(self.client()?.post(path, body))?)
    }

    /// Says what an order led to.
    pub(crate) fn say(&self, done: &Done) -> Result<(), Failure> {
        self.answer(done, |done| format!("{}\n", done.message))
    }

    /// Writes an answer: this text for people, the value for programs.
    pub(crate) fn answer<T: Serialize>(
        &self,
        value: &T,
        words: impl FnOnce(&T) -> String,
    ) -> Result<(), Failure> {
        out::answer(self.format.output, value, words)
    }
}

/// Reads vCPUs as in files: `2`, `0.25`, `250m`.
pub(crate) fn cpu(text: &str) -> Result<MilliCpu, String> {
    Node::Text(text.to_owned()).cpu().ok_or_else(|| "write vCPUs, as 2 or 0.25".to_owned())
}

/// Reads memory as in files: `512MiB`, `1GiB`.
pub(crate) fn memory(text: &str) -> Result<Bytes, String> {
    Node::Text(text.to_owned()).memory().ok_or_else(|| "write memory, as 512MiB or 1GiB".to_owned())
}
