//! The gauges of nodes that have a watermark.

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use windlass_kit::clock::Clock;
use windlass_plugin_cluster::books::Terms;
use windlass_plugin_cluster::metrics::Counts;
use windlass_plugin_cluster::{ClusterBooks, Epoch, Leadership};
use windlass_plugin_core::pods::{Mode, Pool, Pools};
use windlass_protocol::{Resources, UnitChoice};

#[test]
fn a_node_with_a_watermark_tells_it_and_the_pressure() {
    let labels = [("kind".to_owned(), "left".to_owned())].into();
    let (name, mode) = ("left".to_owned(), Mode::Dedicated);
    let pool = Pool { name, labels, mode, watermark: Some(500) };
    let pools = Pools { pools: vec![pool], ..Pools::default() };
    let terms = Terms { unit: UnitChoice::default().usual(), reserve: Resources::ZERO, pools };
    let books = ClusterBooks::new(terms, Clock::system(), Leadership::sole(Epoch(1)));
    let mut registry = Registry::default();
    Counts::default().register(&books, &mut registry);
    let node = |name: &str, kind: &str| {
        let allocatable = json!({"cpu": "4", "memory": "8Gi"});
        let metadata = json!({"name": name, "labels": {"kind": kind}});
        let node = json!({"metadata": metadata, "status": {"allocatable": allocatable}});
        serde_json::from_value(node).unwrap()
    };
    books.nodes_listed(vec![node("a", "left"), node("b", "kept")]);
    let pod = json!({
        "metadata": {"name": "p", "namespace": "d", "uid": "u", "resourceVersion": "1"},
        "spec": {"nodeName": "a", "containers": [
            {"name": "c", "resources": {"requests": {"cpu": "3", "memory": "2Gi"}}},
        ]},
    });
    books.pods_listed(vec![serde_json::from_value(pod).unwrap()]);
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    let is_told = |line: &&str| line.contains("watermark") || line.contains("pressure");
    let lines: Vec<&str> =
        text.lines().filter(|line| !line.starts_with('#')).filter(is_told).collect();
    assert_eq!(
        lines,
        [
            "windlass_plugin_watermark_milli_cpu{node=\"a\"} 2000",
            "windlass_plugin_watermark_bytes{node=\"a\"} 4294967296",
            "windlass_plugin_pressure_milli_cpu{node=\"a\"} 1000",
            "windlass_plugin_pressure_bytes{node=\"a\"} 0",
        ]
    );
    let nodes = serde_json::to_value(books.dump()).unwrap()["nodes"].clone();
    let told = |nth: usize| (nodes[nth]["watermark"].clone(), nodes[nth]["pressure"].clone());
    let size = |cpu: u64, mem: u64| json!({"cpu": cpu, "mem": mem});
    assert_eq!(told(0), (size(2000, 4 << 30), size(1000, 0)));
    assert_eq!(told(1), (Value::Null, Value::Null));
}
