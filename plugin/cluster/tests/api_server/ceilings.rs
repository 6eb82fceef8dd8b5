//! Ceilings: what an agent is told is recorded first, whatever is lost, late or changed by another.

use crate::between::Fate;
use crate::plane;
use crate::plugin::{Plugin, bounds};
use serde_json::json;
use windlass_protocol::pod::Ceiling;
use windlass_protocol::{Bytes, MilliCpu, Resources};

/// Far from what the books say.
const BY_HAND: &str = r#"{"epoch":1,"write":7,"cpu":"4","memory":"4Gi"}"#;

#[tokio::test]
async fn a_vm_has_its_first_ceiling_from_the_binding_on() {
    Plugin::beside(plane().await, async |plugin| {
        let (node, pod) = (plugin.node().await, plugin.growing("vm", 4).await);
        // What somebody wrote before does not outlast the binding.
        plugin.edit_ceiling("vm", Some(BY_HAND)).await;
        assert_eq!(plugin.bind(&pod, &node).await, "");
        assert_eq!(plugin.ceiling("vm").await, Some(ceiling(1, 1, 2)));
        assert_eq!(plugin.reserved(&node), 1000, "its headroom is promised to no agent");
        assert_eq!(
            (plugin.permit("vm", None, 1).await, plugin.permit("vm", Some(1), 2).await),
            (1, 2)
        );
        assert_eq!(plugin.between.ceilings(), 0, "growth within it costs no write");
    })
    .await;
}

#[tokio::test]
async fn growth_above_the_ceiling_is_recorded_before_it_is_answered() {
    Plugin::beside(plane().await, async |plugin| {
        let (node, pod) = (plugin.node().await, plugin.growing("vm", 4).await);
        assert_eq!(plugin.bind(&pod, &node).await, "");
        assert_eq!(plugin.permit("vm", None, 1).await, 1);
        assert_eq!(plugin.permit("vm", Some(1), 3).await, 3);
        assert_eq!(plugin.ceiling("vm").await, Some(ceiling(1, 2, 4)));
        assert_eq!(plugin.permit("vm", Some(3), 4).await, 4);
        assert_eq!(plugin.between.ceilings(), 1);
    })
    .await;
}

#[tokio::test]
async fn what_was_not_recorded_is_permitted_to_nobody_and_its_room_is_free() {
    Plugin::beside(plane().await, async |plugin| {
        let (node, pod) = (plugin.node().await, plugin.growing("vm", 4).await);
        assert_eq!(plugin.bind(&pod, &node).await, "");
        assert_eq!(plugin.permit("vm", None, 1).await, 1);
        plugin.between.next_ceiling(Fate::IsKept);
        assert_eq!(plugin.permit("vm", Some(1), 3).await, 2, "as far as the first ceiling goes");
        assert_eq!(plugin.reserved(&node), 2000);
        assert_eq!(plugin.permit("vm", Some(2), 3).await, 3, "the API server answers again");
        assert_eq!(plugin.between.send_what_was_kept().await, 422, "it comes late");
        assert_eq!(plugin.ceiling("vm").await, Some(ceiling(1, 3, 4)));
    })
    .await;
}

#[tokio::test]
async fn a_ceiling_whose_answer_was_lost_is_read_and_recorded_again() {
    Plugin::beside(plane().await, async |plugin| {
        let (node, pod) = (plugin.node().await, plugin.growing("vm", 4).await);
        assert_eq!(plugin.bind(&pod, &node).await, "");
        assert_eq!(plugin.permit("vm", None, 1).await, 1);
        plugin.between.next_ceiling(Fate::IsNotAnswered);
        assert_eq!(plugin.permit("vm", Some(1), 3).await, 2);
        assert_eq!(plugin.permit("vm", Some(2), 3).await, 3);
        let recorded = plugin.ceiling("vm").await.unwrap();
        assert!(recorded.write > 2 && recorded.size.covers(cu(3)), "{recorded:?}");
    })
    .await;
}

#[tokio::test]
async fn a_busy_api_server_delays_growth_and_ends_none() {
    Plugin::beside(plane().await, async |plugin| {
        let (node, pod) = (plugin.node().await, plugin.growing("vm", 4).await);
        assert_eq!(plugin.bind(&pod, &node).await, "");
        assert_eq!(plugin.permit("vm", None, 1).await, 1);
        plugin.between.next_ceiling(Fate::IsThrottled);
        assert_eq!(plugin.permit("vm", Some(1), 3).await, 2);
        assert_eq!(plugin.permit("vm", Some(2), 3).await, 3, "after a little while");
    })
    .await;
}

#[tokio::test]
async fn a_ceiling_that_a_person_changed_is_read_and_replaced() {
    Plugin::beside(plane().await, async |plugin| {
        let (node, pod) = (plugin.node().await, plugin.growing("vm", 4).await);
        assert_eq!(plugin.bind(&pod, &node).await, "");
        assert_eq!(plugin.permit("vm", None, 1).await, 1);
        plugin.between.next_ceiling(Fate::ComesAfterAChange);
        assert_eq!(plugin.permit("vm", Some(1), 3).await, 3);
        assert!(plugin.ceiling("vm").await.unwrap().size.covers(cu(3)));
    })
    .await;
}

/// Where the Lease is made anew, epochs begin again, and the pods remember.
#[tokio::test]
async fn a_recorded_epoch_that_is_higher_does_not_stop_growth() {
    Plugin::beside(plane().await, async |plugin| {
        let (node, pod) = (plugin.node().await, plugin.growing("vm", 4).await);
        assert_eq!(plugin.bind(&pod, &node).await, "");
        assert_eq!(plugin.permit("vm", None, 1).await, 1);
        let higher = Ceiling { epoch: 7, write: 2, size: cu(1) };
        plugin.edit_ceiling("vm", Some(&higher.encode())).await;
        assert_eq!(plugin.permit("vm", Some(1), 4).await, 4);
        let recorded = plugin.ceiling("vm").await.unwrap();
        assert_eq!((recorded.epoch, recorded.size), (7, cu(4)));
    })
    .await;
}

#[tokio::test]
async fn a_vm_that_came_past_the_plugin_gets_its_ceiling_with_its_agents_first_word() {
    Plugin::beside(plane().await, async |plugin| {
        let node = plugin.node().await;
        let labels = json!({"windlass.dev/enabled": "true"});
        plugin.on(&node, json!({"name": "vm", "labels": labels})).await;
        assert_eq!(plugin.ceiling("vm").await, None);
        assert_eq!(plugin.permit("vm", None, 1).await, 1);
        let recorded = plugin.ceiling("vm").await.unwrap();
        assert_eq!(recorded.size, cu(1), "its maximum is what it requests");
    })
    .await;
}

#[tokio::test]
async fn a_vm_of_another_object_is_answered_without_a_ceiling() {
    Plugin::beside(plane().await, async |plugin| {
        let node = plugin.node().await;
        let annotations = json!({"windlass.dev/bounds": bounds(4)});
        let labels = json!({"vm.neon.tech/name": "db1"});
        let metadata = json!({"name": "vm", "labels": labels, "annotations": annotations});
        plugin.on(&node, metadata).await;
        assert_eq!(
            (plugin.permit("vm", None, 1).await, plugin.permit("vm", Some(1), 4).await),
            (1, 4)
        );
        assert_eq!(plugin.ceiling("vm").await, None);
    })
    .await;
}

fn ceiling(epoch: u64, write: u64, units: u64) -> Ceiling {
    Ceiling { epoch, write, size: cu(units) }
}

fn cu(count: u64) -> Resources {
    Resources::new(MilliCpu::from_cores(count), Bytes::from_gib(count))
}
