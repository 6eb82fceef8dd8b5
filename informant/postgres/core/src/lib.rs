//! What is decided of PostgreSQL's file cache: how large it is to be, and when less memory may
//! be agreed to.
//!
//! A [`FileCache`] is a plain value. It is told what happened ([`FileCache::observe`]) and asked
//! what to do ([`FileCache::plan`]); [`propose`](FileCache::propose) says whether less memory
//! would do, before anything is touched. It never waits, sends or reads a clock.
//!
//! - **Consent before shrinkage.** Less memory is agreed to only once PostgreSQL says that the
//!   cache is as small as it must be, and what else is in use fits beside it.
//! - **The world, not the wish.** The cache is as large as PostgreSQL says, and may be as large
//!   as what was asked for and not seen; it grows into memory that is there.
//! - **Fail static.** Without PostgreSQL less memory is refused, and the rest goes on. What was
//!   begun and not agreed to is taken back.
//!
//! Where to look: words between core and shell in [`event`]; how large the cache is to be in
//! [`size`]; the cache itself in [`cache`].

mod backoff;
pub mod cache;
pub mod event;
pub mod size;

pub use cache::{FileCache, Proposal};
pub use event::{Action, Event, Plan, Problem, Seen};
