//! The agent's files: agent.toml, and the reference's JSON.
//!
//! Each key stands once, in [`keys`]; [`config`] reads a file by these tables and looks at what its values say together. The command
//! line checks files with this crate, so nothing in it links the client of an API server.

pub mod config;
pub mod keys;
