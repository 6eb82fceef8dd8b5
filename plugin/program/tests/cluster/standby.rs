//! A leader that is stopped, killed or told to end, and the standby that leads after it.

use crate::agent::Agent;
use crate::cluster;
use crate::plugin::{By, Plugin};
use crate::vms::Vms;
use std::io::Write;
use std::time::{Duration, Instant};
use windlass_control_plane::Identity;
use windlass_testkit::{http, wait};

/// So long a leader is stopped: its lease lapses meanwhile, and the standby takes it.
const STOPPED: Duration = Duration::from_secs(20);

/// A standby that was killed waits for no longer than this: 15 s of its own, two looks, and a slow machine.
const TAKEN_WITHIN: f64 = 22.0;

#[tokio::test]
async fn a_standby_leads_after_a_leader_that_was_stopped_killed_or_told_to_end() {
    let cluster = cluster().await;
    let vms = Vms::new(cluster).await;
    let node = vms.space.node("one", "8", "64Gi").await;
    vms.vm("vm", 4).await;
    vms.bound("vm").await;
    let kubeconfig = cluster.plane.kubeconfig(Identity::Plugin);
    let started = || Plugin::started(&kubeconfig, By::Lease);
    let ask =
        |plugin: &Plugin, size: u64| Agent::new(plugin, vms.space.name(), "vm").try_ask(size).0;

    let mut first = started();
    wait::until("the first plugin leads", || first.leads());
    let second = started();
    wait::until("the standby's books know the node", || !second.node(&node).is_null());
    assert_eq!((ask(&first, 1), ask(&second, 1)), (200, 503));
    assert!(!second.leads() && second.epoch() == 0);
    let refused = second.extend("bind", &vms.left_alone("left", &node).await).1;
    assert!(refused.contains("does not lead"), "{refused}");

    // Stopped, with its connections open: once it runs again its first look at its clock says that it leads no more.
    let epoch = first.epoch();
    first.process().signal("STOP");
    let stopped = Instant::now();
    wait::until("the second plugin leads", || second.leads());
    let seconds = stopped.elapsed().as_secs_f64();
    println!("a standby led {seconds:.1} s after the leader was stopped");
    assert!(seconds > 12.0 && seconds < TAKEN_WITHIN, "{seconds}");
    assert!(second.epoch() > epoch);
    assert_eq!(ask(&second, 2), 200);
    std::thread::sleep(STOPPED.saturating_sub(stopped.elapsed()));
    // A request that waits for it is read before anything else that it could do.
    let mut late = http::connect(&first.permits);
    let body = Agent::new(&first, vms.space.name(), "vm").body(3);
    late.write_all(http::request("POST", "/", &body).as_bytes()).unwrap();
    first.process().signal("CONT");
    let answer = http::rest(late);
    assert!(answer.is_empty() || answer.contains(" 503 "), "{answer}");
    assert!(!first.process().wait().success(), "it has lost its lease");
    let said = first.process().err().to_end().join("\n");
    assert!(said.contains("another plugin leads"), "{said}");

    // Killed.
    let (mut second, mut third) = (second, started());
    let epoch = second.epoch();
    second.process().kill();
    let killed = Instant::now();
    wait::until("the third plugin leads", || third.leads());
    let seconds = killed.elapsed().as_secs_f64();
    println!("a standby led {seconds:.1} s after the leader was killed");
    assert!(seconds > 12.0 && seconds < TAKEN_WITHIN, "{seconds}");
    assert!(third.epoch() > epoch);
    assert_eq!(ask(&third, 2), 200);

    // Told to end.
    let fourth = started();
    let (epoch, told) = (third.epoch(), Instant::now());
    assert!(third.process().stop().success());
    wait::until("the fourth plugin leads", || fourth.leads());
    let seconds = told.elapsed().as_secs_f64();
    println!("a standby led {seconds:.1} s after the leader was told to end");
    assert!(seconds < 5.0, "{seconds}");
    assert_eq!(fourth.epoch(), epoch + 1);
    assert_eq!(ask(&fourth, 2), 200);
}
