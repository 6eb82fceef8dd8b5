//! The informant for guests whose PostgreSQL keeps a file cache.
//!
//! It is the informant with something beside it: what it decides of the cache is in
//! `windlass-informant-postgres-core`; here is how it acts: [`postgres`] answers agents,
//! [`worker`] carries out the plan on a thread of its own, [`database`] speaks to PostgreSQL,
//! [`note`] outlives a restart.

pub mod config;
pub mod database;
pub mod metrics;
pub mod note;
pub mod postgres;
pub mod worker;
