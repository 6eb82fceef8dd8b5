//! Writes of one kind to the API server: whose turn it is, how many are under way, and when the next may be sent.
//!
//! What is written of a VM is decided when its turn comes, so requests of one VM wait for one write; those that come while it
//! is under way wait for the next. A VM has at most one write under way, and all together a few. While the API server does
//! not answer, one write at a time finds out whether it does again. A request that is dropped leaves its VM in the queue:
//! what the books reserved for it is settled either way. Bounded: beyond the bound nothing waits.

use crate::backoff::rest;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use windlass_protocol::{Moment, VmName};

/// As many VMs wait.
const MOST: usize = 10_000;

/// Writes that are under way at a time.
const AT_ONCE: usize = 32;

/// Between writes while the API server does not answer.
const FIRST_REST: Duration = Duration::from_millis(100);
const LONGEST_REST: Duration = Duration::from_secs(2);

/// The queue of writes, and the requests of kind `R` that wait for them.
#[derive(Debug)]
pub struct Writes<R> {
    order: VecDeque<VmName>,
    /// The requests that wait, by VM; each VM is in the order once.
    waiting: BTreeMap<VmName, Vec<R>>,
    under_way: BTreeMap<VmName, Vec<R>>,
    /// Writes in a row that had no answer.
    failures: u32,
    /// The last turn that ended had no answer, and neither had the one before.
    gives_up: bool,
    /// When the next write may be sent, while the API server does not answer.
    tries_at: Option<Moment>,
    seed: u64,
}

/// What the turn of a VM heard of the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Nothing was sent.
    NotSent,
    /// It has answered.
    Answered,
    /// It has not.
    NoAnswer,
}

/// Whether the API server answers as before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// As before.
    Same,
    /// It answers no more.
    Lost,
    /// It answers again, after so many writes without an answer.
    Back(u32),
}

// === impl Writes ===

impl<R> Writes<R> {
    /// None yet. Processes with different seeds do not try again in step.
    pub const fn new(seed: u64) -> Self {
        Self {
            order: VecDeque::new(),
            waiting: BTreeMap::new(),
            under_way: BTreeMap::new(),
            failures: 0,
            gives_up: false,
            tries_at: None,
            seed,
        }
    }

    /// A write of this VM is called for, and a request may wait for it. `false`: too many VMs wait.
    pub fn call_for(&mut self, vm: &VmName, request: Option<R>) -> bool {
        if !self.waiting.contains_key(vm) {
            if self.order.len() >= MOST {
                return false;
            }
            self.order.push_back(vm.clone());
        }
        self.waiting.entry(vm.clone()).or_default().extend(request);
        true
    }

    /// The VM whose turn it is at this moment. No other write of it is under way until its turn [ends](Self::end).
    pub fn take(&mut self, now: Moment) -> Option<VmName> {
        let at_once = match self.tries_at {
            None => AT_ONCE,
            Some(until) if now < until => 0,
            Some(_) => 1,
        };
        if self.under_way.len() < at_once { self.begin() } else { None }
    }

    /// A turn has ended, and what came of it is in the books: the requests that waited for it.
    pub fn end(&mut self, now: Moment, vm: &VmName, heard: Heard) -> (Vec<R>, Reach) {
        let before = self.failures;
        match heard {
            Heard::NotSent => {}
            Heard::Answered => (self.failures, self.tries_at) = (0, None),
            Heard::NoAnswer => {
                self.failures = self.failures.saturating_add(1);
                let rest = rest(FIRST_REST, LONGEST_REST, self.failures, self.seed);
                self.tries_at = Some(now.after(rest));
            }
        }
        self.gives_up = heard == Heard::NoAnswer && self.failures > 1;
        let reach = match (before, self.failures) {
            (0, 0) => Reach::Same,
            (0, _) => Reach::Lost,
            (failures, 0) => Reach::Back(failures),
            (_, _) => Reach::Same,
        };
        (self.under_way.remove(vm).unwrap_or_default(), reach)
    }

    /// Takes the VMs that wait, with their requests, once the API server has not answered again: what was proposed holds no
    /// room meanwhile. A turn in which nothing was sent says nothing of it: the next one finds out.
    pub fn give_up(&mut self) -> Vec<(VmName, Vec<R>)> {
        let mut given_up = Vec::new();
        while self.gives_up
            && let Some(vm) = self.first()
        {
            let requests = self.waiting.remove(&vm).unwrap_or_default();
            given_up.push((vm, requests));
        }
        given_up
    }

    /// Whether no write may be sent at this moment.
    pub fn rests(&self, now: Moment) -> bool {
        self.tries_at(now).is_some()
    }

    /// When a write may be sent, if none may be sent at this moment.
    pub fn tries_at(&self, now: Moment) -> Option<Moment> {
        self.tries_at.filter(|at| now < *at)
    }

    fn begin(&mut self) -> Option<VmName> {
        let vm = self.first()?;
        let requests = self.waiting.remove(&vm).unwrap_or_default();
        self.under_way.insert(vm.clone(), requests);
        Some(vm)
    }

    /// Takes the first VM without a write that is under way.
    fn first(&mut self) -> Option<VmName> {
        let next = self.order.iter().position(|vm| !self.under_way.contains_key(vm))?;
        self.order.remove(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Moment = Moment::from_millis(1_000_000);

    #[test]
    fn requests_of_a_vm_wait_for_one_write_and_later_ones_for_the_next() {
        let (mut writes, a, b) = (Writes::new(1), VmName::on_host("a"), VmName::on_host("b"));
        for request in 1..3 {
            assert!(writes.call_for(&a, Some(request)));
        }
        assert_eq!(writes.take(NOW).as_ref(), Some(&a));
        writes.call_for(&a, Some(3));
        assert_eq!(writes.take(NOW), None, "a write of it is under way");
        writes.call_for(&b, None);
        assert_eq!(writes.take(NOW), Some(b));
        assert_eq!(writes.end(NOW, &a, Heard::Answered).0, [1, 2]);
        assert_eq!(writes.take(NOW).as_ref(), Some(&a));
        assert_eq!(writes.end(NOW, &a, Heard::Answered).0, [3]);
        assert_eq!(writes.take(NOW), None);
    }

    #[test]
    fn while_the_api_server_does_not_answer_one_write_at_a_time_finds_out() {
        let mut writes = Writes::<u8>::new(1);
        let vms: Vec<VmName> =
            (0..AT_ONCE + 2).map(|nth| VmName::on_host(nth.to_string())).collect();
        vms.iter().for_each(|vm| assert!(writes.call_for(vm, None)));
        let taken: Vec<VmName> = std::iter::from_fn(|| writes.take(NOW)).collect();
        assert_eq!(taken, vms[..AT_ONCE]);
        assert_eq!(writes.end(NOW, &taken[0], Heard::NoAnswer).1, Reach::Lost);
        assert!(writes.give_up().is_empty(), "one answer may be lost");
        for vm in &taken[1..] {
            assert_eq!(writes.end(NOW, vm, Heard::NoAnswer).1, Reach::Same);
        }
        let tries_at = writes.tries_at(NOW).unwrap();
        assert!((1_500..=2_000).contains(&tries_at.since(NOW).as_millis()), "{tries_at:?}");
        assert_eq!((writes.take(NOW), writes.rests(NOW)), (None, true));
        assert!(!writes.rests(tries_at), "a look may call for a write, which finds out");
        assert_eq!(writes.take(tries_at).as_ref(), Some(&vms[AT_ONCE]));
        assert_eq!(writes.take(tries_at), None, "one at a time");
        let given_up: Vec<VmName> = writes.give_up().into_iter().map(|(vm, _)| vm).collect();
        assert_eq!(given_up, vms[AT_ONCE + 1..]);
        let back = writes.end(tries_at, &vms[AT_ONCE], Heard::Answered).1;
        assert_eq!(back, Reach::Back(AT_ONCE.try_into().unwrap()));
        vms.iter().for_each(|vm| assert!(writes.call_for(vm, None)));
        assert_eq!(std::iter::from_fn(|| writes.take(NOW)).count(), AT_ONCE);
    }

    /// Found by the simulation: one that had nothing to write came first at each look, and none of the others was ever written.
    #[test]
    fn a_turn_in_which_nothing_was_sent_keeps_no_other_from_finding_out() {
        let mut writes = Writes::<u8>::new(1);
        let [a, b] = ["a", "b"].map(VmName::on_host);
        for _ in 0..2 {
            writes.call_for(&a, None);
            let now = writes.tries_at(NOW).unwrap_or(NOW);
            assert_eq!(writes.take(now).as_ref(), Some(&a));
            writes.end(now, &a, Heard::NoAnswer);
        }
        let now = writes.tries_at(NOW).unwrap();
        for vm in [&a, &b] {
            writes.call_for(vm, None);
        }
        assert_eq!(writes.take(now).as_ref(), Some(&a));
        writes.end(now, &a, Heard::NotSent);
        assert!(writes.give_up().is_empty());
        assert_eq!(writes.take(now), Some(b));
    }

    #[test]
    fn beyond_the_bound_nothing_waits() {
        let mut writes = Writes::<u8>::new(1);
        let vm = |nth: usize| VmName::on_host(nth.to_string());
        assert!((0..MOST).all(|nth| writes.call_for(&vm(nth), None)));
        assert!(!writes.call_for(&vm(MOST), None));
        assert!(writes.call_for(&vm(0), None), "it waits already");
    }
}
