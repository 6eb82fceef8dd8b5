//! The whole program `windlass host`, with hypervisors that only talk, and its command line.

#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "host/support.rs"]
mod support;

#[path = "host/check.rs"]
mod check;
#[path = "host/check_folder.rs"]
mod check_folder;
#[path = "host/completions.rs"]
mod completions;
#[path = "host/doctor.rs"]
mod doctor;
#[path = "host/files.rs"]
mod files;
#[path = "host/hangs.rs"]
mod hangs;
#[path = "host/hostile.rs"]
mod hostile;
#[path = "host/orders.rs"]
mod orders;
#[path = "host/restart.rs"]
mod restart;
#[path = "host/terminal.rs"]
mod terminal;
#[path = "host/told.rs"]
mod told;
#[path = "host/view.rs"]
mod view;
