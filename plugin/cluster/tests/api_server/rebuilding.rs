//! Law 9 at a real API server: books that are rebuilt from its objects cover those that were lost until agents speak, and equal
//! them after each agent's next request, over random histories.
//!
//! The histories are played at the same time: each has a node of its own, groups of them a namespace and a plugin. They have a control
//! plane of their own, so that their thousand pods slow down no other test.

use crate::plugin::{Plugin, bounds, units};
use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream::iter;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use windlass_control_plane::ControlPlane;
use windlass_plugin_cluster::{Epoch, Leadership};
use windlass_protocol::timing::{LONGEST_ACT, REQUEST_IS_LATE};
use windlass_protocol::{Resources, VmName};
use windlass_testkit::wait;

/// As many namespaces.
const GROUPS: u64 = 5;
/// As many histories in each.
const HISTORIES: u64 = 40;
/// So many of them are played at the same time.
const AT_ONCE: usize = 8;

#[tokio::test]
async fn rebuild_equals_live_over_200_histories_at_a_real_api_server() {
    let plane = ControlPlane::start().await;
    plane.apply(Path::new("../../deploy/kustomize/plugin")).await;
    let grown = join_all((0..GROUPS).map(|group| play_group(&plane, group))).await;
    let grown: usize = grown.into_iter().sum();
    assert!(grown > 100, "{grown} VMs have grown");
}

/// The books of a group's nodes: of each its room, what others take of it, and what is reserved for each VM. Claims and
/// journals are no part of what is rebuilt.
type Books = BTreeMap<String, (Resources, Resources, usize, BTreeMap<VmName, Resources>)>;

/// What a history has left.
struct History {
    /// The VMs that count, and what their agents were permitted last.
    vms: BTreeMap<String, Option<Value>>,
    grown: usize,
}

/// A plugin that leads is lost after the histories of a group, and another one starts. How many VMs had grown.
async fn play_group(plane: &ControlPlane, group: u64) -> usize {
    let (mut namespace, mut histories, mut lost) = (String::new(), Vec::new(), Books::new());
    Plugin::beside(plane, async |plugin| {
        plugin.space.name().clone_into(&mut namespace);
        let played = (0..HISTORIES).map(|nth| play(plugin, group * HISTORIES + nth));
        histories = iter(played).buffer_unordered(AT_ONCE).collect().await;
        // No request that was sent before can be under way.
        tokio::time::sleep(REQUEST_IS_LATE + LONGEST_ACT + Duration::from_millis(100)).await;
        speak(plugin, &namespace, &mut histories).await;
        speak(plugin, &namespace, &mut histories).await;
        catch_up(plugin).await;
        lost = books(plugin, &namespace);
    })
    .await;
    Plugin::led_by(plane, Leadership::sole(Epoch(2)), async |plugin| {
        plugin.answers().await;
        let rebuilt = books(plugin, &namespace);
        for (node, (.., vms)) in &lost {
            for (vm, reserved) in vms {
                let covers = rebuilt[node].3[vm].covers(*reserved);
                assert!(covers, "{vm}: {reserved} was lost, {} is rebuilt", rebuilt[node].3[vm]);
            }
        }
        speak(plugin, &namespace, &mut histories).await;
        assert_eq!(books(plugin, &namespace), lost);
    })
    .await;
    histories.iter().map(|history| history.grown).sum()
}

/// Each agent says once more what it was permitted, or that its VM has one vCPU.
async fn speak(plugin: &Plugin<'_>, namespace: &str, histories: &mut [History]) {
    for history in histories {
        let asks = history.vms.iter_mut().map(|(vm, last)| async move {
            let said = last.clone().unwrap_or_else(|| units(1));
            let permit = plugin.permit_of(namespace, vm, last.take(), said.clone()).await;
            assert_eq!(permit, Some(said), "{vm} keeps what it was permitted");
            *last = permit;
        });
        join_all(asks).await;
    }
}

/// Waits until the watch has told of all that was done before.
async fn catch_up(plugin: &Plugin<'_>) {
    let node = plugin.space.node("last", "1", "1Gi").await;
    make(plugin, "last", json!({}), json!({"nodeName": node})).await;
    let has_come = async || {
        let books = books(plugin, plugin.space.name());
        books.get(&node).is_some_and(|(_, _, pods, _)| *pods == 1)
    };
    wait::until_async("the books have the last pod", has_come).await;
}

fn books(plugin: &Plugin<'_>, namespace: &str) -> Books {
    let dump = plugin.books.dump();
    let ours =
        dump.nodes.into_iter().filter(|node| node.name.starts_with(&format!("{namespace}-")));
    let mut books: Books = ours
        .map(|node| (node.name, (node.room, node.others, node.pods, BTreeMap::new())))
        .collect();
    for vm in dump.vms.into_iter().flat_map(|node| node.vms) {
        if vm.name.namespace == namespace {
            let history = vm.name.name.split('-').next().unwrap();
            let node = books.get_mut(&format!("{namespace}-{history}")).unwrap();
            node.3.insert(vm.name, vm.reserved);
        }
    }
    books
}

/// A node, and what happens to its pods.
async fn play(plugin: &Plugin<'_>, seed: u64) -> History {
    let mut chance = Chance(seed);
    let (name, size) = (format!("h{seed}"), 4 + chance.below(6));
    let node = plugin.space.node(&name, &size.to_string(), &format!("{size}Gi")).await;
    let mut history = History { vms: BTreeMap::new(), grown: 0 };
    for nth in 0..7 + chance.below(8) {
        let pod = format!("{name}-{nth}");
        let some = history.vms.keys().nth(usize::try_from(chance.below(4)).unwrap()).cloned();
        match (chance.below(10), some) {
            (0..=3, _) => {
                if place(plugin, &pod, &node, &mut chance).await {
                    history.vms.insert(pod, None);
                }
            }
            (4, _) => {
                make(plugin, &pod, json!({}), json!({"nodeName": node})).await;
            }
            (5..=7, Some(vm)) => {
                let last = history.vms[&vm].clone();
                let before = last.as_ref().map_or(1, vcpus);
                let permit = ask(plugin, &vm, last, 1 + chance.below(4)).await;
                history.grown += usize::from(vcpus(&permit) > before);
                history.vms.insert(vm, Some(permit));
            }
            (8, Some(vm)) => {
                // Nobody ends its containers: it stays, and counts.
                let grace =
                    DeleteParams { grace_period_seconds: Some(600), ..DeleteParams::default() };
                let pods = plugin.space.pods();
                pods.delete(&vm, &grace).await.unwrap();
                // An API server whose cache does not show yet that the pod is bound gives it no time: it is gone at once.
                if pods.get_opt(&vm).await.unwrap().is_none() {
                    history.vms.remove(&vm);
                }
            }
            (9, Some(vm)) if chance.below(2) == 0 => {
                plugin.delete(&vm).await;
                history.vms.remove(&vm);
            }
            (9, Some(vm)) => {
                let ended = Patch::Merge(json!({"status": {"phase": "Failed"}}));
                let params = PatchParams::default();
                plugin.space.pods().patch_status(&vm, &params, &ended).await.unwrap();
                history.vms.remove(&vm);
            }
            (5.., _) => {}
        }
    }
    history
}

/// Makes a VM pod of some kind, and has it bound, by the plugin or past it. Whether the node had room for it.
async fn place(plugin: &Plugin<'_>, name: &str, node: &str, chance: &mut Chance) -> bool {
    let label = if chance.below(5) == 0 {
        json!({"vm.neon.tech/name": name})
    } else {
        json!({"windlass.dev/enabled": "true"})
    };
    let bounds = match chance.below(5) {
        0 => "none that anybody could read".to_owned(),
        most => bounds(most),
    };
    let annotations = json!({"windlass.dev/bounds": bounds});
    let metadata = json!({"labels": label, "annotations": annotations});
    let more = match chance.below(4) {
        0 => json!({"initContainers": [container("init", 2, None)]}),
        1 => json!({"initContainers": [container("sidecar", 1, Some("Always"))]}),
        _ => json!({}),
    };
    if chance.below(6) == 0 {
        let mut more = more;
        more["nodeName"] = json!(node);
        make(plugin, name, metadata, more).await;
        return true;
    }
    let pod = make(plugin, name, metadata, more).await;
    loop {
        let error = plugin.bind(&pod, node).await;
        if error.is_empty() {
            return true;
        }
        if !error.contains("not known to the plugin yet") {
            assert!(error.contains("asked"), "{error}");
            return false;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The agent of a VM asks, once the plugin knows the pod.
async fn ask(plugin: &Plugin<'_>, vm: &str, last: Option<Value>, size: u64) -> Value {
    let mut permit = None;
    wait::until_async("the plugin knows the VM", async || {
        let name = plugin.space.name();
        permit = plugin.permit_of(name, vm, last.clone(), units(size)).await;
        permit.is_some()
    })
    .await;
    permit.unwrap()
}

fn vcpus(permit: &Value) -> u64 {
    permit["vCPUs"].as_u64().unwrap()
}

async fn make(plugin: &Plugin<'_>, name: &str, mut metadata: Value, more: Value) -> Pod {
    metadata["name"] = json!(name);
    let mut spec = more;
    spec["containers"] = json!([container("main", 1, None)]);
    spec["schedulerName"] = json!("none");
    let pod = serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap();
    plugin.space.pods().create(&PostParams::default(), &pod).await.unwrap()
}

fn container(name: &str, units: u64, restarts: Option<&str>) -> Value {
    let requests = json!({"cpu": units.to_string(), "memory": format!("{units}Gi")});
    let mut container = json!({"name": name, "image": "none", "resources": {"requests": requests}});
    if let Some(restarts) = restarts {
        container["restartPolicy"] = json!(restarts);
    }
    container
}

/// A generator of numbers (splitmix64).
struct Chance(u64);

impl Chance {
    fn below(&mut self, many: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % many
    }
}
