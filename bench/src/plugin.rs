//! A `windlass-plugin` of the benchmark's own.

use crate::permits::Room;
use crate::program::{Program, beside};
use crate::sizes::Resident;
use anyhow::{Context, Result};
use std::fmt::Write;
use std::net::SocketAddr;
use std::path::Path;
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
        Self::start_on(&[], vms, Room::Free)
    }

    /// The same on a node with this room, started by this command if there is one.
    pub(crate) fn start_on(by: &[&str], vms: usize, room: Room) -> Result<Self> {
        let (binary, text) = (beside("windlass-plugin")?, text(vms, room.units(vms))?);
        let words: Vec<&Path> = by.iter().map(Path::new).chain([binary.as_path()]).collect();
        let mut program = Program::run(words[0], &words[1..], Folder::create()?, &text)?;
        let permits = program.until("address of permits", |program| {
            let log = program.log();
            let at = log.lines().find_map(|line| line.strip_prefix("permits http://"))?;
            log.contains("\nready\n").then(|| at.to_owned())
        })?;
        let permits = permits.parse().with_context(|| permits.clone())?;
        Ok(Self { program, permits })
    }

    /// The id of its process.
    pub(crate) fn pid(&self) -> u32 {
        self.program.pid()
    }

    /// Its memory.
    pub(crate) fn resident(&self) -> Result<Resident> {
        self.program.resident()
    }
}

fn text(vms: usize, units: usize) -> Result<String> {
    let mut text = String::from(
        "listen = \"127.0.0.1:0\"\ndump_state = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n\
         [compute_unit]\ncpu = 1\nmemory = \"1GiB\"\n",
    );
    writeln!(text, "[[node]]\nname = \"n\"\ncpu = {units}\nmemory = \"{units}GiB\"")?;
    for vm in 0..vms {
        writeln!(text, "[[vm]]\nname = \"vm{vm}\"\nnode = \"n\"\nmemory_slot = \"1GiB\"")?;
        writeln!(text, "min = {{ cpu = 1, memory = \"1GiB\" }}")?;
        writeln!(text, "max = {{ cpu = 4, memory = \"4GiB\" }}")?;
    }
    Ok(text)
}
