//! VMs come, grow, shrink and go while the leader is killed, and while requests to the API server go wrong.
//!
//! No node is ever promised twice, by a judge that does not know our books; and scaling goes on. Agents ask over TLS with the tokens of
//! their pods: the plugins make their certificates and have tokens reviewed in the same storm.

use crate::SCHEDULER;
use crate::callers::{Callers, is_ca_made};
use crate::front::Front;
use crate::load::{Counts, Load};
use crate::plugin::{By, Plugin};
use crate::vms::{Vms, ceiling_of};
use kube::ResourceExt;
use kube::api::ListParams;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use windlass_control_plane::space::node_of;
use windlass_control_plane::way::{Faults, Kind};
use windlass_control_plane::{ControlPlane, Identity, Scheduler, Way};
use windlass_testkit::wait;

const NODES: u64 = 6;
/// Of a node: fewer than its VMs want together.
const CPUS: u64 = 12;
const SEED: u64 = 17;

/// A fifth of all requests.
const OF_THOUSAND: u64 = 200;
const WATCHES_LAST: Duration = Duration::from_secs(1);
/// The storm is over once each of these has gone wrong so often, and so many pods were bound and VMs have grown meanwhile.
const STRUCK: [(Kind, u64); 6] = [
    (Kind::Binding, 12),
    (Kind::Ceiling, 30),
    (Kind::Lease, 6),
    (Kind::List, 4),
    (Kind::Watch, 12),
    (Kind::Review, 4),
];
const BOUND: u64 = 20;
const GROWN: u64 = 100;

/// A standby that was killed waits for no longer than this: 15 s of its own, two looks, and a slow machine.
const TAKEN_WITHIN: f64 = 25.0;
/// What is waited for takes a minute at most on a machine that does nothing else.
const PATIENCE: Duration = Duration::from_secs(300);
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

/// Plugins of which one leads, and what stands in place of their Services.
struct Plugins {
    way: Way,
    plugins: Vec<Plugin>,
    permits: Front,
    extender: Front,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_node_is_promised_twice_while_leaders_die_and_the_api_server_fails() {
    let plane = ControlPlane::start().await;
    plane.apply(Path::new("../../deploy/kustomize/plugin")).await;
    let mut plugins = Plugins::start(&plane).await;
    let config = Scheduler::extender_at(&plugins.extender.address());
    let _scheduler = Scheduler::start(&plane, SCHEDULER, &[config]).await;
    let vms = Vms::of(&plane).await;
    let mut nodes = Vec::new();
    for nth in 0..NODES {
        nodes.push(vms.space.node(&nth.to_string(), &CPUS.to_string(), "256Gi").await);
    }
    wait::until_async("the plugin has made a CA", async || is_ca_made(&vms).await).await;
    let callers = Callers::of(&plane, &nodes, &plugins.permits.address()).await;
    let load = Load::new(&vms, CPUS, callers);
    let test = async {
        let counts = &load.counts;
        plugins.until("VMs grow", || now(&counts.grown) >= GROWN).await;
        println!("in a kind world: {}", load.figures());
        plugins.lose_the_leader(&vms, &load).await;
        plugins.storm(&load).await;
        plugins.calm(&vms, &load).await;
        load.ends.store(true, Ordering::SeqCst);
    };
    tokio::join!(load.run(SEED), test);
}

// === impl Plugins ===

impl Plugins {
    async fn start(plane: &ControlPlane) -> Self {
        let way = Way::to(plane, SEED).await;
        let plugins = Vec::new();
        let (permits, extender) = (Front::new().await, Front::new().await);
        let mut all = Self { way, plugins, permits, extender };
        all.add();
        all.until("a plugin leads", || true).await;
        all.add();
        all
    }

    fn add(&mut self) {
        let kubeconfig = self.way.kubeconfig(Identity::Plugin);
        self.plugins.push(Plugin::started_with_agents(&kubeconfig, By::Lease));
    }

    /// Whoever leads is asked, and whoever has ended is started again, as Kubernetes does; whether one leads.
    fn follow(&mut self) -> bool {
        let many = self.plugins.len();
        self.plugins.retain_mut(|plugin| plugin.process().ended().is_none());
        for _ in self.plugins.len()..many {
            println!("a plugin has ended, and is started again");
            self.add();
        }
        let leader = self.plugins.iter().find(|plugin| plugin.leads());
        if let Some(leader) = leader {
            self.permits.lead_to(&leader.permits);
            self.extender.lead_to(&leader.extender);
        }
        leader.is_some()
    }

    /// Waits until a plugin leads and this holds.
    async fn until(&mut self, what: &str, holds: impl Fn() -> bool) {
        let began = Instant::now();
        while !(self.follow() && holds()) {
            assert!(began.elapsed() < PATIENCE, "in vain: {what}; faults: {:?}", self.way.met());
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
    }

    /// What was granted is covered, and permits flow again.
    async fn lose_the_leader(&mut self, vms: &Vms<'_>, load: &Load<'_>) {
        let Counts { permitted, grown, bound, .. } = &load.counts;
        let still = load.still.write().await;
        let leader = self.plugins.iter().position(Plugin::leads).unwrap();
        self.plugins.remove(leader).process().kill();
        let killed = Instant::now();
        // Nothing is under way: no VM has more than a later leader reads.
        let sizes = load.judge.lock().unwrap().sizes();
        let pods = vms.space.pods().list(&ListParams::default()).await.unwrap();
        let mut covered = 0;
        for pod in pods {
            let Some(size) = sizes.get(&pod.name_any()) else { continue };
            let ceiling = ceiling_of(&pod).unwrap_or(1) * 1000;
            assert!(i64::try_from(ceiling).unwrap() >= *size, "{}: {size}m", pod.name_any());
            covered += 1;
        }
        let before = [permitted, grown, bound].map(now);
        drop(still);
        self.until("permits flow again", || now(permitted) > before[0]).await;
        let seconds = killed.elapsed().as_secs_f64();
        println!(
            "permits flow {seconds:.1} s after the leader was killed; {covered} VMs were covered"
        );
        assert!(seconds < TAKEN_WITHIN, "{seconds}");
        self.add();
        self.until("VMs grow again", || now(grown) > before[1] + 10).await;
        self.until("pods are bound again", || now(bound) > before[2] + 3).await;
        let seconds = killed.elapsed().as_secs_f64();
        println!("VMs grow and pods are bound {seconds:.1} s after it: {}", load.figures());
    }

    /// A fifth of all requests goes wrong, and watches are cut.
    async fn storm(&mut self, load: &Load<'_>) {
        let Counts { grown, bound, .. } = &load.counts;
        let (began, before) = (Instant::now(), [grown, bound].map(now));
        self.way.set(Faults { of_thousand: OF_THOUSAND, watches_last: Some(WATCHES_LAST) });
        self.until("VMs grow in a storm", || now(grown) >= before[0] + GROWN).await;
        self.until("pods are bound in a storm", || now(bound) >= before[1] + BOUND).await;
        let way = self.way.clone();
        for (kind, most) in STRUCK {
            self.until(&format!("{kind:?} goes wrong"), || way.struck(kind) >= most).await;
        }
        let seconds = began.elapsed().as_secs_f64();
        println!("in {seconds:.1} s of faults: {}", load.figures());
        println!("faults: {:?}", self.way.met());
    }

    /// Nothing goes wrong any more: every VM is answered, no placement is open, and the books have the API server's pods.
    async fn calm(&mut self, vms: &Vms<'_>, load: &Load<'_>) {
        self.way.set(Faults::default());
        let began = Instant::now();
        load.judge.lock().unwrap().ask_of_all();
        let is_done = || load.judge.lock().unwrap().unheard() == 0;
        self.until("every VM that is on a node is answered", is_done).await;
        let seconds = began.elapsed().as_secs_f64();
        println!("all VMs were answered {seconds:.1} s after the faults: {}", load.figures());
        let _still = load.still.write().await;
        loop {
            self.follow();
            let pods = vms.space.pods().list(&ListParams::default()).await.unwrap().items;
            // With the pod of the node's agent.
            let there =
                |node: &str| pods.iter().filter(|pod| node_of(pod) == Some(node)).count() + 1;
            let nodes = (0..NODES).map(|nth| format!("{}-{nth}", vms.space.name()));
            let is_right = |leader: &Plugin, node: String| {
                leader.node(&node)["pods"] == there(&node) && leader.placements(&node) == 0
            };
            let leader = self.plugins.iter().find(|plugin| plugin.leads());
            if leader.is_some_and(|leader| nodes.clone().all(|node| is_right(leader, node))) {
                return;
            }
            assert!(began.elapsed() < PATIENCE, "the books are not those of the API server");
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
    }
}

fn now(count: &AtomicU64) -> u64 {
    count.load(Ordering::SeqCst)
}
