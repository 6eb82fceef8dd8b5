//! Permits in a cluster: what is answered at once, what waits for a ceiling, and what came of the write of one.

use super::{ClusterBooks, ClusterNode};
use crate::leadership::Epoch;
use crate::proposals::Proposals;
use tokio::time::{Instant, timeout};
use windlass_plugin::{Permits, Proposed, Shared};
use windlass_plugin_core::Books;
use windlass_plugin_core::ceilings::{CeilingWrite, FirstCeiling};
use windlass_plugin_core::cluster::Node;
use windlass_plugin_core::pods::{CeilingOn, Outcome, Placement, WhyNot};
use windlass_plugin_core::wire::Refusal;
use windlass_protocol::VmName;
use windlass_protocol::plugin::{RawRequest, Told};
use windlass_protocol::pod::{Ceiling, Pod};
use windlass_protocol::timing::ANSWER_WAITS;

impl Permits for ClusterBooks {
    /// The node that has the VM's pod answers. What it gives back may be room for a pod that waits. A plugin that stands by
    /// does not ask its books: they must not believe what an agent said to it. An answer above the recorded ceiling waits
    /// for a higher one; after a while the agent is told what was promised before.
    async fn answer(&self, request: Result<RawRequest, Refusal>) -> Result<Vec<u8>, Refusal> {
        let began = Instant::now();
        let answer = self.ask(request).await;
        self.0.requests.took(began.elapsed());
        // The lease may have ended meanwhile.
        answer.and_then(|body| self.answers().map(|()| body))
    }

    /// A pod that is not known may be one that the watch does not show yet.
    fn passes(&self, refusal: &Refusal) -> bool {
        matches!(refusal, Refusal::Passing(_) | Refusal::UnknownVm(_))
    }
}

// === impl ClusterBooks ===

impl ClusterBooks {
    /// Room for a pod that was read, and the ceiling to bind it with; or why there is none.
    ///
    /// # Errors
    /// Why not.
    pub(crate) fn place(
        &self,
        pod: &Pod,
        node: &str,
    ) -> Result<(Placement, Option<FirstCeiling>), WhyNot> {
        let epoch = self.serves().ok();
        let mut pods = self.write();
        let placement = pods.place(pod, node)?;
        Ok((placement, epoch.and_then(|epoch| pods.first_ceiling(pod, epoch.0))))
    }

    /// The API server has bound a pod, with this ceiling. The watch may have shown it before.
    pub(crate) fn bound(&self, name: &VmName, uid: &str, first: Option<FirstCeiling>) {
        let mut pods = self.write();
        pods.settle(name, uid, Outcome::Bound);
        if let Some(first) = first {
            pods.bound_with(name, uid, first);
        }
    }

    /// The VMs whose ceilings are to be recorded.
    pub(crate) fn proposals(&self) -> &Proposals {
        &self.0.proposals
    }

    /// The VMs whose pods are to be resized.
    pub(crate) fn resizes(&self) -> &Proposals {
        &self.0.resizes
    }

    /// The ceiling of a VM that is to be recorded, and where.
    pub(crate) fn ceiling_due(
        &self,
        vm: &VmName,
        epoch: Epoch,
    ) -> Option<(CeilingOn, CeilingWrite)> {
        self.read().ceiling_due(vm, epoch.0)
    }

    /// The API server has recorded a ceiling.
    pub(crate) fn ceiling_written(&self, vm: &VmName, written: Ceiling) {
        self.change(vm, |books| books.ceiling_written(vm, written));
    }

    /// The annotation was not what was known, but this.
    pub(crate) fn ceiling_read(&self, vm: &VmName, read: Option<Ceiling>) {
        self.change(vm, |books| books.ceiling_read(vm, read));
    }

    /// No ceiling is recorded: what was proposed is free.
    pub(crate) fn ceiling_given_up(&self, vm: &VmName) {
        self.change(vm, |books| books.ceiling_given_up(vm));
    }

    /// The agent of a VM tells of it, and asks for nothing.
    pub(crate) fn hear(&self, vm: &VmName, told: Told) {
        let now = self.now();
        self.change(vm, |books| books.hear(now, vm, Some(Box::new(told))));
    }

    /// The VMs whose ceilings are too high or too low.
    pub(crate) fn ceilings_to_mend(&self) -> Vec<VmName> {
        if self.serves().is_err() {
            return Vec::new();
        }
        let now = self.now();
        let pods = self.read();
        let mended = |(_, node): (_, &ClusterNode)| {
            node.books.with_books(|books| books.ceilings_to_mend(now))
        };
        pods.nodes().flat_map(mended).collect()
    }

    fn change(&self, vm: &VmName, change: impl FnOnce(&mut Books)) {
        if let Some(node) = self.books_of(vm) {
            self.noting(&node, |books| books.with_books(change));
        }
    }

    pub(super) fn books_of(&self, vm: &VmName) -> Option<ClusterNode> {
        self.read().node_of(vm).cloned()
    }

    /// Asks the books of a node, and notes whether room came free there.
    fn noting<T>(&self, node: &ClusterNode, ask: impl FnOnce(&Shared) -> T) -> T {
        let before = node.books.summary().free();
        let answer = ask(&node.books);
        if !before.covers(node.books.summary().free()) {
            self.note_freed(&node.name);
        }
        answer
    }

    async fn ask(&self, request: Result<RawRequest, Refusal>) -> Result<Vec<u8>, Refusal> {
        let request = request.and_then(|request| self.answers().map(|()| request));
        let vm = request.as_ref().ok().map(RawRequest::vm);
        let (node, request) = match (vm.and_then(|vm| self.books_of(vm)), request) {
            (Some(node), Ok(request)) => (node, request),
            (_, request) => return self.0.nowhere.answer(request).await,
        };
        let waiting = match self.noting(&node, |books| books.propose(request))? {
            Proposed::Said(body) => return Ok(body),
            Proposed::Waits(waiting) => waiting,
        };
        let vm = &waiting.vm;
        let ended =
            if self.is_resized(vm) { self.wait_for_kubelet(vm) } else { self.0.proposals.add(vm) };
        match ended {
            // Whether it ended in time shows in the books.
            Some(ended) => drop(timeout(ANSWER_WAITS, ended).await),
            None => self.ceiling_given_up(vm),
        }
        // The pod may have come to another node.
        match self.books_of(&waiting.vm) {
            Some(node) => self.noting(&node, |books| books.again(waiting)),
            None => self.0.nowhere.again(waiting),
        }
    }
}
