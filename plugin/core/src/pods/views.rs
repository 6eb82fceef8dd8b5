//! The VMs of a cluster as people see them: in a list, one by one, and by the condition of each.

use crate::books::Books;
use crate::cluster::Node;
use crate::conditions::{Facts, Look};
use crate::neighbours::Nodes;
use crate::pods::Pods;
use crate::pods::held::HeldNode;
use crate::pods::known::Known;
use crate::pods::pools::Mode;
use crate::pods::rooms::Rooms;
use std::cell::LazyCell;
use std::ops::Deref;
use std::sync::Arc;
use windlass_protocol::vm_view::{VmView, VmViews};
use windlass_protocol::{Moment, VmName};

// === impl Pods ===

impl<N: Node> Pods<N> {
    /// The VMs that are on a node, by pod: of this namespace, or all, and at most so many. Agents would have been heard
    /// since `listening_since`.
    pub fn views(
        &self,
        now: Moment,
        listening_since: Moment,
        namespace: Option<&str>,
        most: usize,
    ) -> VmViews {
        let mut names: Vec<&Arc<VmName>> = self
            .placed()
            .filter(|name| namespace.is_none_or(|only| name.namespace == only))
            .collect();
        names.sort_unstable();
        let rooms = LazyCell::new(|| self.rooms());
        let views = |name: &&Arc<VmName>| self.view(now, listening_since, name, &rooms);
        let vms: Vec<_> = names.iter().take(most).filter_map(views).collect();
        VmViews { at: now, vms, left_out: names.len().saturating_sub(most) }
    }

    /// The VMs that are called this: the pod of this name, or those that run the object of this name.
    pub fn views_of(&self, now: Moment, listening_since: Moment, name: &VmName) -> VmViews {
        let of_object = self.objects.pods.get(name).into_iter().flatten().map(|pod| &**pod);
        let (own, rooms) = ([name].into_iter(), LazyCell::new(|| self.rooms()));
        let view = |pod| self.view(now, listening_since, pod, &rooms);
        let views = own.chain(of_object).filter_map(view);
        VmViews { at: now, vms: views.collect(), left_out: 0 }
    }

    /// The condition of each VM that is on a node, and what its pod shows of it. Of pods that go nothing is written.
    pub fn looks(&self, now: Moment, listening_since: Moment) -> Vec<Look> {
        let rooms = LazyCell::new(|| self.rooms());
        let look = |name: &Arc<VmName>| {
            let known = self.pods.get(name).filter(|known| !known.is_terminating())?;
            let (view, vm) = (self.view(now, listening_since, name, &rooms)?, known.vm()?);
            Some(Look {
                pod: view.pod,
                uid: known.uid.clone(),
                object: view.object,
                object_uid: known.record.object_uid().map(str::to_owned),
                shown: vm.scaling.clone(),
                condition: view.condition,
            })
        };
        self.placed().filter_map(look).collect()
    }

    /// What other programs cannot know of the nodes.
    pub fn neighbourhood(&self) -> Nodes {
        let has_vms = |held: &&HeldNode<N>| {
            let is_vm = |name: &Arc<VmName>| self.pods.get(name).is_some_and(Known::is_vm);
            held.is(Mode::Dedicated) && held.pods.iter().any(is_vm)
        };
        let have_labels = self.pools.pools.iter().any(|pool| !pool.labels.is_empty());
        Nodes { dedicated: self.nodes.values().filter(has_vms).count(), have_labels }
    }

    /// Whether a VM came since VMs were [greeted](Pods::greet).
    pub const fn has_newcomers(&self) -> bool {
        !self.newcomers.is_empty()
    }

    /// The VMs that came since the last time are here since about now: an agent may not have heard of them yet.
    pub fn greet(&mut self, now: Moment) {
        for name in std::mem::take(&mut self.newcomers) {
            if let Some(node) = self.books_of(&name) {
                node.with_books(|books| books.greet(now, &name));
            }
        }
    }

    /// `rooms` is looked at for VMs alone that are to leave their nodes.
    fn view<'a>(
        &'a self,
        now: Moment,
        listening_since: Moment,
        pod: &VmName,
        rooms: &impl Deref<Target = Rooms<'a>>,
    ) -> Option<VmView> {
        let known = self.pods.get(pod)?;
        let (vm, node) = (known.vm()?, known.place()?);
        let on = self.nodes.get(node)?;
        let told = on.there()?.held.with_books(|books: &mut Books| books.known(now, pod))?;
        let not_resized = self.not_resized(pod).map(|it| it.why);
        let stays = self.stays((known, vm), (node, on), told.reserved, rooms);
        let facts =
            Facts { known: &told, problems: &vm.problems, not_resized, stays, listening_since };
        let condition = facts.judge(now);
        // The agent of the VM reads its object.
        let of_object = known.other_object().and_then(|object| self.objects.bounds(object));
        let is_permitted = told.is_permitted();
        let (goal, words) = told.told.map_or((None, None), |told| (told.goal, Some(told.words)));
        // That it waits for its permit is no longer so.
        let words = words.filter(|_| !is_permitted);
        Some(VmView {
            pod: pod.clone(),
            object: vm.object.clone(),
            node: node.to_owned(),
            bounds: of_object.unwrap_or(vm.bounds),
            priority: vm.priority,
            reserved: told.reserved,
            wanted: told.wanted,
            goal,
            heard: told.heard,
            told: words.map(Into::into),
            condition,
        })
    }

    /// The pods of VMs that nodes hold.
    fn placed(&self) -> impl Iterator<Item = &Arc<VmName>> {
        let nodes = self.nodes.values().filter(|held| held.there().is_some());
        // Nobody asks for a VM that is not to be scaled.
        let is_scaled = |name: &&Arc<VmName>| {
            let vm = self.pods.get(&***name).and_then(Known::vm);
            vm.is_some_and(|vm| vm.is_enabled)
        };
        nodes.flat_map(|held| &held.pods).filter(is_scaled)
    }
}
