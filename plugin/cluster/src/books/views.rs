//! The VMs of a cluster for people, and the conditions that are written of them.

use super::ClusterBooks;
use super::lock;
use crate::rebuild::NotYet;
use windlass_plugin_core::conditions::Look;
use windlass_plugin_core::neighbours::Nodes;
use windlass_protocol::vm_view::VmViews;
use windlass_protocol::{Moment, VmName};

/// As many VMs are in one answer: some megabytes of JSON.
const MOST: usize = 5000;

// === impl ClusterBooks ===

impl ClusterBooks {
    /// The VMs of a namespace, or all.
    ///
    /// # Errors
    /// These books answer nobody at this moment.
    pub fn views(&self, namespace: Option<&str>) -> Result<VmViews, NotYet> {
        let since = self.listening_since()?;
        Ok(self.read().views(self.now(), since, namespace, MOST))
    }

    /// The VMs that are called this: a pod, or those that run an object.
    ///
    /// # Errors
    /// These books answer nobody at this moment.
    pub fn views_of(&self, name: &VmName) -> Result<VmViews, NotYet> {
        let since = self.listening_since()?;
        Ok(self.read().views_of(self.now(), since, name))
    }

    /// The VMs that came since the last time are here since about now.
    pub(crate) fn greet(&self) {
        if self.read().has_newcomers() {
            self.write().greet(self.now());
        }
    }

    /// The condition of each VM.
    ///
    /// # Errors
    /// These books answer nobody at this moment.
    pub(crate) fn looks(&self) -> Result<Vec<Look>, NotYet> {
        let since = self.listening_since()?;
        Ok(self.read().looks(self.now(), since))
    }

    /// What other programs cannot know of the nodes.
    ///
    /// # Errors
    /// These books answer nobody at this moment.
    pub(crate) fn neighbourhood(&self) -> Result<Nodes, NotYet> {
        self.serves()?;
        Ok(self.read().neighbourhood())
    }

    /// Since when this process answers agents, in its epoch.
    ///
    /// # Errors
    /// These books answer nobody at this moment.
    pub(crate) fn listening_since(&self) -> Result<Moment, NotYet> {
        let (epoch, now) = (self.serves()?, self.now());
        let mut listening = lock(&self.0.listening);
        let known = listening.filter(|(of, _)| *of == epoch).map(|(_, since)| since);
        let since = known.unwrap_or(now);
        *listening = Some((epoch, since));
        Ok(since)
    }
}
