//! Each identity may do what its roles say, and nothing else.

use crate::plane;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, ListParams};
use kube::{Client, Error};
use std::path::Path;
use windlass_control_plane::Identity;

#[tokio::test]
async fn an_identity_may_do_what_its_role_says_once_it_is_bound() {
    let plane = plane().await;
    let plugin = plane.client(Identity::Plugin).await;
    assert_eq!(listing_nodes(&plugin).await, Some(403));
    plane.apply(Path::new("tests/manifests")).await;
    plane
        .until("the plugin may list nodes", async || match listing_nodes(&plugin).await {
            None => Ok(()),
            Some(code) => Err(code.to_string()),
        })
        .await;
    let pods: Api<Pod> = Api::all(plugin);
    let refused = code(pods.list(&ListParams::default()).await.map(drop));
    assert_eq!(refused, Some(403), "the role says nothing of pods");
    let stranger = plane.client(Identity::Stranger).await;
    assert_eq!(listing_nodes(&stranger).await, Some(403));
}

#[tokio::test]
async fn the_scheduler_has_the_roles_that_kubernetes_gives_it() {
    let client = plane().await.client(Identity::Scheduler).await;
    assert_eq!(listing_nodes(&client).await, None);
}

/// How it is refused, if it is.
async fn listing_nodes(client: &Client) -> Option<u16> {
    let nodes: Api<Node> = Api::all(client.clone());
    code(nodes.list(&ListParams::default()).await.map(drop))
}

fn code(said: kube::Result<()>) -> Option<u16> {
    match said {
        Ok(()) => None,
        Err(Error::Api(refusal)) => Some(refusal.code),
        Err(error) => panic!("{error}"),
    }
}
