//! Whether books that are rebuilt equal those that were lost, after each agent's next requests.

use crate::cluster::ClusterWorld;
use crate::cluster::laws::Law;
use crate::cluster::nodes::is_resized;
use crate::cluster::plugin::{Clock, Held};
use crate::cluster::pods::beside;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;
use windlass_plugin_core::cluster::Node;
use windlass_plugin_core::pods::{NodePods, Outcome};
use windlass_plugin_core::{Ask, Books, Pods, Proposed};
use windlass_protocol::pod::Pod;
use windlass_protocol::status::NodeStatus;
use windlass_protocol::timing::REQUEST_IS_LATE;
use windlass_protocol::{Moment, Resources, VmName};

/// Nothing that was said before is under way by then.
const LATER: Duration = Duration::from_secs(60);

// === impl ClusterWorld ===

impl ClusterWorld {
    /// This plugin begins to answer: its books equal those of the plugin that answered before.
    pub(super) fn compare_with_the_last(&mut self, nth: usize) {
        let lost = self.lost.take();
        let last = self.last.filter(|last| *last != nth).map(|last| {
            let process = &self.plugins[last];
            (process.plugin.books.clone(), process.clock)
        });
        let Some((lost, clock)) = lost.or(last) else { return };
        self.met.note("takeovers");
        if self.now < self.remembers_until {
            self.met.note("plugins that were lost when they were to remember");
            self.judge.is_outside = true;
            return;
        }
        let process = &self.plugins[nth];
        let (books, its_clock) = (process.plugin.books.clone(), process.clock);
        let live = self.after_each_agent_spoke(lost, clock);
        let rebuilt = self.after_each_agent_spoke(books, its_clock);
        // What it has sent of headroom since then holds no room.
        let plugin = &self.plugins[nth].plugin;
        let rests = |(node, ..): &Spoken| !plugin.writes_headroom_of(&node.name);
        let [live, rebuilt] =
            [live, rebuilt].map(|spoken| spoken.into_iter().filter(rests).collect::<Vec<_>>());
        for _ in both_spoken(&live, &rebuilt) {
            self.met.note("nodes whose rebuilt books were compared");
        }
        if let Some(unlike) = unlike(&live, &rebuilt) {
            self.judge.say(self.now, Law::RebuildEqualsLive, unlike);
        }
    }

    /// Where the books of the plugin that answers differ from books that are made of nothing but what the API server has.
    pub(super) fn unlike_the_rebuilt(&self) -> Option<String> {
        let process = &self.plugins[self.serving().next()?.0];
        let (books, clock) = (process.plugin.books.clone(), process.clock);
        let live = self.after_each_agent_spoke(books, clock);
        let rebuilt = self.after_each_agent_spoke(Pods::of(self.pools.clone()), clock);
        unlike(&live, &rebuilt)
    }

    /// What books come to once the API server's objects were listed, and each agent has said once more what it may
    /// have, and again once nothing that was said before can be under way.
    fn after_each_agent_spoke(&self, mut pods: Pods<Held>, clock: Clock) -> Vec<Spoken> {
        pods.nodes_listed(self.api.nodes.values().map(|it| (**it).clone()).collect(), |node| {
            Held::empty(&node.name)
        });
        let all: Vec<Pod> = self.api.pods.values().map(|pod| Pod::clone(pod)).collect();
        pods.pods_listed(all);
        let objects = self.api.vms.values().map(|stored| stored.shown.object.clone());
        pods.objects_listed(objects.collect());
        pods.migrations_listed(self.api.migrations(), clock.at(self.now));
        let open: Vec<(VmName, String)> =
            pods.placements().map(|(name, uid, _)| (name.clone(), uid.to_owned())).collect();
        for (name, uid) in open {
            // It is read once no binding of it can take effect any more.
            let read = self.api.pods.get(&name).map(|pod| {
                Box::new(Pod { revision: format!("{} touched", pod.revision), ..Pod::clone(pod) })
            });
            pods.settle(&name, &uid, Outcome::Read(read));
        }
        let later = clock.at(self.now).after(LATER);
        let mut told = BTreeMap::new();
        for later in [later, later.after(REQUEST_IS_LATE)] {
            for pod in self.api.pods.values().filter(|pod| pod.vm.is_some() && pod.counts()) {
                let agent = self.agents.get(&pod.uid);
                let names = agent.is_some_and(|agent| agent.names_last);
                let told_now = told.get(&pod.uid).copied().filter(|_| names);
                let last = agent.and_then(|agent| agent.permit).or(told_now);
                let own = || pod.requests.saturating_sub(beside(pod));
                let has = agent.map_or_else(own, |agent| agent.size);
                let wanted = last.unwrap_or(has);
                let ask = Ask { last_permit: last, names_permits: names, ..Ask::from(wanted) };
                if let Some(node) = pods.node_of(&pod.name) {
                    let granted = node.with_books(|books| permit(books, later, &pod.name, ask));
                    told.extend(granted.map(|permit| (pod.uid.clone(), permit)));
                }
            }
        }
        let later = later.after(LATER);
        let spoken = |(name, held): (&str, &Held)| {
            let status = held.with_books(|books| books.status(later));
            // Until when a pod is not asked to grow is known to the plugin that asked.
            let node = NodePods { not_resized: Vec::new(), ..pods.status_of(name)? };
            Some((node, status, self.waits_for_a_word(name, held)))
        };
        pods.nodes().filter_map(spoken).collect()
    }

    /// Whether, where VMs' pods are resized, an agent's word does not count yet: until the kubelet has allocated what its VM may
    /// have had before, or because the VM has ended while its pod is still there.
    fn waits_for_a_word(&self, node: &str, held: &Held) -> bool {
        let is_resized = self.api.nodes.get(node).is_some_and(|node| is_resized(node));
        let is_silent = |pod: &Rc<Pod>| held.with_books(|it| !it.is_spoken_for(&pod.name));
        // While a VM moves, no word lowers what its pods count with, also where no word tells of its migration yet.
        let moves = |pod: &Rc<Pod>| {
            let known = held.with_books(|it| it.known(Moment::default(), &pod.name));
            let object = pod.vm.as_ref().map(|vm| &vm.object);
            known.is_some_and(|known| known.moves)
                || object.is_some_and(|object| self.api.migration_of(object).is_some())
        };
        let waits = |pod: &Rc<Pod>| moves(pod) || (is_resized && is_silent(pod));
        self.api.on(node).filter(|pod| pod.vm.is_some() && pod.counts()).any(waits)
    }
}

/// A node and its VMs, and whether a word of an agent does not count there yet.
type Spoken = (NodePods, NodeStatus, bool);

/// The nodes where each agent's word counts in both.
fn both_spoken<'a>(
    live: &'a [Spoken],
    rebuilt: &'a [Spoken],
) -> impl Iterator<Item = (&'a Spoken, &'a Spoken)> {
    live.iter().zip(rebuilt).filter(|(live, rebuilt)| !live.2 && !rebuilt.2)
}

fn unlike(live: &[Spoken], rebuilt: &[Spoken]) -> Option<String> {
    let unlike = both_spoken(live, rebuilt).find(|(live, rebuilt)| live != rebuilt);
    unlike.map(|(live, rebuilt)| format!("{live:?} was lost, and {rebuilt:?} is rebuilt"))
}

/// An agent asks, and a ceiling that is called for is recorded at once: what it is told.
fn permit(books: &mut Books, now: Moment, vm: &VmName, ask: Ask) -> Option<Resources> {
    let granted = match books.propose(now, vm, ask).ok()? {
        Proposed::Granted(granted) => granted,
        Proposed::Waits => {
            if let Some(write) = books.ceiling_due(vm, u64::from(u32::MAX)) {
                books.ceiling_written(vm, write.next);
            }
            books.request(now, vm, ask).ok()?
        }
    };
    (!books.says_too_little(vm, ask.wanted, &granted)).then_some(granted.permit)
}
