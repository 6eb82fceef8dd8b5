//! The plugin's files: plugin.toml, the reference's JSON, and the lists of nodes and VMs.
//!
//! Each key stands once, in [`keys`]; [`config`] and [`lists`] read a file by these tables and look at
//! what its values say together. The command line checks files with this crate, so nothing in it links
//! the client of an API server.

pub mod config;
pub mod keys;
pub mod kubernetes;
pub mod lists;
mod pools;
