//! What an agent is told of its timers holds.

use super::guest::Manner;
use super::node::Node;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use std::time::Duration;
use windlass_agent::{Periods, Silence};

#[tokio::test(start_paused = true)]
async fn metrics_are_read_and_sessions_checked_as_often_as_told() {
    let counts = async |metrics, health| {
        let periods = Periods {
            metrics: Duration::from_secs(metrics),
            health: Duration::from_secs(health),
            ..Periods::USUAL
        };
        let node = Node::told(|config| config.periods = periods);
        let vm = node.add("a").await;
        node.until("a session", || vm.guest.count("/health-check") > 1).await;
        let so_far = || {
            let reads = vm.guest.state().reads;
            (reads, vm.guest.count("/health-check"))
        };
        let before = so_far();
        node.pass(120).await;
        let after = so_far();
        (after.0 - before.0, after.1 - before.1)
    };
    let (often, seldom) = (counts(1, 5).await, counts(5, 1).await);
    assert!((105..=135).contains(&often.0) && (20..=27).contains(&often.1), "{often:?}");
    assert!((20..=27).contains(&seldom.0) && (105..=135).contains(&seldom.1), "{seldom:?}");
}

#[tokio::test(start_paused = true)]
async fn an_informant_that_is_silent_for_longer_than_it_may_be_is_counted() {
    let silence = Silence { after: Duration::from_secs(20), grace: Duration::from_secs(60) };
    let node = Node::told(|config| config.silence = silence);
    let silent = || {
        let (mut registry, mut text) = (Registry::default(), String::new());
        node.agent.metrics().register_reference(&mut registry);
        encode(&mut text, &registry).unwrap();
        let name = "autoscaling_vms_unsuccessful_communication_with_informant_current ";
        text.lines().find_map(|line| line.strip_prefix(name)).unwrap().to_owned()
    };
    let vm = node.add("a").await;
    vm.guest.state().informant = Manner::Stalls;
    node.pass(55).await;
    assert_eq!(silent(), "0", "it has only begun");
    node.pass(10).await;
    assert_eq!(silent(), "1");
    vm.guest.state().informant = Manner::Works;
    node.until("it is heard again", || silent() == "0").await;
    vm.guest.state().informant = Manner::Stalls;
    node.pass(15).await;
    assert_eq!(silent(), "0");
    node.pass(15).await;
    assert_eq!(silent(), "1");
    node.agent.forget(&vm.name).unwrap();
    vm.fake.end();
    node.until("it is gone", || silent() == "0").await;
}
