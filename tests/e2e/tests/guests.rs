//! Real guests with the real informant, under a real `windlass host`.
//!
//! Each test is a story: what somebody does, and what everybody then sees. Underneath, all the
//! time, the books are compared with QEMU and with the guests' own kernels.

#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "guests/crash.rs"]
mod crash;
#[path = "guests/growth.rs"]
mod growth;
#[path = "guests/handover.rs"]
mod handover;
#[path = "guests/informant.rs"]
mod informant;
#[path = "guests/loss.rs"]
mod loss;
#[path = "guests/observe.rs"]
mod observe;
#[path = "guests/reboot.rs"]
mod reboot;
#[path = "guests/room.rs"]
mod room;
#[path = "guests/versions.rs"]
mod versions;
