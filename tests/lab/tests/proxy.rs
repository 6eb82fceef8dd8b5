//! The proxy before a real monitor: what is held, what goes on, what a dead client takes along.

#![expect(clippy::unwrap_used, reason = "tests")]

use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::timeout;
use windlass_lab::proxy::{Hold, Proxy};
use windlass_lab::{Guest, GuestSpec, Lab, Qmp, wait};

const LIMIT: Duration = Duration::from_secs(60);
const SIZE: u64 = 64 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn a_held_answer_belongs_to_a_command_that_was_carried_out() {
    let (guest, proxy) = guest_behind_proxy("answer").await;
    let client = Qmp::at(proxy.path());
    client.execute("query-status", json!({})).await.unwrap();

    proxy.hold(Hold::Answers(&["qom-set"]));
    let asked = client.execute("qom-set", request(SIZE));
    let released = async {
        proxy.until_held(0, LIMIT).await.unwrap();
        let device = guest.outside().await.unwrap().virtio_mem.unwrap();
        assert_eq!(device.requested, SIZE);
        assert_eq!(proxy.held(), 1);
        proxy.release();
    };
    let (answer, ()) = tokio::join!(asked, released);
    assert_eq!(answer.unwrap(), json!({}));
    let changes = proxy.changes();
    assert_eq!(changes.len(), 1, "a question changes nothing: {changes:?}");
    assert!(changes[0].text.contains(&SIZE.to_string()), "{changes:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_command_dies_with_its_client() {
    let (guest, proxy) = guest_behind_proxy("command").await;
    proxy.hold(Hold::Commands(&["qom-set"]));
    {
        let client = Qmp::at(proxy.path());
        let asked = client.execute("qom-set", request(SIZE));
        let until = proxy.until_held(0, LIMIT);
        tokio::select! {
            answer = asked => panic!("answered {answer:?}"),
            held = until => held.unwrap(),
        }
    }
    proxy.hang_up();

    let next = Qmp::at(proxy.path());
    let device = timeout(LIMIT, next.execute("query-memory-devices", json!({}))).await.unwrap();
    assert_eq!(device.unwrap()[0]["data"]["requested-size"], 0);
    assert_eq!(proxy.passed().get("qom-set"), None);
    assert_eq!(proxy.changes(), []);
    assert_eq!(proxy.passed().get("query-memory-devices"), Some(&1));
    assert_eq!(guest.outside().await.unwrap().upper_memory(), 256 << 20);
}

async fn guest_behind_proxy(name: &str) -> (Guest, Proxy) {
    let lab = Lab::prepared_without_informant().unwrap();
    let guest = Guest::start(&lab, GuestSpec::named(name)).unwrap();
    let monitor = async || guest.outside().await;
    wait::until("monitor", LIMIT, monitor, |outside| outside.vcpus == 1).await.unwrap();
    let path = guest.qmp().with_extension("proxy");
    let proxy = Proxy::start(&path, &guest.qmp()).unwrap();
    (guest, proxy)
}

fn request(bytes: u64) -> Value {
    json!({"path": "/machine/peripheral/vm0", "property": "requested-size", "value": bytes})
}
