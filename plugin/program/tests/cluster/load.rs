//! VMs that come, grow, shrink and go, all drawn from a seed; for each the agent of its node asks for permits, over TLS and with
//! a token.
//!
//! A VM has what its agent was permitted. It has less before its agent says so, and from then on its agent relies on no more
//! than it has said, whether or not that is answered.

use crate::agent::request;
use crate::callers::Callers;
use crate::judge::Judge;
use crate::vms::Vms;
use futures_util::StreamExt;
use futures_util::future::join_all;
use kube::ResourceExt;
use kube::runtime::{WatchStreamExt, watcher};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::RwLock;
use windlass_control_plane::Amounts;
use windlass_control_plane::space::node_of;
use windlass_testkit::http::Answer;

/// As many parts of the load act at the same time, each with so many VMs.
const ACTORS: u64 = 8;
const VMS: usize = 6;
/// The most that a VM grows to, in vCPUs and GiB. It begins with one.
const MOST: u64 = 5;
/// Between two acts of an actor, about.
const BETWEEN: Duration = Duration::from_millis(60);
/// An agent discards what is answered later.
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);

/// The load.
pub(crate) struct Load<'a> {
    vms: &'a Vms<'a>,
    /// Who asks, and where.
    callers: Callers<'a>,
    pub(crate) judge: Mutex<Judge>,
    /// Who acts reads it; who writes it has the load stand still.
    pub(crate) still: RwLock<()>,
    pub(crate) ends: AtomicBool,
    pub(crate) counts: Counts,
}

/// What came of the load's acts.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) permitted: AtomicU64,
    /// Permits that were more than the VM's last one.
    pub(crate) grown: AtomicU64,
    pub(crate) unanswered: AtomicU64,
    pub(crate) bound: AtomicU64,
}

struct Vm {
    name: String,
    /// What its agent relies on; nothing before the first answer.
    permit: u64,
    has: u64,
    acts_left: u64,
    /// What its agent shows, once the VM is on a node.
    token: Option<String>,
}

/// Xorshift; the same seed makes the same choices.
struct Chance(u64);

// === impl Load ===

impl<'a> Load<'a> {
    /// Of nodes with so many vCPUs each, whose agents these are.
    pub(crate) fn new(vms: &'a Vms<'a>, cpus: u64, callers: Callers<'a>) -> Self {
        let judge = Judge::of(i64::try_from(cpus * 1000).unwrap());
        let (still, ends, counts) = Default::default();
        Self { vms, callers, judge: Mutex::new(judge), still, ends, counts }
    }

    /// Acts until it is told to end.
    pub(crate) async fn run(&self, seed: u64) {
        let acts = join_all((0..ACTORS).map(|nth| self.act(nth, Chance(seed * ACTORS + nth + 1))));
        tokio::select! {
            _ = acts => {}
            () = self.watch() => panic!("the watch has ended"),
        }
    }

    /// What has come of its acts.
    pub(crate) fn figures(&self) -> String {
        let of = |count: &AtomicU64| count.load(Ordering::SeqCst);
        let Counts { permitted, grown, unanswered, bound } = &self.counts;
        format!(
            "{} permits, {} of them growth, {} requests without a permit, {} pods bound, {} events judged",
            of(permitted),
            of(grown),
            of(unanswered),
            of(bound),
            self.judge.lock().unwrap().events()
        )
    }

    /// Notes every pod that is on a node.
    async fn watch(&self) {
        let mut seen = BTreeMap::new();
        let pods = watcher(self.vms.space.pods(), watcher::Config::default());
        let mut pods = pin!(pods.default_backoff().applied_objects());
        while let Some(pod) = pods.next().await {
            let Ok(pod) = pod else { continue };
            if let Some(node) = node_of(&pod) {
                let requests = Amounts::requested(&pod).cpu;
                self.judge.lock().unwrap().runs(&pod.name_any(), node, requests);
                if seen.insert(pod.name_any(), ()).is_none() {
                    self.counts.bound.fetch_add(1, Ordering::SeqCst);
                }
            }
        }
    }

    async fn act(&self, actor: u64, mut chance: Chance) {
        let mut vms: [Option<Vm>; VMS] = Default::default();
        let mut made = 0;
        while !self.ends.load(Ordering::SeqCst) {
            tokio::time::sleep(BETWEEN.mul_f64(0.5 + chance.below(100) as f64 / 100.0)).await;
            let _acts = self.still.read().await;
            let vm = &mut vms[usize::try_from(chance.below(VMS as u64)).unwrap()];
            match vm {
                None => {
                    made += 1;
                    let name = format!("vm-{actor}-{made}");
                    self.vms.vm(&name, MOST).await;
                    let acts_left = 4 + chance.below(30);
                    *vm = Some(Vm { name, permit: 0, has: 1, acts_left, token: None });
                }
                Some(Vm { name, acts_left: 0, .. }) => {
                    self.judge.lock().unwrap().ends(name);
                    self.vms.delete(name).await;
                    *vm = None;
                }
                Some(vm) => {
                    let wants = if vm.permit == 0 { 1 } else { 1 + chance.below(MOST) };
                    self.ask(vm, wants).await;
                }
            }
        }
    }

    /// A VM is to have so much.
    async fn ask(&self, vm: &mut Vm, wants: u64) {
        let before = vm.permit;
        let last = (before > 0).then(|| json!({"vCPUs": before, "mem": format!("{before}Gi")}));
        if wants <= vm.permit {
            vm.permit = wants;
            self.sized(vm, wants);
        }
        let pod = json!({"namespace": self.vms.space.name(), "name": vm.name});
        let body = request(&pod, wants, &last);
        let Some(token) = self.token(vm).await else {
            self.counts.unanswered.fetch_add(1, Ordering::SeqCst);
            return;
        };
        let began = Instant::now();
        let answer = self.callers.ask(&token, body).await;
        let is_late = began.elapsed() > ANSWERS_WITHIN;
        let Some(Answer { status: 200, body, .. }) = answer.filter(|_| !is_late) else {
            self.counts.unanswered.fetch_add(1, Ordering::SeqCst);
            return;
        };
        vm.acts_left -= 1;
        let permit = &serde_json::from_str::<Value>(&body).unwrap()["permit"];
        // What was not asked for is not used.
        vm.permit = permit["vCPUs"].as_u64().unwrap().min(wants);
        self.counts.permitted.fetch_add(1, Ordering::SeqCst);
        if before > 0 && vm.permit > before {
            self.counts.grown.fetch_add(1, Ordering::SeqCst);
        }
        self.judge.lock().unwrap().is_heard(&vm.name);
        self.sized(vm, vm.permit);
    }

    /// The token of the agent on the VM's node, a new one for each VM: so many are reviewed.
    async fn token(&self, vm: &mut Vm) -> Option<String> {
        if vm.token.is_none() {
            let node = self.judge.lock().unwrap().node_of(&vm.name).map(str::to_owned);
            vm.token = Some(self.callers.token(&node?).await);
        }
        vm.token.clone()
    }

    fn sized(&self, vm: &mut Vm, size: u64) {
        vm.has = size;
        self.judge.lock().unwrap().has(&vm.name, i64::try_from(size * 1000).unwrap());
    }
}

// === impl Chance ===

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}
