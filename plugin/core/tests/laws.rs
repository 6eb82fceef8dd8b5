//! Laws 2 and 9 over random histories, and what else the books promise.
#![expect(clippy::unwrap_used, reason = "tests")]

use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;
use windlass_plugin_core::{Ask, Books, VmRecord};
use windlass_protocol::{Bytes, ComputeUnit, MilliCpu, Moment, Resources, VmInfo, VmName};

const VMS: usize = 5;
const CORE: MilliCpu = MilliCpu::from_cores(1);

#[derive(Clone, Debug)]
enum Step {
    Room(Resources),
    Enter(usize, VmRecord, Resources),
    Update(usize, VmRecord),
    Leave(usize),
    Count(usize, Resources),
    Witness(usize, Resources),
    Request(usize, Ask),
    Wait(u64),
}

proptest! {
    /// Law 2: a grant never raises the sum above the room; while the sum is above it, no grant
    /// raises it at all. Each axis on its own.
    #[test]
    fn books_within_the_node(steps in vec(step(), 0..40)) {
        let mut model = Model::default();
        for step in steps {
            let before = model.books.reserved();
            model.step(&step);
            let (room, after) = (model.room, model.books.reserved());
            if matches!(step, Step::Request(..)) {
                prop_assert!(after.cpu <= room.cpu.max(before.cpu), "{step:?}: {before} to {after} of {room}");
                prop_assert!(after.mem <= room.mem.max(before.mem), "{step:?}: {before} to {after} of {room}");
            }
        }
    }

    /// A permit is exactly the request where that is no more than what is promised, and else
    /// lies between the two; the others keep what they have; memory comes in whole slots.
    #[test]
    fn a_permit_lies_between_what_is_promised_and_what_is_asked(steps in vec(step(), 0..40)) {
        let mut model = Model::default();
        for step in steps {
            let before = model.reserved();
            let granted = model.step(&step);
            let (Step::Request(vm, ask), Some(granted)) = (&step, granted) else { continue };
            let asked = ask.wanted;
            let name = name(*vm);
            let mut had = before[&name];
            if ask.whole_cpus {
                // That is what its agent can be told.
                had.cpu = had.cpu.round_down(CORE);
                prop_assert_eq!(granted.permit.cpu.round_down(CORE), granted.permit.cpu);
            }
            let axes = [
                (had.cpu.milli(), asked.cpu.milli(), granted.permit.cpu.milli()),
                (had.mem.bytes(), asked.mem.bytes(), granted.permit.mem.bytes()),
            ];
            for (had, asked, permit) in axes {
                prop_assert!(permit >= had.min(asked) && permit <= asked, "{had}, {asked}: {permit}");
            }
            prop_assert_eq!(granted.short.is_empty(), granted.permit == asked);
            let slot = model.books.record(&name).unwrap().memory_slot;
            prop_assert_eq!(granted.permit.mem.round_down(slot), granted.permit.mem);
            let after = model.reserved();
            prop_assert!(after[&name].covers(granted.permit));
            for (other, reserved) in before.iter().filter(|(other, _)| **other != name) {
                prop_assert_eq!(&after[other], reserved);
            }
        }
    }

    /// Law 1, the books' half: a VM is never counted with less than it was seen to have, nor
    /// with less than it was told it may have.
    #[test]
    fn what_is_seen_and_what_is_permitted_are_counted(steps in vec(step(), 0..40)) {
        let mut model = Model::default();
        for step in steps {
            model.step(&step);
            let reserved = model.reserved();
            for (vm, seen) in &model.seen {
                prop_assert!(reserved[vm].covers(*seen), "{vm} has {seen}, counted {}", reserved[vm]);
            }
            for (vm, permit) in &model.permits {
                prop_assert!(reserved[vm].covers(*permit), "{vm} may {permit}, counted {}", reserved[vm]);
            }
        }
    }

    /// Law 9: books rebuilt from what the hypervisors say and the agents' next requests, in any
    /// order, equal the books that were lost, if those were within the node.
    #[test]
    fn rebuild_equals_live(
        steps in vec(step(), 0..40),
        halves in vec(0u64..3, VMS),
        order in vec(any::<u64>(), VMS),
    ) {
        let mut model = Model::default();
        for step in &steps {
            model.step(step);
        }
        model.now += 10_000;
        let now = Moment::from_millis(model.now);
        let mut live = model.books.clone();
        live.set_room(live.room().max(live.reserved()));
        // A VM has what it may have, or half of it, or nothing yet; its agent says what it may.
        let mut vms = Vec::new();
        for (name, may) in model.reserved() {
            let vm = index(&name);
            let has = Resources {
                cpu: MilliCpu::from_milli(may.cpu.milli() / 2 * halves[vm]),
                mem: Bytes::from_bytes(may.mem.bytes() / 2 * halves[vm]),
            };
            live.witness(&name, may);
            live.request(now, &name, may).unwrap();
            live.witness(&name, has);
            vms.push((name, may, has));
        }
        vms.sort_by_key(|(name, ..)| order[index(name)]);

        let mut rebuilt = Books::new(live.room());
        for (name, _, has) in &vms {
            rebuilt.enter(name.clone(), *live.record(name).unwrap(), *has);
        }
        for (name, may, _) in vms.iter().rev() {
            rebuilt.request(now, name, *may).unwrap();
        }
        prop_assert_eq!(rebuilt.status(now), live.status(now));
    }

    /// A second request is answered as the first, and changes nothing.
    #[test]
    fn saying_it_twice_is_saying_it_once(steps in vec(step(), 0..40), vm in 0..VMS, asked in size()) {
        let mut model = Model::default();
        for step in &steps {
            model.step(step);
        }
        let now = Moment::from_millis(model.now);
        if let Ok(first) = model.books.request(now, &name(vm), asked) {
            let after = model.books.status(now);
            // What the first request left to others may be had by nobody but them.
            let second = model.books.request(now, &name(vm), asked).unwrap();
            prop_assert!(second.permit.covers(first.permit));
            if first.short.is_empty() {
                prop_assert_eq!(second, first);
                prop_assert_eq!(model.books.status(now), after);
            }
        }
    }

    /// Who enters or is seen first does not matter.
    #[test]
    fn the_order_of_entering_and_seeing_does_not_matter(
        sizes in vec((record(), size(), size()), VMS),
        seen_first in any::<bool>(),
    ) {
        let mut books = [Books::new(Resources::ZERO), Books::new(Resources::ZERO)];
        for (vm, (record, ceiling, has)) in sizes.iter().enumerate() {
            books[0].enter(name(vm), *record, *ceiling);
            if seen_first {
                books[0].witness(&name(vm), *has);
            }
        }
        for (vm, (record, ceiling, _)) in sizes.iter().enumerate().rev() {
            books[1].enter(name(vm), *record, *ceiling);
        }
        for (vm, (_, _, has)) in sizes.iter().enumerate().rev() {
            books[1].witness(&name(vm), *has);
            if !seen_first {
                books[0].witness(&name(vm), *has);
            }
        }
        prop_assert_eq!(&books[0], &books[1]);
    }

    /// A kind world: VMs whose wants fit together all have them after one round of requests
    /// more than it takes to give back.
    #[test]
    fn wants_that_fit_are_all_met(
        start in vec(0u64..6, VMS),
        wants in vec(1u64..6, VMS),
        priorities in vec(-1i32..2, VMS),
    ) {
        let total: u64 = wants.iter().sum();
        let mut books = Books::new(cu(total));
        for vm in 0..VMS {
            let record = VmRecord { priority: priorities[vm], grain: cu(1), ..VmRecord::default() };
            books.enter(name(vm), record, cu(start[vm]));
        }
        for round in 0..2 {
            for (vm, wanted) in wants.iter().enumerate() {
                books.request(Moment::from_millis(round * 2000), &name(vm), cu(*wanted)).unwrap();
            }
        }
        let status = books.status(Moment::from_millis(20_000));
        for booked in status.vms {
            prop_assert_eq!(booked.reserved, cu(wants[index(&booked.name)]));
        }
    }

    /// Amounts at the ends of their range do not overflow anything.
    #[test]
    fn nothing_overflows(steps in vec(wild_step(), 0..40)) {
        let mut model = Model::default();
        for step in &steps {
            model.step(step);
            model.books.status(Moment::from_millis(u64::MAX));
            model.books.minima_over();
        }
    }
}

/// Books, and what was said to them.
struct Model {
    books: Books,
    /// What the node last said that it may promise.
    room: Resources,
    now: u64,
    /// What VMs were last seen to have, as long as that is known to hold.
    seen: BTreeMap<VmName, Resources>,
    /// What agents were last told.
    permits: BTreeMap<VmName, Resources>,
}

impl Default for Model {
    fn default() -> Self {
        Self {
            books: Books::new(cu(8)),
            room: cu(8),
            now: 1_000_000,
            seen: BTreeMap::new(),
            permits: BTreeMap::new(),
        }
    }
}

impl Model {
    fn step(&mut self, step: &Step) -> Option<windlass_plugin_core::Granted> {
        match step {
            Step::Room(room) => {
                self.room = *room;
                self.books.set_room(*room);
            }
            Step::Enter(vm, record, ceiling) => {
                self.books.enter(name(*vm), *record, *ceiling);
            }
            Step::Update(vm, record) => self.books.update(&name(*vm), *record),
            Step::Leave(vm) => {
                self.books.leave(&name(*vm));
                self.seen.remove(&name(*vm));
                self.permits.remove(&name(*vm));
            }
            Step::Count(vm, has) => {
                self.books.count(&name(*vm), *has);
                self.permits.remove(&name(*vm));
                if self.books.record(&name(*vm)).is_some() {
                    self.seen.insert(name(*vm), *has);
                }
            }
            Step::Witness(vm, has) => {
                self.books.witness(&name(*vm), *has);
                if self.books.record(&name(*vm)).is_some() {
                    self.seen.insert(name(*vm), *has);
                }
            }
            Step::Request(vm, asked) => {
                let first = !self.permits.contains_key(&name(*vm));
                let now = Moment::from_millis(self.now);
                let granted = self.books.request(now, &name(*vm), *asked).ok()?;
                if first {
                    // From its agent's first word on, that word counts.
                    self.seen.remove(&name(*vm));
                }
                self.permits.insert(name(*vm), granted.permit);
                return Some(granted);
            }
            Step::Wait(millis) => self.now = self.now.saturating_add(*millis),
        }
        None
    }

    fn reserved(&self) -> BTreeMap<VmName, Resources> {
        let status = self.books.status(Moment::from_millis(self.now));
        status.vms.into_iter().map(|booked| (booked.name, booked.reserved)).collect()
    }
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => size().prop_map(Step::Room),
        2 => (0..VMS, record(), seen()).prop_map(|(vm, record, size)| Step::Enter(vm, record, size)),
        1 => (0..VMS, record()).prop_map(|(vm, record)| Step::Update(vm, record)),
        1 => (0..VMS).prop_map(Step::Leave),
        1 => (0..VMS, seen()).prop_map(|(vm, size)| Step::Count(vm, size)),
        4 => (0..VMS, seen()).prop_map(|(vm, size)| Step::Witness(vm, size)),
        8 => (0..VMS, ask()).prop_map(|(vm, ask)| Step::Request(vm, ask)),
        2 => (0u64..12_000).prop_map(Step::Wait),
    ]
}

fn wild_step() -> impl Strategy<Value = Step> {
    let wild = || {
        (any::<u64>(), any::<u64>()).prop_map(|(cpu, mem)| Resources {
            cpu: MilliCpu::from_milli(cpu),
            mem: Bytes::from_bytes(mem),
        })
    };
    let record =
        (any::<i32>(), wild(), any::<u64>(), wild()).prop_map(|(priority, grain, slot, min)| {
            VmRecord { priority, grain, memory_slot: Bytes::from_bytes(slot), min }
        });
    prop_oneof![
        wild().prop_map(Step::Room),
        (0..VMS, record, wild()).prop_map(|(vm, record, size)| Step::Enter(vm, record, size)),
        (0..VMS, wild()).prop_map(|(vm, size)| Step::Witness(vm, size)),
        (0..VMS, wild(), wild(), any::<bool>()).prop_map(|(vm, wanted, last, whole_cpus)| {
            let unit = ComputeUnit::try_from(last).ok();
            Step::Request(
                vm,
                Ask { wanted, last_permit: Some(last), unit, whole_cpus, names_permits: true },
            )
        }),
        any::<u64>().prop_map(Step::Wait),
    ]
}

/// What an agent can say, in one version or another.
fn ask() -> impl Strategy<Value = Ask> {
    let last = prop::option::of(size());
    (size(), last, prop::option::of(1u64..4), 0u32..4).prop_map(|(wanted, last, unit, version)| {
        let ask = Ask { wanted, ..Ask::default() };
        let unit = unit.and_then(|count| ComputeUnit::new(cu(count).cpu, cu(count).mem));
        match version {
            0 => Ask {
                wanted: Resources { cpu: wanted.cpu.round_up(CORE), ..wanted },
                whole_cpus: true,
                ..ask
            },
            1 => ask,
            2 => Ask { last_permit: last, ..ask },
            _ => Ask { last_permit: last, unit, ..ask },
        }
    })
}

fn record() -> impl Strategy<Value = VmRecord> {
    (-1i32..2, 0u64..3, 0u64..3).prop_map(|(priority, cpu, slots)| VmRecord {
        priority,
        grain: Resources {
            cpu: MilliCpu::from_milli(cpu * 500),
            mem: VmInfo::DEFAULT_MEMORY_SLOT.saturating_mul(slots),
        },
        ..VmRecord::default()
    })
}

/// What a hypervisor has need not be whole slots.
fn seen() -> impl Strategy<Value = Resources> {
    (size(), prop_oneof![2 => Just(0), 1 => 1_u64..128]).prop_map(|(size, odd)| Resources {
        mem: size.mem.saturating_add(Bytes::from_mib(odd)),
        ..size
    })
}

fn size() -> impl Strategy<Value = Resources> {
    (0u64..40, 0u64..80).prop_map(|(quarters, slots)| Resources {
        cpu: MilliCpu::from_milli(quarters * 250),
        mem: VmInfo::DEFAULT_MEMORY_SLOT.saturating_mul(slots),
    })
}

fn cu(count: u64) -> Resources {
    Resources { cpu: MilliCpu::from_cores(count), mem: Bytes::from_gib(count) }
}

fn name(vm: usize) -> VmName {
    VmName::on_host(format!("vm{vm}"))
}

fn index(vm: &VmName) -> usize {
    vm.name[2..].parse().unwrap()
}
