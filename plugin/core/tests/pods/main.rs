//! The nodes and pods of a cluster: what their objects make of the books, placements, and both laws.
#![expect(clippy::unwrap_used, reason = "tests")]

mod advice;
mod cluster;
mod emptying;
mod fitting;
mod headroom;
mod holds;
mod laws;
mod leaving;
mod limits;
mod model;
mod objects;
mod pacing;
mod placing;
mod resized;
mod resizing;
mod shared;
mod stories;
mod switching;
mod watch;
