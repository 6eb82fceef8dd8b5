//! Billing with a real disk, a real receiver, and a process that is killed.
#![expect(clippy::unwrap_used, reason = "tests")]

mod config;
mod disk;
mod documents;
mod receiver;
mod service;
mod sigkill;
