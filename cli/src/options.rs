//! Options that several commands have.

use crate::api::Done;
use crate::client::{self, Client};
use crate::failure::Failure;
use crate::out::{self, Output};
use clap::Args;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::PathBuf;

/// Where a host serves its socket unless told otherwise.
pub const DEFAULT_SOCKET: &str = "/run/windlass/host.sock";

/// Which host.toml a host reads unless told otherwise.
pub const DEFAULT_CONFIG: &str = "/etc/windlass/host.toml";

/// How the answer is written.
#[derive(Debug, Args)]
pub struct Format {
    /// For people, or for programs.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub output: Output,
}

/// Which host is asked, and how its answer is written.
#[derive(Debug, Args)]
pub struct HostOptions {
    /// The host's socket; access to it is a matter of file permissions.
    #[arg(long, value_name = "PATH", env = "WINDLASS_SOCKET", default_value = DEFAULT_SOCKET)]
    pub socket: PathBuf,
    /// How its answer is written.
    #[command(flatten)]
    pub format: Format,
}

// === impl HostOptions ===

impl HostOptions {
    /// A client of the host.
    ///
    /// # Errors
    /// As [`Client::to`].
    pub fn client(&self) -> Result<Client, Failure> {
        Client::to(&self.socket)
    }

    /// Reads something.
    ///
    /// # Errors
    /// The host does not answer, or refuses.
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        client::run(self.client()?.get(path))
    }

    /// Orders something, and says what it led to.
    ///
    /// # Errors
    /// The host does not answer, or refuses.
    pub fn order<B: Serialize>(&self, path: &str, body: &B) -> Result<(), Failure> {
        self.say(&client::run(self.client()?.post(path, body))?)
    }

    /// Says what an order led to.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn say(&self, done: &Done) -> Result<(), Failure> {
        self.answer(done, |done| format!("{}\n", done.message))
    }

    /// Writes an answer: this text for people, the value for programs.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn answer<T: Serialize>(
        &self,
        value: &T,
        words: impl FnOnce(&T) -> String,
    ) -> Result<(), Failure> {
        out::answer(self.format.output, value, words)
    }
}
