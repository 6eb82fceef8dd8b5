//! When certificates are made: by tables of moments, and by histories of years in which peers must trust what they meet.

#![expect(clippy::unwrap_used, reason = "tests")]

use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::time::Duration;
use windlass_plugin_core::certificates::{
    Authority, BEFORE, Bundle, CA_LASTS, CA_LEFT, CA_SHOWN, CLIENT_LASTS, Ca, Certificate, Client,
    Fingerprint, Keeping, Kept, Maker, NextCa, OldCa, Part, SERVING_LASTS, Terms, There, Write,
    next, valid,
};
use windlass_protocol::Moment;

const DAY: Duration = Duration::from_secs(86_400);
const START: Moment = Moment::from_millis(1_700_000_000_000);
const SAME: Keeping =
    Keeping { ca: Ca::Same, next: NextCa::Same, old: OldCa::Same, new_serving: false };

#[test]
fn the_first_start_makes_everything_and_the_second_nothing() {
    let mut world = World::default();
    let new = Keeping { ca: Ca::New, next: NextCa::None, old: OldCa::None, new_serving: true };
    assert_eq!(world.step(START), Some(Write::Kept(new)));
    let ca = world.ca().id;
    assert_eq!(world.step(START), Some(Write::Bundle(vec![ca])));
    assert_eq!(world.step(START), Some(Write::Client));
    assert_eq!(world.step(START), None);
    assert_eq!(world.step(START.after(DAY)), None, "a restart keeps the CA");
    assert_eq!(world.ca().id, ca);
}

#[test]
fn certificates_are_renewed_before_they_end() {
    let mut world = World::settled(START);
    let ca = world.ca().id;
    let serving = START.before(BEFORE).after((SERVING_LASTS + BEFORE) / 3 * 2);
    assert_eq!(world.step(serving.before(DAY)), None);
    assert_eq!(world.step(serving), Some(Write::Kept(Keeping { new_serving: true, ..SAME })));
    assert_eq!(world.step(serving), None);
    let client = START.before(BEFORE).after((CLIENT_LASTS + BEFORE) / 2);
    world.settle(client.before(DAY));
    assert_eq!(world.step(client), Some(Write::Client));
    assert_eq!(world.ca().id, ca);
}

#[test]
fn a_new_ca_signs_once_the_bundle_has_named_it_for_a_year() {
    let mut world = World::settled(START);
    let old = world.ca().id;
    let due = START.after(CA_LASTS).before(CA_LEFT);
    world.settle(due.before(DAY));
    assert_eq!(world.trusted(), [old]);
    let made = world.step(due);
    assert_eq!(made, Some(Write::Kept(Keeping { next: NextCa::New, ..SAME })));
    let next = world.next_ca().id;
    assert_eq!(world.step(due), Some(Write::Bundle(vec![old, next])), "named, and signs nothing");
    world.settle(due.after(CA_SHOWN).before(DAY));
    assert_eq!(world.ca().id, old);
    let signs = due.after(CA_SHOWN);
    let promoted =
        Keeping { ca: Ca::Next, next: NextCa::None, old: OldCa::Before, new_serving: true };
    assert_eq!(world.step(signs), Some(Write::Kept(promoted)));
    assert_eq!(world.step(signs), Some(Write::Bundle(vec![next, old])));
    world.settle(START.after(CA_LASTS).before(DAY));
    assert_eq!(world.trusted(), [next, old], "what the old one signed is taken until its end");
    world.settle(START.after(CA_LASTS));
    assert_eq!(world.trusted(), [next]);
}

#[test]
fn a_new_ca_that_the_bundle_does_not_name_does_not_sign() {
    let mut world = World::settled(START);
    let due = START.after(CA_LASTS).before(CA_LEFT);
    world.step(due).unwrap();
    let bundle = world.there.bundle.as_mut().unwrap();
    bundle.maker = Maker::Person;
    let (old, next) = (world.ca().id, world.next_ca().id);
    world.settle(due.after(CA_SHOWN).after(DAY));
    assert_eq!(world.ca().id, old);
    // Once nothing that the old one signed is taken, there is nothing to wait for.
    world.settle(START.after(CA_LASTS));
    assert_eq!(world.ca().id, next);
}

#[test]
fn what_a_person_made_is_never_written() {
    let person = || Some(Kept::of_a_person());
    let world = World { there: There { kept: person(), ..There::default() }, ..World::default() };
    assert_eq!(next(START, &terms(), &world.there), None);
    let mut world = World::settled(START);
    world.there.bundle = Some(Bundle { maker: Maker::Person, holds: Vec::new() });
    let client = Client { maker: Maker::Person, certificate: Part::Broken };
    world.there.client = Some(client);
    assert_eq!(world.step(START), None);
}

#[test]
fn what_a_person_broke_is_made_anew_and_nothing_else() {
    let settled = World::settled(START);
    let broken = |wreck: fn(&mut Kept)| {
        let mut world = settled.clone();
        wreck(world.there.kept.as_mut().unwrap());
        next(START, &terms(), &world.there)
    };
    let serving = Some(Write::Kept(Keeping { new_serving: true, ..SAME }));
    assert_eq!(broken(|kept| kept.serving = Part::Broken), serving);
    assert_eq!(broken(|kept| kept.serving = Part::Absent), serving);
    let ca = Keeping { ca: Ca::New, next: NextCa::None, old: OldCa::Same, new_serving: true };
    assert_eq!(broken(|kept| kept.ca = Part::Broken), Some(Write::Kept(ca)));
    let next_ca = Keeping { next: NextCa::None, ..SAME };
    assert_eq!(broken(|kept| kept.next = Part::Broken), Some(Write::Kept(next_ca)));
    let old = Keeping { old: OldCa::None, ..SAME };
    assert_eq!(broken(|kept| kept.old = Part::Broken), Some(Write::Kept(old)));
    for part in [Part::Broken, Part::Absent] {
        let mut world = settled.clone();
        world.there.client = Some(Client { maker: Maker::Plugin, certificate: part });
        assert_eq!(world.step(START), Some(Write::Client));
    }
    let mut world = settled.clone();
    world.there.bundle = Some(Bundle { maker: Maker::Plugin, holds: Vec::new() });
    assert_eq!(world.step(START), Some(Write::Bundle(vec![settled.ca().id])));
}

#[test]
fn a_certificate_for_other_hosts_or_another_scheduler_is_replaced() {
    let mut world = World::settled(START);
    let hosts = BTreeSet::from(["other.svc".to_owned()]);
    let other = Terms { hosts, scheduler: Some("other".to_owned()) };
    let serving = Keeping { new_serving: true, ..SAME };
    assert_eq!(next(START, &other, &world.there), Some(Write::Kept(serving)));
    world.apply(START, &other, &Write::Kept(serving));
    assert_eq!(next(START, &other, &world.there), Some(Write::Client));
    let none = Terms { scheduler: None, ..other };
    assert_eq!(next(START, &none, &world.there), None);
}

#[test]
fn a_clock_that_is_behind_makes_nothing() {
    let mut world = World::settled(START);
    // What it made in place of a broken certificate would have ended for everybody else.
    for serving in [world.kept().serving.clone(), Part::Broken] {
        world.there.kept.as_mut().unwrap().serving = serving;
        for behind in [Duration::from_secs(7200), DAY * 365, DAY * 20_000] {
            assert_eq!(next(START.before(behind), &terms(), &world.there), None);
        }
    }
}

proptest! {
    /// A leader comes by now and then, for years. A peer that read the bundle within a year trusts what the plugin shows,
    /// and the plugin trusts the scheduler's certificate, as long as no CA ended with no leader near.
    #[test]
    fn peers_trust_what_they_meet(visits in vec(1_u32..40, 100..400)) {
        let (mut world, mut now) = (World::settled(START), START);
        // What the bundle held, since when.
        let mut told = vec![(now, world.trusted())];
        for days in visits {
            now = now.after(DAY * days);
            for _ in 0..6 {
                let Some(write) = world.step(now) else { break };
                if let Write::Bundle(holds) = write {
                    told.push((now, holds));
                }
                let kept = world.there.kept.as_ref().unwrap();
                let signer = kept.serving.get().unwrap().signer.unwrap();
                for (nth, (_, holds)) in told.iter().enumerate() {
                    let until = told.get(nth + 1).map_or(now, |(until, _)| *until);
                    let is_recent = now.since(until) < CA_SHOWN - DAY * 2;
                    prop_assert!(!is_recent || holds.contains(&signer), "read until {until:?}, at {now:?}");
                }
                let client = world.there.client.as_ref().unwrap().certificate.get().unwrap();
                prop_assert!(world.trusted().contains(&client.signer.unwrap()));
            }
            prop_assert_eq!(next(now, &terms(), &world.there), None, "it comes to an end");
            let kept = world.there.kept.as_ref().unwrap();
            let serving = kept.serving.get().unwrap();
            prop_assert!(serving.until > now && world.ca().until >= serving.until);
        }
    }
}

/// What the API server holds, and the number of CAs that were made.
#[derive(Clone, Debug, Default)]
struct World {
    there: There,
    made: u8,
}

// === impl World ===

impl World {
    fn settled(now: Moment) -> Self {
        let mut world = Self::default();
        world.settle(now);
        world
    }

    /// A leader writes until nothing is left to write.
    fn settle(&mut self, now: Moment) {
        for _ in 0..6 {
            if self.step(now).is_none() {
                return;
            }
        }
        panic!("it comes to no end");
    }

    fn step(&mut self, now: Moment) -> Option<Write> {
        let write = next(now, &terms(), &self.there)?;
        self.apply(now, &terms(), &write);
        Some(write)
    }

    fn apply(&mut self, now: Moment, terms: &Terms, write: &Write) {
        match write {
            Write::Kept(keeping) => self.keep(now, terms, *keeping),
            Write::Bundle(holds) => {
                self.there.bundle = Some(Bundle { maker: Maker::Plugin, holds: holds.clone() });
            }
            Write::Client => {
                let names = terms.scheduler.iter().cloned().collect();
                let certificate = Part::Is(self.sign(now, CLIENT_LASTS, names));
                self.there.client = Some(Client { maker: Maker::Plugin, certificate });
            }
        }
    }

    fn keep(&mut self, now: Moment, terms: &Terms, keeping: Keeping) {
        let before =
            self.there.kept.take().unwrap_or(Kept { maker: Maker::Plugin, ..Kept::of_a_person() });
        let ca = match keeping.ca {
            Ca::Same => before.ca.clone(),
            Ca::Next => before.next.clone(),
            Ca::New => self.authority(now),
        };
        let next = match keeping.next {
            NextCa::Same => before.next,
            NextCa::New => self.authority(now),
            NextCa::None => Part::Absent,
        };
        let old = match keeping.old {
            OldCa::Same => before.old,
            OldCa::Before => before.ca,
            OldCa::None => Part::Absent,
        };
        let serving = before.serving;
        self.there.kept = Some(Kept { maker: Maker::Plugin, ca, next, old, serving });
        if keeping.new_serving {
            let signed = self.sign(now, SERVING_LASTS, terms.hosts.clone());
            self.there.kept.as_mut().unwrap().serving = Part::Is(signed);
        }
    }

    fn authority(&mut self, now: Moment) -> Part<Authority> {
        self.made += 1;
        let (from, until) = valid(now, CA_LASTS, Moment::from_millis(u64::MAX));
        Part::Is(Authority { id: Fingerprint([self.made; 32]), from, until })
    }

    fn sign(&self, now: Moment, lasts: Duration, names: BTreeSet<String>) -> Certificate {
        let (from, until) = valid(now, lasts, self.ca().until);
        Certificate { signer: Some(self.ca().id), from, until, names }
    }

    fn kept(&self) -> &Kept {
        self.there.kept.as_ref().unwrap()
    }

    fn ca(&self) -> &Authority {
        self.kept().ca.get().unwrap()
    }

    fn next_ca(&self) -> &Authority {
        self.kept().next.get().unwrap()
    }

    fn trusted(&self) -> Vec<Fingerprint> {
        self.kept().trusted()
    }
}

fn terms() -> Terms {
    let hosts = ["windlass-plugin.windlass.svc", "127.0.0.1"].map(str::to_owned);
    Terms { hosts: BTreeSet::from(hosts), scheduler: Some("system:kube-scheduler".to_owned()) }
}
