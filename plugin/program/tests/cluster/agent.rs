//! The agent of one VM, as far as the plugin meets it: it asks for permits in the newest version of the wire.

use crate::plugin::Plugin;
use serde_json::{Value, json};
use windlass_testkit::http;

/// An agent of a VM. It says what it was last permitted, as ours does.
pub(crate) struct Agent<'a> {
    plugin: &'a Plugin,
    pod: Value,
    last: Option<Value>,
}

impl<'a> Agent<'a> {
    /// The agent of the VM that this pod is.
    pub(crate) fn new(plugin: &'a Plugin, namespace: &str, name: &str) -> Self {
        Self { plugin, pod: json!({"namespace": namespace, "name": name}), last: None }
    }

    /// The same, which knows what it was permitted before.
    pub(crate) fn knowing(self, last: Option<Value>) -> Self {
        Self { last, ..self }
    }

    /// What it was last permitted.
    pub(crate) fn last(&self) -> &Option<Value> {
        &self.last
    }

    /// Asks for this many vCPUs, and as many GiB; how many vCPUs are permitted.
    pub(crate) fn ask(&mut self, size: u64) -> u64 {
        let (status, body) = self.try_ask(size);
        assert_eq!(status, 200, "{body}");
        self.hear(&body)
    }

    /// The same, while other tasks of the test go on: the answer may wait for a kubelet of the test.
    pub(crate) async fn ask_beside(&mut self, size: u64) -> u64 {
        let (permits, request) = (self.plugin.permits.clone(), self.body(size));
        let ask = move || http::ask(&permits, "POST", "/", &request);
        let answer = tokio::task::spawn_blocking(ask).await.unwrap();
        assert_eq!(answer.status, 200, "{}", answer.body);
        self.hear(&answer.body)
    }

    fn hear(&mut self, body: &str) -> u64 {
        let permit = &serde_json::from_str::<Value>(body).unwrap()["permit"];
        self.last = Some(permit.clone());
        permit["vCPUs"].as_u64().unwrap()
    }

    /// The same; the answer as it came.
    pub(crate) fn try_ask(&self, size: u64) -> (u16, String) {
        let answer = http::ask(&self.plugin.permits, "POST", "/", &self.body(size));
        (answer.status, answer.body)
    }

    /// What it says to ask for this.
    pub(crate) fn body(&self, size: u64) -> String {
        request(&self.pod, size, &self.last)
    }
}

/// What an agent sends for the VM that this pod is.
pub(crate) fn request(pod: &Value, size: u64, last: &Option<Value>) -> String {
    json!({
        "protoVersion": 7,
        "pod": pod,
        "computeUnit": {"vCPUs": 1, "mem": "1Gi"},
        "resources": {"vCPUs": size, "mem": format!("{size}Gi")},
        "lastPermit": last,
        "metrics": {"loadAvg1M": 0.5},
    })
    .to_string()
}
