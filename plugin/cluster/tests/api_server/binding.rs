//! The commit point of a placement: the books and the API server agree on it, whatever is lost or late.

use crate::between::Fate;
use crate::plane;
use crate::plugin::Plugin;
use kube::ResourceExt;
use serde_json::json;
use windlass_testkit::wait;

#[tokio::test]
async fn a_pod_is_bound_where_there_is_room_and_nowhere_else() {
    Plugin::beside(plane().await, async |plugin| {
        let node = plugin.node().await;
        let (first, second) = (plugin.vm("first", 3).await, plugin.vm("second", 2).await);
        assert_eq!(plugin.bind(&first, &node).await, "");
        assert_eq!(plugin.place_of(&first).await.as_deref(), Some(&*node));
        let full = format!("node {node}: 2 of cpu asked, 1 of 4 free");
        assert_eq!(plugin.bind(&second, &node).await, full);
        assert_eq!(plugin.place_of(&second).await, None);
    })
    .await;
}

/// The API server takes it from any tenant.
#[tokio::test]
async fn a_pod_that_is_too_large_for_any_quantity_ends_no_list_and_no_watch() {
    Plugin::beside(plane().await, async |plugin| {
        let (node, huge) = (plugin.node().await, plugin.vm_of("huge", "10E").await);
        assert!(!plugin.fits(&huge, &node).await);
        assert!(plugin.bind(&huge, &node).await.contains(" of cpu asked, 4 of 4 free"));
        let pod = plugin.vm("vm", 4).await;
        assert_eq!(plugin.bind(&pod, &node).await, "");
        let is_settled = async || plugin.open(&node) == 0;
        wait::until_async("the watch goes on after it", is_settled).await;
        // A plugin that starts beside it lists it.
        Plugin::beside(plane().await, async |second| {
            assert!(!second.fits(&huge, &node).await);
        })
        .await;
    })
    .await;
}

#[tokio::test]
async fn a_pod_of_another_uid_is_not_bound() {
    Plugin::beside(plane().await, async |plugin| {
        let (node, pod) = (plugin.node().await, plugin.vm("vm", 3).await);
        let gone = format!("pod {}/vm with uid another is gone", plugin.space.name());
        assert_eq!(plugin.bind_as(&pod, "another", &node).await, gone);
        assert_eq!((plugin.place_of(&pod).await, plugin.open(&node)), (None, 0));
    })
    .await;
}

#[tokio::test]
async fn a_pod_that_changed_since_it_was_read_is_not_bound_and_holds_no_room() {
    Plugin::beside(plane().await, async |plugin| {
        let (node, pod) = (plugin.node().await, plugin.vm("vm", 3).await);
        plugin.between.next_binding(Fate::ComesAfterAChange);
        let error = plugin.bind(&pod, &node).await;
        assert!(error.starts_with("the API server refuses: "), "{error}");
        assert_eq!((plugin.place_of(&pod).await, plugin.open(&node)), (None, 0));
        assert_eq!(plugin.bind(&pod, &node).await, "");
    })
    .await;
}

/// What the scheduler asked about is bound without a read where the watch shows the same. Where the API server has another revision by
/// then, the pod is read and bound all the same.
#[tokio::test]
async fn a_pod_that_changed_since_the_scheduler_asked_about_it_is_read_and_bound() {
    Plugin::beside(plane().await, async |plugin| {
        let (node, pod) = (plugin.node().await, plugin.vm("vm", 3).await);
        // What the watch shows of a later pod comes after the word on this one.
        let later = json!({"name": "later", "labels": {"windlass.dev/enabled": "true"}});
        plugin.on(&node, later).await;
        assert!(plugin.fits(&pod, &node).await);
        plugin.between.next_binding(Fate::ComesAfterAChange);
        assert_eq!(plugin.bind(&pod, &node).await, "");
        assert_eq!(plugin.place_of(&pod).await.as_ref(), Some(&node));
        assert_eq!(plugin.reserved(&node), 4000, "both pods, each once");
    })
    .await;
}

#[tokio::test]
async fn a_lost_binding_holds_its_room_until_it_can_take_effect_no_more() {
    Plugin::beside(plane().await, async |plugin| {
        let (node, pod) = (plugin.node().await, plugin.vm("vm", 3).await);
        let other = plugin.vm("other", 3).await;
        plugin.between.next_binding(Fate::IsKept);
        let error = plugin.bind(&pod, &node).await;
        assert!(error.starts_with("the API server did not answer: "), "{error}");
        let fits = plugin.fits(&other, &node).await;
        assert!(!fits, "the binding may take effect yet: {}", plugin.dump());

        plugin.until_fits(&other, &node).await;
        assert_eq!(plugin.between.send_what_was_kept().await, 409, "it comes late");
        assert_eq!(plugin.place_of(&pod).await, None);
        assert_eq!(plugin.bind(&other, &node).await, "");
    })
    .await;
}

#[tokio::test]
async fn a_binding_that_took_effect_keeps_its_room_though_the_api_server_says_that_it_failed() {
    Plugin::beside(plane().await, async |plugin| {
        let (node, pod) = (plugin.node().await, plugin.vm("vm", 3).await);
        let other = plugin.vm("other", 3).await;
        plugin.between.next_binding(Fate::IsTimedOut);
        let error = plugin.bind(&pod, &node).await;
        assert_eq!(error, "the API server did not answer: busy");
        assert_eq!(plugin.place_of(&pod).await.as_ref(), Some(&node));
        assert!(!plugin.fits(&other, &node).await);
    })
    .await;
}

#[tokio::test]
async fn a_binding_that_took_effect_keeps_its_room_though_its_answer_was_lost() {
    Plugin::beside(plane().await, async |plugin| {
        let (node, pod) = (plugin.node().await, plugin.vm("vm", 3).await);
        let other = plugin.vm("other", 3).await;
        plugin.between.next_binding(Fate::IsNotAnswered);
        let error = plugin.bind(&pod, &node).await;
        assert!(error.starts_with("the API server did not answer: "), "{error}");
        assert!(!plugin.fits(&other, &node).await);
        assert_eq!(plugin.place_of(&pod).await.as_deref(), Some(&*node));
        let is_settled = async || {
            assert!(!plugin.fits(&other, &node).await, "the pod is on the node");
            plugin.open(&node) == 0
        };
        wait::until_async("the placement is settled", is_settled).await;
        assert!(!plugin.fits(&other, &node).await);
    })
    .await;
}

#[tokio::test]
async fn a_refused_pod_is_annotated_once_room_comes_free() {
    Plugin::beside(plane().await, async |plugin| {
        let (node, pod) = (plugin.node().await, plugin.vm("vm", 3).await);
        assert_eq!(plugin.bind(&pod, &node).await, "");
        let waiting = plugin.vm("waiting", 3).await;
        assert!(!plugin.fits(&waiting, &node).await);
        plugin.delete("vm").await;
        plugin
            .space
            .until_pod("waiting", "told of room", |pod| {
                pod.annotations().contains_key("windlass.dev/room-came-free")
            })
            .await;
        assert!(plugin.fits(&waiting, &node).await);
    })
    .await;
}
