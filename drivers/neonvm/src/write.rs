//! How the one write is sent.

use http::Request;
use http::header::CONTENT_TYPE;
use kube::Client;
use windlass_drivers_neonvm_core::{Change, DEADLINE, WRITTEN_WITHIN, patch};
use windlass_kit_kubernetes::objects::{Read, WholeMachineObject};
use windlass_kit_kubernetes::{Failure, answered_within};
use windlass_protocol::vm_object::Machine;

/// Changes what the spec of a VM asks for, if it still is as it was looked at; the generation after that.
pub(crate) async fn write(
    client: &Client,
    machine: &Machine,
    change: Change,
) -> Result<i64, Failure> {
    let request = request(machine, change);
    let request = request.map_err(|error| Failure::Refused(error.to_string()))?;
    let sent = client.request::<WholeMachineObject>(request);
    Ok(answered_within(WRITTEN_WITHIN, sent).await?.kept().generation)
}

fn request(machine: &Machine, change: Change) -> Result<Request<Vec<u8>>, http::Error> {
    let (namespace, name) = (&machine.name.namespace, &machine.name.name);
    let at = format!("/apis/vm.neon.tech/v1/namespaces/{namespace}/virtualmachines/{name}");
    Request::patch(format!("{at}?timeout={}s", DEADLINE.as_secs()))
        .header(CONTENT_TYPE, "application/json-patch+json")
        .body(patch(machine, change).to_string().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use windlass_protocol::MilliCpu;

    #[test]
    fn a_write_tests_which_object_and_which_spec_it_changes() {
        let machine: Machine = serde_json::from_value(json!({
            "metadata": {"namespace": "db", "name": "a", "uid": "u", "generation": 7},
            "status": {"podName": "a-1"},
        }))
        .unwrap();
        let sent = request(&machine, Change::Cpu(MilliCpu::from_milli(1250))).unwrap();
        assert_eq!(sent.uri(), "/apis/vm.neon.tech/v1/namespaces/db/virtualmachines/a?timeout=1s");
        assert_eq!(sent.headers()[CONTENT_TYPE], "application/json-patch+json");
        let patch: Value = serde_json::from_slice(sent.body()).unwrap();
        assert_eq!(
            patch,
            json!([
                {"op": "test", "path": "/metadata/uid", "value": "u"},
                {"op": "test", "path": "/metadata/generation", "value": 7},
                {"op": "test", "path": "/status/podName", "value": "a-1"},
                {"op": "add", "path": "/spec/guest/cpus/use", "value": "1250m"},
            ])
        );
        let slots = super::patch(&machine, Change::Slots(3));
        assert_eq!(
            slots[3],
            json!({"op": "add", "path": "/spec/guest/memorySlots/use", "value": 3})
        );
    }
}
