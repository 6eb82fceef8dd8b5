//! A `windlass-plugin` of a test's own: its list, its process, its books.

use crate::books::{Books, Keeper};
use crate::http;
use crate::programs::beside;
use crate::served::Served;
use crate::vm::{UNIT_MIB, Vm};
use anyhow::{Context, Result};
use std::net::SocketAddr;
use std::path::Path;

/// A plugin as a process.
pub(crate) struct Plugin {
    served: Served,
    permits: SocketAddr,
}

/// Somebody who looks at its books.
pub(crate) struct PluginEye {
    dump_state: SocketAddr,
}

// === impl Plugin ===

impl Plugin {
    /// Starts it for one node with room for this many compute units, and these VMs. Blocks.
    pub(crate) fn start(folder: &Path, room: u32, vms: &[Vm]) -> Result<Self> {
        let program = beside("windlass-plugin")?;
        let served = Served::start(&program, folder, "plugin", &listed(room, vms))?;
        let permits = served.permits.context("the plugin says where it serves permits")?;
        Ok(Self { served, permits })
    }

    /// Where it is asked for permits.
    pub(crate) fn permits(&self) -> SocketAddr {
        self.permits
    }

    /// Somebody who looks at its books, as long as it lives.
    pub(crate) fn eye(&self) -> PluginEye {
        PluginEye { dump_state: self.served.dump_state }
    }

    /// Ends it in good order.
    pub(crate) async fn stop(&mut self) -> Result<()> {
        self.served.stop().await.context("the plugin ended badly")
    }
}

impl Keeper for PluginEye {
    /// It has one life.
    async fn look(&self) -> Option<(u64, Books)> {
        let dump = http::dump(self.dump_state).await.ok()?;
        Books::of_plugin(&dump).map(|books| (0, books))
    }
}

fn listed(room: u32, vms: &[Vm]) -> String {
    let mut text = format!(
        "listen = \"127.0.0.1:0\"\ndump_state = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n\
         [compute_unit]\ncpu = 1\nmemory = \"{UNIT_MIB}MiB\"\n\
         [[node]]\nname = \"node\"\ncpu = {room}\nmemory = \"{}MiB\"\n",
        room * UNIT_MIB
    );
    for Vm { name, boot, most, most_cpus, .. } in vms {
        text += &format!(
            "[[vm]]\nname = \"{name}\"\nnode = \"node\"\n\
             min = {{ cpu = 1, memory = \"{}MiB\" }}\n\
             max = {{ cpu = {most_cpus}, memory = \"{}MiB\" }}\n",
            boot * UNIT_MIB,
            most * UNIT_MIB
        );
    }
    text
}
