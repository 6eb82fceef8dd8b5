//! The law of billing, looked for in histories of looks, losses, crashes and repetitions.
#![expect(clippy::unwrap_used, reason = "tests")]

use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;
use windlass_agent_billing_core::{
    Allocation, Endpoint, Event, Meter, Metric, Origin, Record, Rule, Source,
};
use windlass_protocol::{MilliCpu, Moment, Sequence, VmName};

const LONGEST: Duration = Duration::from_secs(60);
const ENDPOINTS: usize = 6;

/// What one look finds: which VM, whose, and what it has.
type Found = Vec<(u8, u8, u64)>;

/// The least that each VM of an endpoint had at one look.
type Least = BTreeMap<(u8, u8), u64>;

#[derive(Clone, Debug)]
enum Step {
    /// So many milliseconds later VMs are looked at; the process may die on the way.
    Look { later: u64, back: bool, found: Found, dies: Dies },
    /// A batch is sent.
    Send { most: usize, fate: Fate },
    /// The process is killed, and starts with other limits.
    Kill { window: u64, queue: usize },
    /// The process writes down everything at once, and starts from that.
    Compact,
    /// The process is asked to stop, and starts again.
    Stop,
}

/// What becomes of a process while it writes a look down.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Dies {
    Not,
    BeforeItIsWritten,
    BeforeTheEndIsWritten,
    Afterwards,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Answered,
    Lost,
    /// The receiver has counted it; nobody hears so.
    AnswerLost,
    /// The receiver has counted it; the process dies before it has written that down.
    DiesBeforeItNotes,
    /// It arrives twice.
    Twice,
}

/// A process with its disk, a receiver, and the truth.
struct World {
    now: Moment,
    rule: Rule,
    meter: Meter,
    /// What a crash leaves: a whole meter, and what was written after it.
    disk: (String, Vec<String>),
    counted: BTreeMap<String, Event>,
    truth: Truth,
}

/// The law's own arithmetic, which knows no windows, queues or keys.
#[derive(Default)]
struct Truth {
    before: Option<(Moment, Least)>,
    /// Thousandths of CPU seconds times thousandths, and milliseconds, by endpoint.
    used: BTreeMap<u8, (u128, u128)>,
}

// === impl Truth ===

impl Truth {
    fn look(&mut self, at: Moment, found: &Found) {
        let mut now = Least::new();
        for (vm, endpoint, cpu) in found {
            let least = now.entry((*vm, *endpoint)).or_insert(*cpu);
            *least = (*least).min(*cpu);
        }
        if let Some((then, before)) = &self.before
            && at.since(*then) <= LONGEST
        {
            let span = at.since(*then).as_millis();
            for ((vm, endpoint), cpu) in &now {
                if let Some(earlier) = before.get(&(*vm, *endpoint)) {
                    let (cpu_time, time) = self.used.entry(*endpoint).or_default();
                    *cpu_time += u128::from(*cpu.min(earlier)) * span;
                    *time += span;
                }
            }
        }
        self.before = Some((at, now));
    }
}

// === impl World ===

impl World {
    fn new() -> Self {
        let origin =
            Origin { source: Source::try_from("node-1".to_owned()).unwrap(), since: at(7) };
        let meter = Meter::new(origin);
        let disk = (serde_json::to_string(&meter).unwrap(), Vec::new());
        let rule = Rule {
            window: Duration::from_secs(24),
            longest_slice: LONGEST,
            queue: 8,
            endpoints: ENDPOINTS,
        };
        Self {
            now: at(1_700_000_000_000),
            rule,
            meter,
            disk,
            counted: BTreeMap::new(),
            truth: Truth::default(),
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Look { later, back, found, dies } => self.look(*later, *back, found, *dies),
            Step::Send { most, fate } => self.send(*most, *fate),
            Step::Kill { window, queue } => {
                self.restart();
                self.rule.window = Duration::from_secs(*window);
                self.rule.queue = *queue;
            }
            Step::Compact => {
                self.disk = (serde_json::to_string(&self.meter).unwrap(), Vec::new());
                self.restart();
            }
            Step::Stop => {
                self.end(true);
                self.restart();
            }
        }
    }

    fn look(&mut self, later: u64, back: bool, found: &Found, dies: Dies) {
        let wait = Duration::from_millis(later);
        self.now = if back { at(self.now.millis() - later) } else { self.now.after(wait) };
        if dies == Dies::BeforeItIsWritten {
            return self.restart();
        }
        let vms = found.iter().map(|(vm, endpoint, cpu)| allocation(*vm, *endpoint, *cpu));
        let sight = self.meter.see(self.now, vms.collect(), &self.rule);
        assert_eq!(sight.too_many, []);
        self.write(&sight.record);
        self.truth.look(self.now, found);
        if dies == Dies::BeforeTheEndIsWritten {
            return self.restart();
        }
        self.end(false);
        if dies == Dies::Afterwards {
            self.restart();
        }
    }

    fn end(&mut self, all: bool) {
        if let Some(record) = self.meter.end(self.now, all, &self.rule) {
            self.write(&record);
        }
        assert_eq!(self.meter.end(self.now, all, &self.rule), None, "what ends, ends at once");
    }

    fn send(&mut self, most: usize, fate: Fate) {
        let batch = self.meter.batch(most, self.meter.last());
        let Some(last) = batch.last().map(|event| event.sequence) else { return };
        if fate == Fate::Lost {
            return;
        }
        let times = if fate == Fate::Twice { 2 } else { 1 };
        for event in batch.iter().cycle().take(batch.len() * times) {
            let known = self.counted.entry(event.key(self.meter.origin())).or_insert(event.clone());
            assert_eq!(known, event, "a key stands for one event");
        }
        match fate {
            Fate::Answered | Fate::Twice => self.write(&Record::Delivered { through: last }),
            Fate::AnswerLost | Fate::Lost => {}
            Fate::DiesBeforeItNotes => self.restart(),
        }
    }

    fn write(&mut self, record: &Record) {
        self.disk.1.push(serde_json::to_string(record).unwrap());
        self.meter.apply(record);
    }

    /// Only what was written is left.
    fn restart(&mut self) {
        let (whole, since) = &self.disk;
        let mut meter: Meter = serde_json::from_str(whole).unwrap();
        for record in since {
            meter.apply(&serde_json::from_str(record).unwrap());
        }
        self.meter = meter;
    }

    /// The receiver answers until nothing is left.
    fn settle(&mut self) {
        self.rule.queue = self.rule.queue.max(4);
        for _ in 0..1_000 {
            self.send(100, Fate::Answered);
            self.end(true);
            if self.meter.waiting() == 0 {
                return;
            }
        }
        panic!("{} events are never sent", self.meter.waiting());
    }

    fn received(&self) -> BTreeMap<(String, Metric), u128> {
        let mut sums = BTreeMap::new();
        for event in self.counted.values() {
            let sum = sums.entry((event.endpoint.to_string(), event.metric)).or_insert(0);
            *sum += u128::from(event.value);
        }
        sums
    }

    fn used(&self) -> BTreeMap<(String, Metric), u128> {
        let mut sums = BTreeMap::new();
        for (endpoint, (cpu, time)) in &self.truth.used {
            let name = name(*endpoint).to_string();
            sums.insert((name.clone(), Metric::Cpu), cpu / 1_000_000);
            sums.insert((name, Metric::Active), time / 1_000);
        }
        sums.retain(|_, sum| *sum > 0);
        sums
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.max(1_000)))]

    /// Billed is what was used, each window once, and no queue is larger than it may be.
    #[test]
    fn billed_is_what_was_used(steps in vec(step(), 0..60)) {
        let mut world = World::new();
        let mut most = world.rule.queue;
        for step in &steps {
            world.step(step);
            // A queue that was longer under an earlier rule is worked off, never added to.
            most = most.min(world.meter.waiting()).max(world.rule.queue);
            prop_assert!(world.meter.waiting() <= most, "{} events", world.meter.waiting());
        }
        world.settle();
        prop_assert_eq!(world.received(), world.used());
        let gaps = world.counted.values().map(|event| event.sequence.number()).max();
        prop_assert_eq!(gaps.unwrap_or(0), world.counted.len() as u64, "numbers have no gaps");
    }

    /// However many endpoints come and go, so many are known; nobody pays for another, and
    /// whoever is forgotten loses less than a second.
    #[test]
    fn endpoints_are_bounded_and_nobody_pays_for_another(
        looks in vec((1_u64..70_000, vec((0_u8..12, 0_u8..12, 0_u64..4_000), 0..8)), 0..60),
    ) {
        let mut world = World::new();
        let mut forgotten: BTreeMap<String, u128> = BTreeMap::new();
        for (later, found) in &looks {
            world.now = world.now.after(Duration::from_millis(*later));
            let vms = found.iter().map(|(vm, endpoint, cpu)| allocation(*vm, *endpoint, *cpu));
            let sight = world.meter.see(world.now, vms.collect(), &world.rule);
            if let Record::Seen { vms, forget, .. } = &sight.record {
                for endpoint in forget {
                    *forgotten.entry(endpoint.to_string()).or_default() += 1;
                }
                // Whoever came too late is not there.
                let billed: Found = vms.iter().map(found_again).collect();
                prop_assert_eq!(billed.is_empty(), found.is_empty());
                world.truth.look(world.now, &billed);
            }
            world.write(&sight.record);
            world.end(false);
            world.send(5, Fate::Answered);
            prop_assert!(world.accounts() <= ENDPOINTS);
        }
        world.settle();
        let used = world.used();
        for (key, sum) in world.received() {
            prop_assert!(sum <= used[&key], "{key:?}: {sum} of {}", used[&key]);
            let lost = forgotten.get(&key.0).copied().unwrap_or(0);
            prop_assert!(sum + lost >= used[&key], "{key:?}: {sum} of {}", used[&key]);
        }
    }
}

impl World {
    fn accounts(&self) -> usize {
        let meter: serde_json::Value = serde_json::to_value(&self.meter).unwrap();
        meter["accounts"].as_object().unwrap().len()
    }
}

fn step() -> impl Strategy<Value = Step> {
    let found = vec((0_u8..6, 0_u8..4, 0_u64..4_000), 0..5);
    let dies = prop_oneof![
        6 => Just(Dies::Not),
        1 => Just(Dies::BeforeItIsWritten),
        1 => Just(Dies::BeforeTheEndIsWritten),
        1 => Just(Dies::Afterwards),
    ];
    let later = prop_oneof![8 => 0_u64..9_000, 1 => 50_000_u64..70_000];
    let look = (later, prop::bool::weighted(0.05), found, dies);
    let fate = prop_oneof![
        3 => Just(Fate::Answered),
        1 => Just(Fate::Lost),
        1 => Just(Fate::AnswerLost),
        1 => Just(Fate::DiesBeforeItNotes),
        1 => Just(Fate::Twice),
    ];
    prop_oneof![
        6 => look.prop_map(|(later, back, found, dies)| Step::Look { later, back, found, dies }),
        3 => (1_usize..5, fate).prop_map(|(most, fate)| Step::Send { most, fate }),
        1 => (1_u64..40, 2_usize..9).prop_map(|(window, queue)| Step::Kill { window, queue }),
        1 => Just(Step::Compact),
        1 => Just(Step::Stop),
    ]
}

fn allocation(vm: u8, endpoint: u8, cpu: u64) -> Allocation {
    let vm = VmName::on_host(format!("vm-{vm}"));
    Allocation { vm, endpoint: name(endpoint), cpu: MilliCpu::from_milli(cpu) }
}

fn found_again(vm: &Allocation) -> (u8, u8, u64) {
    let number = |text: &str| text[3..].parse().unwrap();
    (number(&vm.vm.name), number(vm.endpoint.as_str()), vm.cpu.milli())
}

fn name(endpoint: u8) -> Endpoint {
    Endpoint::try_from(format!("ep-{endpoint}")).unwrap()
}

fn at(millis: u64) -> Moment {
    Moment::from_millis(millis)
}

#[test]
fn what_was_never_made_cannot_be_delivered() {
    let mut world = World::new();
    world.write(&Record::Delivered { through: Sequence::from_number(9) });
    assert_eq!((world.meter.waiting(), world.meter.last()), (0, Sequence::ZERO));
}
