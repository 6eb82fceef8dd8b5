//! The program's parts without a process: permits, state, configuration and its page.

mod bodies;
mod dump;
mod files;
mod kubernetes;
mod page;
