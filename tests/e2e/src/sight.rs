//! One VM at one moment, as a plugin, an agent, QEMU and the guest see it.

use crate::books::Keeper;
use crate::http;
use crate::plugin::PluginEye;
use crate::view::resources;
use crate::vm::UNIT_MIB;
use serde_json::Value;
use std::net::SocketAddr;
use windlass_lab::{Guest, Inside, Outside};
use windlass_protocol::Resources;

/// What is seen of one VM. What does not answer is `None`.
#[derive(Clone, Debug)]
pub struct Sight {
    /// What the plugin's books have.
    pub booked: Option<Resources>,
    /// What the agent's state says of it.
    pub pod: Value,
    /// What QEMU says that it has.
    pub outside: Option<Outside>,
    /// What the guest's kernel says that it has.
    pub inside: Option<Inside>,
}

// === impl Sight ===

impl Sight {
    /// Looks; at `agent` if it runs.
    pub(crate) async fn of(guest: &Guest, plugin: &PluginEye, agent: Option<SocketAddr>) -> Self {
        let books = plugin.look().await;
        let booked = books.and_then(|(_, books)| books.vms.get(guest.name()).copied());
        let pod = match agent {
            Some(agent) => pod(agent, guest.name()).await.unwrap_or_default(),
            None => Value::Null,
        };
        let (outside, inside) = (guest.outside().await.ok(), guest.inside().await.ok());
        Self { booked, pod, outside, inside }
    }

    /// Whether guest, hypervisor and the plugin's books agree that it has this many compute units.
    pub fn has(&self, units: u32) -> bool {
        self.uses(units) && self.booked == Some(resources(units))
    }

    /// Whether guest and hypervisor agree that it has this many compute units, whatever the books
    /// say.
    pub fn uses(&self, units: u32) -> bool {
        let memory = u64::from(units * UNIT_MIB) << 20;
        let settled = |o: &Outside| o.memory() == memory && o.upper_memory() == memory;
        let online = self.inside.as_ref().and_then(|inside| inside.cpus_online);
        online == Some(units) && self.outside.as_ref().is_some_and(settled)
    }

    /// The mode of the agent's session, in the reference's words; empty without one.
    pub fn mode(&self) -> &str {
        self.pod["runner"]["server"]["mode"].as_str().unwrap_or_default()
    }
}

/// What an agent's state says of a VM.
async fn pod(agent: SocketAddr, name: &str) -> Option<Value> {
    let dump = http::dump(agent).await.ok()?;
    dump["pods"].as_array()?.iter().find(|pod| pod["podName"]["name"] == name).cloned()
}
