//! What a stock kube-scheduler may send to its extender, and what it makes of the answers.
//!
//! The service is the real one, in memory, with books of two nodes; no API server is there, as none is asked. Each
//! test is a trap in which other extenders were caught: an empty answer is no node for the scheduler, a name that it did not
//! send fails the whole call, a score above ten outweighs its own, and any status but 200 is a failure without words.

#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "extender/service.rs"]
mod service;

use axum::response::Response;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use service::{Asked, pod};
use windlass_kit::server::HangUp;
use windlass_testkit::log::Log;

#[tokio::test]
async fn before_the_rebuild_no_node_fits_and_the_error_says_why() {
    let asked = Asked::not_rebuilt();
    for nodes in [json!(["n1", "n2"]), json!([])] {
        let answer = asked.ok("/filter", &json!({"Pod": pod("a", "1"), "NodeNames": nodes})).await;
        assert_eq!(answer["NodeNames"], json!([]), "{answer}");
        assert!(answer["Error"].as_str().unwrap().contains("not rebuilt yet"), "{answer}");
    }
    let nodes = json!({"items": [{"metadata": {"name": "n1"}}]});
    let answer = asked.ok("/filter", &json!({"Pod": pod("a", "1"), "Nodes": nodes})).await;
    assert_eq!(answer["Nodes"]["items"], json!([]), "{answer}");
    let victims = json!({"n1": {"Pods": [{"UID": "u"}], "NumPDBViolations": 0}});
    let args = json!({"Pod": pod("a", "1"), "NodeNameToMetaVictims": victims});
    assert_eq!(asked.ok("/preempt", &args).await, json!({"NodeNameToMetaVictims": {}}));
    let args = json!({"PodName": "a", "PodNamespace": "tenants", "PodUID": "u", "Node": "n1"});
    let answer = asked.ok("/bind", &args).await;
    assert!(answer["Error"].as_str().unwrap().contains("not rebuilt yet"), "{answer}");
}

#[tokio::test]
async fn before_the_rebuild_every_node_has_the_lowest_score() {
    let args = json!({"Pod": pod("a", "1"), "NodeNames": ["n1", "n2"]});
    let lowest = json!([{"Host": "n1", "Score": 0}, {"Host": "n2", "Score": 0}]);
    assert_eq!(Asked::not_rebuilt().ok("/prioritize", &args).await, lowest);
}

#[tokio::test]
async fn a_standby_answers_nobody_and_believes_no_agent() {
    let asked = Asked::standing_by();
    asked.bound_vm("vm", "n1");
    let answer =
        asked.ok("/filter", &json!({"Pod": pod("a", "1"), "NodeNames": ["n1", "n2"]})).await;
    assert_eq!(answer["NodeNames"], json!([]), "{answer}");
    assert!(answer["Error"].as_str().unwrap().contains("does not lead"), "{answer}");
    let args = json!({"PodName": "a", "PodNamespace": "tenants", "PodUID": "u", "Node": "n1"});
    let answer = asked.ok("/bind", &args).await;
    assert!(answer["Error"].as_str().unwrap().contains("does not lead"), "{answer}");

    let before = asked.reserved("n1");
    assert_eq!(asked.permitted(7, "vm", Some(3), 3).await.status(), 503);
    assert_eq!(asked.reserved("n1"), before);
    let asked = Asked::rebuilt();
    asked.bound_vm("vm", "n1");
    assert_eq!(asked.permitted(7, "vm", None, 1).await.status(), 200);
    asked.resigns();
    assert_eq!(asked.permitted(7, "vm", Some(1), 1).await.status(), 503);
}

/// The agent of v0.12.2 takes any status but 200 for the end, until the plugin's pod is another.
#[tokio::test]
async fn an_agent_to_which_any_refusal_is_final_gets_none_that_passes() {
    let is_cut = |answer: &Response| answer.extensions().get::<HangUp>().is_some();
    for (asked, status) in
        [(Asked::standing_by(), 503), (Asked::not_rebuilt(), 503), (Asked::rebuilt(), 404)]
    {
        for version in [1, 2, 3] {
            let answer = asked.permitted(version, "unknown", None, 1).await;
            assert!(is_cut(&answer), "{version}: {}", answer.status());
        }
        let answer = asked.permitted(7, "unknown", None, 1).await;
        assert!(!is_cut(&answer));
        assert_eq!(answer.status(), status);
    }
}

#[tokio::test]
async fn an_answer_names_the_nodes_of_the_request_and_no_others() {
    let asked = Asked::rebuilt();
    // The books know n1 of 8 vCPUs and n2 of 2; n3 and the odd ones are known to the scheduler alone.
    let odd = "n4/../\u{1b}[31m\"\n";
    for (names, cpu, fit) in [
        (json!(["n1", "n2", "n3"]), "4", json!(["n1"])),
        (json!(["n2"]), "4", json!([])),
        (json!(["n2", odd]), "1", json!(["n2"])),
        (json!([]), "1", json!([])),
        (json!(null), "1", json!([])),
    ] {
        let args = json!({"Pod": pod("a", cpu), "NodeNames": names, "Nodes": null});
        let answer = asked.ok("/filter", &args).await;
        assert_eq!(answer["NodeNames"], fit, "{answer}");
        assert_eq!((&answer["Nodes"], &answer["Error"]), (&json!(null), &json!("")));
        let failed = answer["FailedNodes"].as_object().unwrap().keys();
        let hopeless = answer["FailedAndUnresolvableNodes"].as_object().unwrap().keys();
        let fit = answer["NodeNames"].as_array().unwrap().iter().map(|name| name.as_str().unwrap());
        let mut named: Vec<&str> = failed.chain(hopeless).map(String::as_str).chain(fit).collect();
        let sent = names.as_array().into_iter().flatten();
        let mut sent: Vec<&str> = sent.map(|name| name.as_str().unwrap()).collect();
        named.sort_unstable();
        sent.sort_unstable();
        assert_eq!(named, sent, "{answer}");

        let scores = asked.ok("/prioritize", &args).await;
        let hosts = scores.as_array().unwrap().iter().map(|score| score["Host"].as_str().unwrap());
        let mut hosts: Vec<&str> = hosts.collect();
        hosts.sort_unstable();
        assert_eq!(hosts, sent, "{scores}");
    }
}

#[tokio::test]
async fn a_score_is_a_whole_number_from_0_to_10() {
    let asked = Asked::rebuilt();
    for cpu in ["0", "1m", "1", "7999m", "8", "9", "10E", "many"] {
        let args = json!({"Pod": pod("a", cpu), "NodeNames": ["n1", "n2", "n3"]});
        for score in asked.ok("/prioritize", &args).await.as_array().unwrap() {
            assert!(score["Score"].as_u64().is_some_and(|score| score <= 10), "{cpu}: {score}");
        }
    }
    let args = json!({"Pod": pod("a", "1"), "NodeNames": ["n1", "n2"]});
    let answer = asked.ok("/prioritize", &args).await;
    let better = answer[0]["Score"].as_u64() > answer[1]["Score"].as_u64();
    assert!(better, "the larger node leaves a larger part free: {answer}");
}

#[tokio::test]
async fn a_pod_that_is_too_large_for_any_quantity_fits_nowhere() {
    let args = json!({"Pod": pod("a", "10E"), "NodeNames": ["n1", "n2"]});
    let answer = Asked::rebuilt().ok("/filter", &args).await;
    assert_eq!(answer["NodeNames"], json!([]));
    let why = "too little cpu is free: 9223372036854775807m asked";
    assert_eq!(answer["FailedNodes"]["n1"], why);
}

#[tokio::test]
async fn what_a_vm_was_granted_is_room_for_no_pod_until_it_is_given_back() {
    let asked = Asked::rebuilt();
    asked.bound_vm("grown", "n1");
    let args = json!({"Pod": pod("a", "1"), "NodeNames": ["n1"]});
    let fits = async || asked.ok("/filter", &args).await["NodeNames"] == json!(["n1"]);
    assert_eq!(asked.permit("grown", None, 1).await, 1);
    assert!(fits().await);
    assert_eq!(asked.permit("grown", Some(1), 8).await, 8);
    assert!(!fits().await, "the VM grew");
    assert_eq!(asked.permit("grown", Some(8), 7).await, 7);
    assert!(!fits().await, "its agent may not have heard the answer");
    assert_eq!(asked.permit("grown", Some(7), 7).await, 7);
    assert!(fits().await, "it gave room back");
}

#[tokio::test]
async fn keys_are_read_in_any_case() {
    let asked = Asked::rebuilt();
    for (pod_key, names) in [("Pod", "NodeNames"), ("pod", "nodenames"), ("POD", "NODENAMES")] {
        let args = json!({pod_key: pod("a", "1"), names: ["n1"], "later": {"a": [1]}});
        assert_eq!(asked.ok("/filter", &args).await["NodeNames"], json!(["n1"]), "{pod_key}");
        assert_eq!(asked.ok("/prioritize", &args).await[0]["Host"], "n1", "{pod_key}");
    }
    let args = json!({"podname": "a", "podNamespace": "tenants", "poduid": "u", "NODE": "n1"});
    let answer = asked.ok("/bind", &args).await;
    assert!(answer["Error"].as_str().unwrap().contains("did not answer"), "read: {answer}");
}

#[tokio::test]
async fn whole_nodes_are_answered_and_logged_once() {
    let (asked, log) = (Asked::rebuilt(), Log::kept());
    let node =
        |name: &str| json!({"metadata": {"name": name}, "status": {"capacity": {"cpu": "9"}}});
    let nodes = json!({"metadata": {}, "items": [node("n1"), node("n2")]});
    let args = json!({"Pod": pod("a", "4"), "Nodes": nodes, "NodeNames": null});
    for _ in 0..3 {
        let answer = asked.clone().ok("/filter", &args).await;
        assert_eq!(answer["Nodes"]["items"], json!([{"metadata": {"name": "n1"}}]), "{answer}");
        assert_eq!(answer["NodeNames"], json!(["n1"]), "{answer}");
        assert_eq!(asked.ok("/prioritize", &args).await.as_array().unwrap().len(), 2);
    }
    let said = "WARN the scheduler sends whole nodes, which is slow: nodeCacheCapable is not true";
    assert_eq!(log.count(said), 1);
}

#[tokio::test]
async fn victims_are_judged_in_both_forms() {
    let asked = Asked::rebuilt();
    // 6 of 8 are taken by a pod of 4 and one of 2.
    asked.bound("large", "4", "n1");
    asked.bound("small", "2", "n1");
    let whole = |uid: &str| json!({"metadata": {"name": "x", "uid": uid}, "spec": {}});
    let meta = |uid: &str| json!({"UID": uid});
    let node = |pods: Value| json!({"Pods": pods, "NumPDBViolations": 1});
    for (key, form) in
        [("NodeNameToVictims", &whole as &dyn Fn(&str) -> Value), ("NodeNameToMetaVictims", &meta)]
    {
        for (victims, helps) in [
            (json!([form("uid of large")]), true),
            (json!([form("uid of small")]), false),
            (json!([form("uid of large"), form("uid of small")]), true),
            (json!([form("uid of another")]), false),
            (json!([]), false),
            (json!(null), false),
        ] {
            let args = json!({
                "Pod": pod("a", "5"), key: {"n1": node(victims.clone()), "n3": node(victims.clone())},
            });
            let uids = victims.as_array().into_iter().flatten();
            let uid = |pod: &Value| {
                if key.contains("Meta") { &pod["UID"] } else { &pod["metadata"]["uid"] }.clone()
            };
            let evicted: Vec<Value> = uids.map(|pod| json!({"UID": uid(pod)})).collect();
            let expected = if helps { json!({"n1": node(json!(evicted))}) } else { json!({}) };
            let answer = asked.ok("/preempt", &args).await;
            assert_eq!(answer, json!({"NodeNameToMetaVictims": expected}), "{victims}");
        }
    }
    for none in [json!({}), json!(null)] {
        let args = json!({"Pod": pod("a", "5"), "NodeNameToMetaVictims": none});
        assert_eq!(asked.ok("/preempt", &args).await, json!({"NodeNameToMetaVictims": {}}));
    }
}

#[tokio::test]
async fn a_binding_with_an_empty_field_is_refused_by_its_name() {
    let asked = Asked::rebuilt();
    let full = json!({"PodName": "a", "PodNamespace": "tenants", "PodUID": "u", "Node": "n1"});
    for field in ["PodName", "PodNamespace", "PodUID", "Node"] {
        for empty in [json!(""), json!(null)] {
            let mut args = full.clone();
            args[field] = empty;
            let answer = asked.ok("/bind", &args).await;
            assert_eq!(answer, json!({"Error": format!("{field} is empty")}));
        }
    }
    assert_eq!(asked.ok("/bind", &json!({})).await, json!({"Error": "PodNamespace is empty"}));
}

/// A name becomes a part of a path at the API server. The one of these tests cannot be reached, and is not asked.
#[tokio::test]
async fn a_binding_of_a_name_that_no_pod_can_have_asks_no_api_server() {
    let asked = Asked::rebuilt();
    for name in
        ["../../../nodes/n1", "a?watch=true", "a/binding", "%2e%2e", "a b", "-a", "ä", "a\n"]
    {
        let args = json!({"PodName": name, "PodNamespace": "tenants", "PodUID": "u", "Node": "n1"});
        let gone = format!("pod tenants/{name} with uid u is gone");
        assert_eq!(asked.ok("/bind", &args).await, json!({"Error": gone}));
        let answer =
            asked.ok("/filter", &json!({"Pod": pod(name, "1"), "NodeNames": ["n1"]})).await;
        assert_eq!(answer["NodeNames"], json!(["n1"]), "filter is advice, whatever the name");
    }
}

#[tokio::test]
async fn an_unanswered_read_of_a_pod_is_an_error_that_reserves_nothing() {
    let asked = Asked::rebuilt();
    let args = json!({"PodName": "a", "PodNamespace": "tenants", "PodUID": "u", "Node": "n1"});
    let answer = asked.ok("/bind", &args).await;
    assert!(answer["Error"].as_str().unwrap().starts_with("the API server did not answer"));
    let args = json!({"Pod": pod("b", "8"), "NodeNames": ["n1"]});
    assert_eq!(asked.ok("/filter", &args).await["NodeNames"], json!(["n1"]));
}

#[tokio::test]
async fn what_is_no_request_is_refused_with_its_field() {
    let asked = Asked::rebuilt();
    let nameless = json!({"Pod": {"metadata": {}}, "NodeNames": ["n1"]}).to_string();
    let long = json!({"Pod": "x".repeat(10_000)}).to_string();
    for (path, body, words) in [
        ("/filter", "", "filter: EOF while parsing a value"),
        ("/filter", "no JSON", "filter: expected"),
        ("/filter", "[]", "filter: invalid type: sequence"),
        ("/filter", "null", "filter: invalid type: null"),
        ("/filter", "{}", "filter: Pod: is missing"),
        ("/filter", r#"{"Pod":{"metadata":{"name":"a"}}} {}"#, "filter: trailing characters"),
        ("/filter", r#"{"Pod":5}"#, "filter: Pod: invalid type: integer `5`"),
        (
            "/filter",
            r#"{"pod":{"metadata":{"name":7}}}"#,
            "filter: pod.metadata.name: invalid type",
        ),
        ("/filter", &nameless, "filter: Pod: metadata.name: is missing"),
        ("/filter", r#"{"NodeNames":"n1"}"#, "filter: NodeNames: invalid type: string \"n1\""),
        ("/filter", r#"{"NodeNames":["n1",3]}"#, "filter: NodeNames[1]: invalid type: integer `3`"),
        ("/filter", &long, "filter: Pod: invalid type: string"),
        ("/prioritize", r#"{"Nodes":[]}"#, "prioritize: Nodes: invalid "),
        ("/preempt", r#"{"NodeNameToVictims":[1]}"#, "preempt: NodeNameToVictims: invalid type"),
        ("/bind", r#"{"Node":["n1"]}"#, "bind: Node: invalid type: sequence"),
        ("/bind", "\u{0}", "bind: expected value"),
    ] {
        let (status, said) = asked.raw(Method::POST, path, body).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{path} {said}");
        assert!(said.starts_with(words), "{path}: {said}");
        assert!(said.len() < 400, "{said}");
    }
}

#[tokio::test]
async fn other_verbs_and_methods_are_refused() {
    let asked = Asked::rebuilt();
    let body = json!({"Pod": pod("a", "1"), "NodeNames": ["n1"]}).to_string();
    for path in ["/", "/score", "/filter/", "/filter/n1", "//filter", "/FILTER"] {
        let (status, said) = asked.raw(Method::POST, path, &body).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}");
        assert!(said.contains("must be /filter, /prioritize, /preempt or /bind"), "{said}");
    }
    for method in [Method::GET, Method::HEAD, Method::PUT, Method::DELETE] {
        let (status, _) = asked.raw(method, "/filter", &body).await;
        assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED);
    }
}
