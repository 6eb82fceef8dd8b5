//! The CPU quota of the cgroup that a VM's process has to itself.
//!
//! [`Machine::group_of`] finds the cgroup, or says why there is none to use. A [`Limiter`] sets its quota,
//! reads it, and puts back what it found. It keeps that in a file before its first write, so that a later
//! start can put it back too. A quota that somebody else has set is a ceiling: no limit is ever above it.
//!
//! All calls block: on files of the kernel, on a sync of the kept file, and for a systemd unit on
//! `systemctl`, at most [`systemd::DEADLINE`] for a command and [`SETTLES`] until the kernel shows what
//! it did. When limits change, and what they are, is the caller's matter.

mod above;
mod drop_in;
mod find;
mod group;
mod kept;
mod limiter;
mod machine;
mod mounts;
mod no_group;
mod quota;
mod subtree;
pub mod systemd;
mod version;

pub use group::{Group, SETTLES, Throttled, WriteError};
pub use kept::{forget_gone, found};
pub use limiter::{LEAST, Limiter, Look, SetError};
pub use machine::Machine;
pub use no_group::NoGroup;
pub use quota::{PERIOD_US, Quota};
pub use version::Version;
