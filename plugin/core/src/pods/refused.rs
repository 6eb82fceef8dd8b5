//! VM pods that were refused for want of room. Bounded: the oldest is forgotten, since the scheduler looks
//! at it again by itself before long.

use std::collections::BTreeMap;
use windlass_protocol::{Moment, Resources, VmName};

/// As many are remembered.
pub(crate) const MOST: usize = 1_000;

/// A VM pod that waits for room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The pod.
    pub name: VmName,
    /// Its uid.
    pub uid: String,
    /// What it requests, as the books count it.
    pub asked: Resources,
}

/// The pods that wait, by the order in which they were first refused.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waiting {
    pods: BTreeMap<u64, Refused>,
    numbers: BTreeMap<VmName, u64>,
    next: u64,
    /// Since when the ceilings of VMs were seen to keep their pods from a place, by the uid of the pod.
    pub(crate) too_high: BTreeMap<String, Moment>,
}

// === impl Waiting ===

impl Waiting {
    /// A pod was refused. A pod that waits already keeps its place.
    pub(crate) fn add(&mut self, refused: Refused) {
        if let Some(known) = self.numbers.get(&refused.name).and_then(|at| self.pods.get_mut(at))
            && known.uid == refused.uid
        {
            *known = refused;
            return;
        }
        self.remove(&refused.name);
        self.numbers.insert(refused.name.clone(), self.next);
        self.pods.insert(self.next, refused);
        self.next += 1;
        if self.pods.len() > MOST
            && let Some((_, oldest)) = self.pods.pop_first()
        {
            self.numbers.remove(&oldest.name);
        }
    }

    /// The pods that wait, in order.
    pub(crate) fn pods(&self) -> impl Iterator<Item = &Refused> {
        self.pods.values()
    }

    /// What a pod that waits asks for.
    pub(crate) fn asked(&self, name: &VmName) -> Option<Resources> {
        Some(self.pods.get(self.numbers.get(name)?)?.asked)
    }

    /// A pod that waits asks for something else.
    pub(crate) fn asks(&mut self, name: &VmName, asked: Resources) {
        if let Some(known) = self.numbers.get(name).and_then(|at| self.pods.get_mut(at)) {
            known.asked = asked;
        }
    }

    /// A pod waits no longer.
    pub(crate) fn remove(&mut self, name: &VmName) {
        if let Some(at) = self.numbers.remove(name) {
            self.pods.remove(&at);
        }
    }

    /// The pod with this uid waits no longer.
    pub(crate) fn gone(&mut self, name: &VmName, uid: &str) {
        let known = self.numbers.get(name).and_then(|at| self.pods.get(at));
        if known.is_some_and(|known| known.uid == uid) {
            self.remove(name);
        }
    }

    /// Forgets the pods whose names are not kept.
    pub(crate) fn retain(&mut self, keep: impl Fn(&VmName) -> bool) {
        self.pods.retain(|_, refused| keep(&refused.name));
        self.numbers.retain(|name, _| keep(name));
    }

    /// The pods that fit into what is free one after the other, the one that has waited longest first.
    pub(crate) fn that_fit(&self, mut free: Resources) -> Vec<&Refused> {
        let mut fit = Vec::new();
        for refused in self.pods.values() {
            if free.covers(refused.asked) {
                free = free.saturating_sub(refused.asked);
                fit.push(refused);
            }
        }
        fit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_protocol::{Bytes, MilliCpu};

    #[test]
    fn the_oldest_is_forgotten_and_one_that_is_refused_again_keeps_its_place() {
        let mut waiting = Waiting::default();
        waiting.add(refused("first", 1));
        waiting.add(refused("second", 2));
        waiting.add(refused("first", 3));
        assert_eq!(fit(&waiting, 5), ["first", "second"]);
        assert_eq!(fit(&waiting, 3), ["first"], "together they do not fit");
        assert_eq!(fit(&waiting, 2), ["second"]);
        for nth in 1..MOST {
            waiting.add(refused(&nth.to_string(), 9));
        }
        assert_eq!(fit(&waiting, 5), ["second"]);
        waiting.remove(&VmName::on_host("second"));
        assert!(fit(&waiting, 5).is_empty());
        assert_eq!((waiting.pods.len(), waiting.numbers.len()), (MOST - 1, MOST - 1));
    }

    #[test]
    fn another_pod_of_the_same_name_waits_for_itself() {
        let mut waiting = Waiting::default();
        waiting.add(refused("a", 1));
        waiting.add(refused("b", 1));
        waiting.add(Refused { uid: "other".into(), ..refused("a", 2) });
        assert_eq!(fit(&waiting, 9), ["b", "a"]);
    }

    fn fit(waiting: &Waiting, free: u64) -> Vec<&str> {
        waiting.that_fit(size(free)).into_iter().map(|refused| refused.name.name.as_str()).collect()
    }

    fn refused(name: &str, asked: u64) -> Refused {
        Refused { name: VmName::on_host(name), uid: name.to_owned(), asked: size(asked) }
    }

    fn size(count: u64) -> Resources {
        Resources { cpu: MilliCpu::from_cores(count), mem: Bytes::from_gib(count) }
    }
}
