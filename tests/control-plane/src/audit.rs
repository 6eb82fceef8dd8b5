//! What an API server writes down of the requests that it gets from the programs of Windlass.
//!
//! A request counts once it is answered, and a watch once it begins.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use windlass_testkit::Folder;

/// The group of the accounts of Windlass, as its manifests make them.
const OF_WINDLASS: &str = "system:serviceaccounts:windlass";

/// The API server's log of requests, below the control plane's folder.
const LOG: &str = "audit.log";

/// A kind of request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Asked {
    /// The account, without its namespace.
    pub who: String,
    /// What is done: `get`, `patch`.
    pub verb: String,
    /// To what, with the subresource: `pods/status`.
    pub resource: String,
}

/// The flags by which an API server writes them down.
pub(crate) fn args(folder: &Folder) -> [String; 2] {
    // JSON is YAML.
    let policy = json!({
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [{"level": "Metadata", "userGroups": [OF_WINDLASS]}, {"level": "None"}],
    });
    let policy = folder.put("audit.json", policy.to_string());
    [
        format!("--audit-policy-file={}", policy.display()),
        format!("--audit-log-path={}", folder.at(LOG).display()),
    ]
}

/// How many requests of each kind are written down.
pub(crate) fn asked(folder: &Folder) -> BTreeMap<Asked, u64> {
    let mut asked = BTreeMap::new();
    for line in fs::read_to_string(folder.at(LOG)).unwrap_or_default().lines() {
        // The last line may be half written: it counts the next time.
        let Ok(event) = serde_json::from_str(line) else { continue };
        if let Some(kind) = Asked::in_event(&event) {
            *asked.entry(kind).or_default() += 1;
        }
    }
    asked
}

// === impl Asked ===

impl Asked {
    /// What an event of the log is of, if it counts.
    fn in_event(event: &Value) -> Option<Self> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let verb = text(&event["verb"]);
        let counts = if verb == "watch" { "ResponseStarted" } else { "ResponseComplete" };
        if event["stage"] != counts {
            return None;
        }
        let who = text(&event["user"]["username"]);
        let who = who.rsplit(':').next().unwrap_or_default().to_owned();
        let of = &event["objectRef"];
        let resource = match (of["resource"].as_str(), of["subresource"].as_str()) {
            (Some(resource), Some(part)) => format!("{resource}/{part}"),
            (Some(resource), None) => resource.to_owned(),
            (None, _) => text(&event["requestURI"]),
        };
        Some(Self { who, verb, resource })
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { who, verb, resource } = self;
        write!(f, "{who}: {verb} {resource}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_counts_once_and_a_watch_when_it_begins() {
        let folder = Folder::create().unwrap();
        let event = |verb: &str, stage: &str, of: Value| {
            json!({
                "verb": verb, "stage": stage, "objectRef": of, "requestURI": "/version",
                "user": {"username": "system:serviceaccount:windlass:windlass-agent"},
            })
        };
        let (pods, status) =
            (json!({"resource": "pods"}), json!({"resource": "pods", "subresource": "status"}));
        let events = [
            event("watch", "ResponseStarted", pods.clone()),
            event("watch", "ResponseComplete", pods),
            event("patch", "ResponseComplete", status.clone()),
            event("patch", "ResponseComplete", status),
            event("get", "ResponseComplete", Value::Null),
        ];
        let lines = events.map(|event| format!("{event}\n")).concat();
        folder.put(LOG, format!("{lines}{{\"verb\":"));
        let asked = asked(&folder).into_iter().map(|(kind, many)| format!("{many} {kind}"));
        assert_eq!(
            asked.collect::<Vec<_>>(),
            [
                "1 windlass-agent: get /version",
                "2 windlass-agent: patch pods/status",
                "1 windlass-agent: watch pods",
            ]
        );
    }
}
