//! The role that we ship allows what the plugin does, and no more.

use crate::between::Fate;
use crate::headroom;
use crate::plane;
use crate::plugin::Plugin;
use crate::resizes;
use axum::body::Bytes;
use http::Request;
use http::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use k8s_openapi::api::rbac::v1::{ClusterRole, Role};
use kube::api::PostParams;
use kube::{Api, Client};
use std::collections::BTreeSet;
use windlass_control_plane::{ControlPlane, Identity};
use windlass_kit::clock::Clock;
use windlass_plugin_cluster::tokens::AUDIENCE;
use windlass_plugin_cluster::{Operators, Tokens};
use windlass_plugin_core::trust::Denied;

#[tokio::test]
async fn every_right_of_the_role_is_used_and_nothing_is_denied() {
    Plugin::sharing(plane().await, async |plugin| {
        let (node, pod) = (plugin.node().await, plugin.vm("vm", 3).await);
        headroom::comes_grows_and_goes(plugin).await;
        resizes::grows_and_shrinks(plugin).await;
        plugin.delete("resized").await;
        let waiting = plugin.vm("waiting", 3).await;
        // Nodes and pods are listed and watched, and a pod is read and bound.
        assert_eq!(plugin.bind(&pod, &node).await, "");
        plugin.delete("vm").await;
        plugin.until_fits(&waiting, &node).await;
        // A pod whose binding was lost is read and annotated.
        let pod = plugin.vm("lost", 3).await;
        plugin.between.next_binding(Fate::IsKept);
        assert_ne!(plugin.bind(&pod, &node).await, "");
        plugin.until_fits(&waiting, &node).await;
        // A token is reviewed.
        let tokens = Tokens::new(plugin.between.client(), Clock::system());
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::from_static("Bearer nonsense"));
        assert!(matches!(tokens.caller(&headers).await, Err(Denied::NotValid(_))));
        // A person is shown VMs, if the API server says that it may see their pods.
        plugin.space.account("person").await;
        let token = plugin.space.token("person", AUDIENCE, None).await;
        let (client, clock) = (plugin.between.client(), Clock::system());
        let operators = Operators::new(client, clock, plugin.books.clone(), tokens);
        let request = Request::get("/v1/vms").header(AUTHORIZATION, format!("Bearer {token}"));
        let request = request.body(Bytes::new()).unwrap();
        assert!(matches!(operators.show(&request).await, Err(Denied::NoRight { .. })));
        assert_eq!(plugin.between.denied(), Vec::<String>::new());
        assert_eq!(plugin.between.used(), granted(plugin.space.client()).await);
    })
    .await;
}

#[tokio::test]
async fn the_plugin_may_do_nothing_that_it_does_not_do() {
    let plane: &ControlPlane = plane().await;
    let admin = plane.client(Identity::Admin).await;
    for (group, resource, verbs) in [
        ("", "secrets", &["get", "list", "watch"][..]),
        ("", "configmaps", &["get", "list", "update"]),
        ("", "serviceaccounts/token", &["create"]),
        ("", "namespaces", &["get", "list", "delete"]),
        ("", "pods", &["create", "update", "delete", "deletecollection"]),
        ("", "pods/exec", &["create", "get"]),
        ("", "pods/eviction", &["create"]),
        ("", "pods/ephemeralcontainers", &["patch"]),
        ("", "pods/log", &["get"]),
        ("", "pods/resize", &["patch"]),
        ("", "pods/status", &["patch", "update"]),
        ("", "nodes", &["get", "patch", "update", "delete"]),
        ("", "nodes/proxy", &["get", "create"]),
        ("", "nodes/status", &["patch", "update"]),
        ("authentication.k8s.io", "selfsubjectreviews", &["list"]),
        ("certificates.k8s.io", "certificatesigningrequests", &["create", "get"]),
        ("apps", "deployments", &["get", "patch"]),
        ("vm.neon.tech", "virtualmachines", &["get", "list", "watch", "create", "patch", "delete"]),
        ("vm.neon.tech", "virtualmachinemigrations", &["patch", "update", "deletecollection"]),
        ("rbac.authorization.k8s.io", "clusterroles", &["bind", "escalate", "update"]),
        ("rbac.authorization.k8s.io", "clusterrolebindings", &["create"]),
    ] {
        for verb in verbs {
            assert!(!may(&admin, group, resource, verb).await, "{verb} {resource}");
        }
    }
    assert!(may(&admin, "", "pods/binding", "create").await, "the reviews are of its account");
    // In its own namespace it reads and writes its own certificates by name, and no others.
    for (resource, own) in
        [("secrets", "windlass-plugin-tls"), ("configmaps", "windlass-plugin-ca")]
    {
        for (name, verb, is_granted) in [
            (own, "get", true),
            (own, "update", true),
            (own, "delete", false),
            ("another", "get", false),
            ("another", "update", false),
            ("", "get", false),
            ("", "list", false),
            ("", "watch", false),
            ("", "deletecollection", false),
        ] {
            let within = Within { namespace: Some("windlass"), name: Some(name) };
            let answer = may_within(&admin, "", resource, verb, within).await;
            assert_eq!(answer, is_granted, "{verb} {resource} {name}");
        }
    }
}

/// What the role grants, as resource and verb.
async fn granted(admin: &Client) -> BTreeSet<(String, String)> {
    let roles: Api<ClusterRole> = Api::all(admin.clone());
    let rules = roles.get("windlass-plugin").await.unwrap().rules.unwrap();
    let resize = roles.get("windlass-plugin-resize").await.unwrap().rules.unwrap();
    let roles: Api<Role> = Api::namespaced(admin.clone(), "windlass");
    let own = roles.get("windlass-plugin-headroom").await.unwrap().rules.unwrap();
    let mut granted = BTreeSet::new();
    for rule in rules.into_iter().chain(own).chain(resize) {
        let resources = rule.resources.unwrap();
        let group = match resources.first().map(String::as_str) {
            Some("tokenreviews") => "authentication.k8s.io",
            Some("subjectaccessreviews") => "authorization.k8s.io",
            _ => "",
        };
        assert_eq!(rule.api_groups.unwrap(), [group]);
        for resource in resources {
            granted.extend(rule.verbs.iter().map(|verb| (resource.clone(), verb.clone())));
        }
    }
    granted
}

/// Where a right is looked for: everywhere, or in a namespace, of an object.
#[derive(Clone, Copy, Default)]
struct Within<'a> {
    namespace: Option<&'a str>,
    name: Option<&'a str>,
}

/// Whether the plugin's account may do this anywhere.
async fn may(admin: &Client, group: &str, resource: &str, verb: &str) -> bool {
    may_within(admin, group, resource, verb, Within::default()).await
}

async fn may_within(
    admin: &Client,
    group: &str,
    resource: &str,
    verb: &str,
    within: Within<'_>,
) -> bool {
    let (resource, sub) = match resource.split_once('/') {
        Some((resource, sub)) => (resource, Some(sub.to_owned())),
        None => (resource, None),
    };
    let review = SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: Some(Identity::Plugin.user().to_owned()),
            resource_attributes: Some(ResourceAttributes {
                group: Some(group.to_owned()),
                resource: Some(resource.to_owned()),
                subresource: sub,
                verb: Some(verb.to_owned()),
                namespace: within.namespace.map(str::to_owned),
                name: within.name.map(str::to_owned),
                ..ResourceAttributes::default()
            }),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    };
    let reviews: Api<SubjectAccessReview> = Api::all(admin.clone());
    let answer = reviews.create(&PostParams::default(), &review).await.unwrap();
    answer.status.unwrap().allowed
}
