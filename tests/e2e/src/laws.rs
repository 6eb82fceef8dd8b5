//! The laws, checked from outside while a test goes on.
//!
//! Each sample has the books before and after, and between them what QEMU and the guests'
//! kernels say. A VM may never have more than the larger of the two books says for it; all
//! together never more than the room, where a VM counts with the less of what it had in this
//! sample and in the last before that it answered: a busy guest may take seconds to answer, and what another gave
//! back meanwhile may be its by then; the books not more than the room either, once each VM
//! in them was seen (before that they count the most that it may have); and no guest ever
//! runs out of memory because some was taken (the tests hold no more than a guest has). Books
//! bind only where the same process answered before and after: what one promised in its last
//! moment is known to nobody else.

use crate::books::{Books, Keeper};
use crate::view::resources;
use crate::{Setting, View};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use windlass_lab::{Guest, Inside, Outside};
use windlass_protocol::status::HostStatus;
use windlass_protocol::{Bytes, MilliCpu, Resources};

/// How often it is looked, unless that is to be seldom.
pub(crate) const EVERY: Duration = Duration::from_millis(250);

/// More breaches than this are not kept.
const MOST: usize = 20;

/// What the world was like between two looks at the books.
#[derive(Clone, Debug)]
pub struct Sample {
    /// What binds the books.
    pub rules: Rules,
    /// What the books said before and after; `None` if it was not the same process.
    pub books: Option<(Books, Books)>,
    /// Each guest, by name, as QEMU and itself see it.
    pub guests: Vec<Look>,
    /// What each guest had in the last sample before that it answered.
    pub earlier: BTreeMap<String, Resources>,
    /// VMs that were in the books before.
    pub known: BTreeSet<String>,
    /// The quota of each guest whose cgroup has one.
    pub limits: BTreeMap<String, MilliCpu>,
}

/// What binds the books.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// What the node can give.
    pub room: Resources,
    /// Whether vCPUs that a guest says it has parked leave the books: where it is told so and the guests'
    /// version allows. A quota of its cgroup binds either way.
    pub trust: bool,
}

/// A guest by name, and what QEMU and itself said of it.
type Look = (String, Option<Outside>, Option<Inside>);

/// Looks all the time, and keeps what was broken.
pub struct Watch {
    seen: Arc<Mutex<Seen>>,
    tasks: JoinSet<()>,
}

/// What a watch found.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Samples in which every peer answered.
    pub whole: u64,
    /// Samples in which somebody who is there did not.
    pub partial: u64,
    /// Laws that were broken.
    pub breaches: Vec<String>,
}

// === impl Rules ===

impl From<Setting> for Rules {
    fn from(setting: Setting) -> Self {
        Self { room: resources(setting.room), trust: setting.trust }
    }
}

// === impl Sample ===

impl Sample {
    /// The laws that this sample breaks.
    pub fn breaches(&self) -> Vec<String> {
        let mut breaches = Vec::new();
        let room = self.rules.room;
        let mut sum = Resources::ZERO;
        for (name, outside, inside) in &self.guests {
            let has = self.has(name, *outside, inside.as_ref());
            let kept = self.earlier.get(name).map_or(has, |earlier| has.min(*earlier));
            sum = sum.saturating_add(kept);
            match self.booked(name) {
                Some(booked) if !booked.covers(has) => {
                    breaches.push(format!("{name} has {has}, the books say {booked}"));
                }
                None if self.books.is_some() && self.known.contains(name) && outside.is_some() => {
                    breaches.push(format!("{name} has {has}, and is in no books"));
                }
                Some(_) | None => {}
            }
            let killed = inside
                .as_ref()
                .map_or(0, |inside| inside.holders_killed.max(inside.oom_kills.unwrap_or(0)));
            if killed > 0 {
                breaches.push(format!("{name} ran out of memory: {killed} processes killed"));
            }
        }
        if !room.covers(sum) {
            breaches.push(format!("all have {sum}, the room is {room}"));
        }
        if let Some((before, after)) = &self.books
            && [before, after].iter().all(|books| books.settled && !room.covers(books.reserved))
        {
            let promised = after.reserved;
            breaches.push(format!("the books promise {promised}, the room is {room}"));
        }
        breaches
    }

    /// What each guest has that has answered all that counts.
    fn all(&self) -> BTreeMap<String, Resources> {
        let answered = |(_, outside, inside): &&Look| {
            let counted = inside.as_ref().is_some_and(|inside| inside.cpus_online.is_some());
            outside.is_some() && (counted || !self.rules.trust)
        };
        let guests = self.guests.iter().filter(answered);
        guests
            .map(|(name, outside, inside)| {
                (name.clone(), self.has(name, *outside, inside.as_ref()))
            })
            .collect()
    }

    /// What counts as had: see SURFACE's "what a VM has", told by QEMU and the guest.
    fn has(&self, name: &str, outside: Option<Outside>, inside: Option<&Inside>) -> Resources {
        let Some(outside) = outside else { return Resources::ZERO };
        let online = inside.and_then(|inside| inside.cpus_online);
        let cpus = if self.rules.trust { online.unwrap_or(0) } else { outside.vcpus };
        let cpu = MilliCpu::from_cores(u64::from(cpus));
        Resources {
            cpu: self.limits.get(name).map_or(cpu, |limit| cpu.min(*limit)),
            mem: Bytes::from_bytes(outside.upper_memory()),
        }
    }

    /// The most that either of the books has for a VM; `None` while it is in neither.
    fn booked(&self, name: &str) -> Option<Resources> {
        let (before, after) = self.books.as_ref()?;
        let entries = [before, after].map(|books| books.vms.get(name).copied());
        entries.into_iter().flatten().reduce(Resources::max)
    }
}

// === impl Watch ===

impl Watch {
    /// Looks this often.
    pub(crate) fn start(
        keeper: impl Keeper,
        guests: Vec<Arc<Guest>>,
        rules: Rules,
        every: Duration,
    ) -> Self {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let mut tasks = JoinSet::new();
        tasks.spawn(watch(keeper, guests, rules, every, Arc::clone(&seen)));
        Self { seen, tasks }
    }

    /// What was found so far.
    pub fn seen(&self) -> Seen {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) async fn stop(mut self) -> Seen {
        self.tasks.shutdown().await;
        self.seen()
    }
}

async fn watch(
    keeper: impl Keeper,
    guests: Vec<Arc<Guest>>,
    rules: Rules,
    every: Duration,
    seen: Arc<Mutex<Seen>>,
) {
    let start = Instant::now();
    let mut before = keeper.look().await;
    let (mut known, mut earlier) = (BTreeSet::new(), BTreeMap::new());
    loop {
        let mut looks = JoinSet::new();
        for guest in &guests {
            looks.spawn(look(Arc::clone(guest)));
        }
        let looked = looks.join_all().await;
        let after = keeper.look().await;
        let books = match (before, &after) {
            (Some((life, before)), Some((same, after))) if life == *same => {
                Some((before, after.clone()))
            }
            (Some(_) | None, _) => None,
        };
        let answered = |(guest, _, outside, inside): &Looked| {
            guest.resident().is_none() || outside.is_some() && inside.is_some()
        };
        let whole = books.is_some() && looked.iter().all(answered);
        let limits = looked
            .iter()
            .filter_map(|(guest, limit, ..)| Some((guest.name().to_owned(), (*limit)?)));
        let limits = limits.collect();
        let guests = looked
            .into_iter()
            .map(|(guest, _, outside, inside)| (guest.name().to_owned(), outside, inside))
            .collect();
        let booked = books.iter().flat_map(|(before, _): &(Books, Books)| before.vms.keys());
        let names: Vec<String> = booked.cloned().collect();
        let sample = Sample { rules, books, guests, earlier, known: known.clone(), limits };
        let breaches = sample.breaches();
        let seen_now = sample.all();
        earlier = sample.earlier;
        earlier.extend(seen_now);
        known.extend(names);
        {
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.whole += u64::from(whole);
            seen.partial += u64::from(!whole);
            let at = start.elapsed().as_secs_f64();
            let free = MOST.saturating_sub(seen.breaches.len());
            let told = breaches.into_iter().map(|breach| format!("{at:.1} s: {breach}"));
            seen.breaches.extend(told.take(free));
        }
        before = after;
        tokio::time::sleep(every).await;
    }
}

/// A guest, its quota, and what QEMU and itself said of it.
type Looked = (Arc<Guest>, Option<MilliCpu>, Option<Outside>, Option<Inside>);

async fn look(guest: Arc<Guest>) -> Looked {
    let limit = quota(&guest);
    let view = view(&guest, false, None).await;
    (guest, limit, view.outside, view.inside)
}

/// The quota of a guest's cgroup, if there is one.
pub(crate) fn quota(guest: &Guest) -> Option<MilliCpu> {
    guest.group()?.quota().ok().flatten().map(MilliCpu::from_milli)
}

/// A look at one guest, beside what the host says of it.
pub(crate) async fn view(guest: &Guest, parks: bool, state: Option<&HostStatus>) -> View {
    let (outside, inside) = tokio::join!(guest.outside(), guest.inside());
    View::of(guest.name(), parks, state, outside.ok(), inside.ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use windlass_lab::VirtioMem;
    use windlass_protocol::VmName;

    const UNIT: u64 = 256 << 20;

    #[test]
    fn a_vm_within_both_books_breaks_nothing() {
        assert_eq!(sample(2, 2, 2).breaches(), Vec::<String>::new());
        // Growth and shrinkage between the looks: either of the books may cover it.
        assert_eq!(sample(1, 2, 2).breaches(), Vec::<String>::new());
        assert_eq!(sample(2, 2, 1).breaches(), Vec::<String>::new());
    }

    #[test]
    fn a_vm_beyond_both_books_is_found() {
        let breaches = sample(1, 2, 1).breaches();
        assert_eq!(breaches, ["a has 2 vCPU / 512MiB, the books say 1 vCPU / 256MiB"]);
    }

    #[test]
    fn a_vm_that_left_the_books_and_is_there_is_found() {
        let mut sample = sample(2, 2, 2);
        let (before, after) = sample.books.as_mut().unwrap();
        before.vms.clear();
        after.vms.clear();
        assert_eq!(sample.breaches(), Vec::<String>::new(), "it was never in them");
        sample.known.insert("a".to_owned());
        assert_eq!(sample.breaches(), ["a has 2 vCPU / 512MiB, and is in no books"]);
    }

    #[test]
    fn memory_that_the_guest_may_take_counts_as_had() {
        let mut sample = sample(1, 1, 1);
        let device = VirtioMem { requested: UNIT, size: 0, max: 4 * UNIT };
        sample.guests[0].1 =
            Some(Outside { vcpus: 1, boot: UNIT, virtio_mem: Some(device), dimms: 0 });
        assert_eq!(sample.breaches().len(), 1);
    }

    #[test]
    fn without_trust_plugged_vcpus_count_and_with_trust_those_online() {
        let mut sample = sample(1, 1, 1);
        sample.guests[0].1 = Some(Outside { vcpus: 3, boot: UNIT, virtio_mem: None, dimms: 0 });
        assert_eq!(sample.breaches(), Vec::<String>::new());
        sample.rules.trust = false;
        assert_eq!(sample.breaches().len(), 1);
    }

    #[test]
    fn a_quota_binds_what_is_plugged() {
        let mut sample = sample(1, 1, 1);
        sample.rules.trust = false;
        sample.guests[0].1 = Some(Outside { vcpus: 3, boot: UNIT, virtio_mem: None, dimms: 0 });
        sample.limits = [("a".to_owned(), MilliCpu::from_cores(1))].into();
        assert_eq!(sample.breaches(), Vec::<String>::new());
        sample.limits = [("a".to_owned(), MilliCpu::from_milli(1050))].into();
        assert_eq!(sample.breaches().len(), 1);
    }

    #[test]
    fn more_than_the_room_is_found_in_the_world_and_in_the_books() {
        let breaches = sample(4, 4, 4).breaches();
        assert_eq!(breaches.len(), 2, "{breaches:?}");
    }

    #[test]
    fn what_one_gave_and_another_got_while_both_were_looked_at_is_no_breach() {
        let mut sample = sample(1, 2, 2);
        let mut other = sample.guests[0].clone();
        other.0 = "b".to_owned();
        sample.guests.push(other);
        sample.books = None;
        assert_eq!(sample.breaches().len(), 1, "both had two units all the time");
        sample.earlier = [("a".to_owned(), resources(1)), ("b".to_owned(), resources(2))].into();
        assert_eq!(sample.breaches(), Vec::<String>::new(), "b gave, and then a got");
    }

    #[test]
    fn a_killed_process_is_found() {
        let mut sample = sample(2, 2, 2);
        sample.guests[0].2.as_mut().unwrap().oom_kills = Some(1);
        assert_eq!(sample.breaches(), ["a ran out of memory: 1 processes killed"]);
    }

    #[test]
    fn without_a_host_the_room_still_binds() {
        let mut sample = sample(1, 2, 1);
        sample.books = None;
        assert_eq!(sample.breaches(), Vec::<String>::new());
        sample.rules.room = resources(1);
        assert_eq!(sample.breaches(), ["all have 2 vCPU / 512MiB, the room is 1 vCPU / 256MiB"]);
    }

    #[test]
    fn books_may_count_the_most_of_a_vm_that_was_not_seen() {
        let mut sample = sample(4, 1, 4);
        assert_eq!(
            sample.breaches(),
            ["the books promise 4 vCPU / 1GiB, the room is 3 vCPU / 768MiB"]
        );
        sample.books.as_mut().unwrap().1 = books(4, Value::Null);
        assert_eq!(sample.breaches(), Vec::<String>::new());
    }

    /// A VM of `has` units; books of `before` and `after`; room for 3.
    fn sample(before: u32, has: u32, after: u32) -> Sample {
        let outside =
            Outside { vcpus: has, boot: u64::from(has) * UNIT, virtio_mem: None, dimms: 0 };
        let inside = Inside { cpus_online: Some(has), ..Inside::default() };
        Sample {
            rules: Rules { room: resources(3), trust: true },
            books: Some((books(before, seen()), books(after, seen()))),
            guests: vec![("a".to_owned(), Some(outside), Some(inside))],
            earlier: BTreeMap::new(),
            known: BTreeSet::new(),
            limits: BTreeMap::new(),
        }
    }

    fn seen() -> Value {
        json!({"plugged": 1000, "memory": {"boot": UNIT, "requested": 0, "size": 0}})
    }

    fn books(units: u32, seen: Value) -> Books {
        let reserved = resources(units);
        let (min, max) = (resources(1), resources(4));
        let json = json!({
            "at": 0, "frozen": false, "host_available": null,
            "node": {"room": resources(3), "reserved": reserved, "vms": [
                {"name": VmName::on_host("a"), "priority": 0, "reserved": reserved, "claim": null}
            ]},
            "vms": [{
                "name": VmName::on_host("a"), "mode": "act", "priority": 0,
                "bounds": {"min": min, "max": max}, "online": null, "upper": null,
                "seen": seen,
                "signals": {"load": null, "used": null, "total": null}, "goal": null,
                "reason": null, "permit": null, "consent": null, "session": "active", "waiting": []
            }]
        });
        Books::from(&serde_json::from_value::<HostStatus>(json).unwrap())
    }
}
