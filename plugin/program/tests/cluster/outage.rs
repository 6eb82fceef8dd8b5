//! The API server is silent for a minute: what needs no write goes on, and the rest within half a minute of its return.
//!
//! One plugin is alone and grants all the while; another leads by a Lease, and cannot tell an outage from being cut off.
//! Each has a VM on a node of its own, so they promise nothing of the same room.

use crate::Cluster;
use crate::agent::Agent;
use crate::plugin::{By, Plugin};
use crate::vms::Vms;
use std::time::{Duration, Instant};
use windlass_control_plane::Identity;
use windlass_testkit::wait;

const LASTS: Duration = Duration::from_secs(60);
/// A leader answers for this long after the start of its last renewal, which is two seconds and some old.
const SURELY_LED: Duration = Duration::from_secs(6);
const SURELY_LAPSED: Duration = Duration::from_secs(11);
/// After the API server's return.
const GOES_ON_WITHIN: f64 = 30.0;
const BETWEEN: Duration = Duration::from_millis(500);

#[tokio::test]
async fn without_the_api_server_permits_within_ceilings_go_on_and_the_rest_after_its_return() {
    let cluster = Cluster::start().await;
    let vms = Vms::new(&cluster).await;
    let nodes =
        [vms.space.node("one", "8", "64Gi").await, vms.space.node("two", "8", "64Gi").await];
    let third = vms.space.node("three", "8", "64Gi").await;
    let leader = Plugin::started(&cluster.plane.kubeconfig(Identity::Plugin), By::Lease);
    wait::until("it leads", || leader.leads());
    let mut agents = Vec::new();
    for (vm, (node, plugin)) in ["a", "b"].iter().zip(nodes.iter().zip([&cluster.plugin, &leader]))
    {
        vms.vm_on(vm, 1, 8, node).await;
        vms.bound(vm).await;
        wait::until("its pod is known", || plugin.node(node)["pods"] == 1);
        let mut agent = Agent::new(plugin, vms.space.name(), vm);
        assert_eq!((agent.ask(1), agent.ask(4)), (1, 4));
        assert_eq!(vms.ceiling(vm).await, Some(5), "with headroom");
        agents.push(agent);
    }
    let (mut b, mut a) = (agents.pop().unwrap(), agents.pop().unwrap());

    let stopped = Instant::now();
    cluster.plane.api_server().signal("STOP");
    let (mut granted, mut lapsed) = (0, None);
    for size in [2, 5, 3, 4, 1].into_iter().cycle() {
        if stopped.elapsed() > LASTS {
            break;
        }
        assert_eq!(a.ask(size), size, "within its ceiling, after {:?}", stopped.elapsed());
        granted += 1;
        let asked = stopped.elapsed();
        let (status, body) = b.try_ask(size);
        match status {
            200 => assert!(asked < SURELY_LAPSED, "granted after {asked:?}"),
            503 => {
                assert!(stopped.elapsed() > SURELY_LED, "refused after {asked:?}: {body}");
                lapsed.get_or_insert(asked);
            }
            _ => panic!("{status} after {asked:?}: {body}"),
        }
        std::thread::sleep(BETWEEN);
    }
    let above = a.ask(8);
    assert!(above <= 5, "above its ceiling no VM grows: {above}");
    let lapsed = lapsed.unwrap().as_secs_f64();
    println!("alone: {granted} permits in a minute; by a lease: none after {lapsed:.1} s");

    cluster.plane.api_server().signal("CONT");
    let back = Instant::now();
    let after = |what: &str| {
        let seconds = back.elapsed().as_secs_f64();
        println!("{what} {seconds:.1} s after the API server's return");
        assert!(seconds < GOES_ON_WITHIN, "{what}: {seconds}");
    };
    wait::until("the VM grows above its ceiling", || a.ask(8) == 8);
    after("alone: a VM grew above its ceiling");
    wait::until("the leader answers again", || b.try_ask(1).0 == 200);
    after("by a lease: a permit was granted");
    wait::until("its VM grows above its ceiling", || b.ask(1) == 1 && b.ask(8) == 8);
    after("by a lease: a VM grew above its ceiling");
    vms.vm_on("comes", 1, 1, &third).await;
    vms.bound("comes").await;
    after("a pod was placed");
}
