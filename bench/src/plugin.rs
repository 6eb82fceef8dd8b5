//! A `windlass-plugin` of the benchmark's own.

use crate::program::Program;
use crate::sizes::Resident;
use anyhow::{Context, Result};
use std::fmt::Write;
use std::net::SocketAddr;
use windlass_lab::Folder;

/// A running plugin. It ends with this value.
pub(crate) struct Plugin {
    program: Program,
    /// Where it is asked for permits.
    pub(crate) permits: SocketAddr,
}

// === impl Plugin ===

impl Plugin {
    /// One with so many VMs on one node with room for them all.
    pub(crate) fn start(vms: usize) -> Result<Self> {
        let mut program = Program::start("windlass-plugin", Folder::create()?, &text(vms)?)?;
        let permits = program.until("address of permits", |program| {
            let log = program.log();
            let at = log.lines().find_map(|line| line.strip_prefix("permits http://"))?;
            log.contains("\nready\n").then(|| at.to_owned())
        })?;
        let permits = permits.parse().with_context(|| permits.clone())?;
        Ok(Self { program, permits })
    }

    /// Its memory.
    pub(crate) fn resident(&self) -> Result<Resident> {
        self.program.resident()
    }
}

fn text(vms: usize) -> Result<String> {
    let mut text = String::from(
        "listen = \"127.0.0.1:0\"\ndump_state = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n\
         [compute_unit]\ncpu = 1\nmemory = \"1GiB\"\n",
    );
    writeln!(text, "[[node]]\nname = \"n\"\ncpu = 4096\nmemory = \"8192GiB\"")?;
    for vm in 0..vms {
        writeln!(text, "[[vm]]\nname = \"vm{vm}\"\nnode = \"n\"\nmemory_slot = \"1GiB\"")?;
        writeln!(text, "min = {{ cpu = 1, memory = \"1GiB\" }}")?;
        writeln!(text, "max = {{ cpu = 4, memory = \"4GiB\" }}")?;
    }
    Ok(text)
}
