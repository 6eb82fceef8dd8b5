//! Whole control planes: they are ready, stand beside each other, and notice the end of a program.

use windlass_control_plane::{ControlPlane, Space};

#[tokio::test]
async fn two_control_planes_stand_beside_each_other() {
    let (one, other) = tokio::join!(ControlPlane::start(), ControlPlane::start());
    one.ready().await.unwrap();
    other.ready().await.unwrap();
    let space = Space::new(&one).await;
    let namespaces = async |plane: &ControlPlane| plane.kubectl(&["get", "ns", "-o", "name"]).await;
    let name = format!("namespace/{}\n", space.name());
    assert!(namespaces(&one).await.contains(&name));
    assert!(!namespaces(&other).await.contains(&name));
}

#[tokio::test]
async fn the_end_of_etcd_is_noticed() {
    let plane = ControlPlane::start().await;
    assert_eq!(plane.complaint(), None);
    plane.etcd().kill();
    let words = plane.complaint().unwrap();
    assert!(words.starts_with("etcd has ended (signal: 9"), "{words}");

    // The API server says so, too; `until` would end at once.
    let refused = async || plane.ready().await.is_err();
    windlass_testkit::wait::until_async("the API server is not ready", refused).await;
    let words = plane.ready().await.unwrap_err();
    assert!(words.contains("etcd"), "{words}");
}

#[tokio::test]
#[should_panic(expected = "while waiting for this: the moon\netcd has ended")]
async fn a_wait_ends_with_the_control_plane() {
    let plane = ControlPlane::start().await;
    plane.etcd().kill();
    plane.until("the moon", async || Err::<(), _>("the sun".to_owned())).await;
}
