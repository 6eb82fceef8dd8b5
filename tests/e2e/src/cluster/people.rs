//! What people are told of a VM: by `windlass explain`, by the condition of its pod, and by events of its object.

use super::{Cluster, LIMIT, parts};
use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Event, PodCondition};
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use serde_json::Value;
use std::process::Command;
use windlass_control_plane::space::condition;
use windlass_protocol::vm_view::{CONDITION, Scaling, Status};

/// The name in the plugin's certificate.
const NAMED: &str = "windlass-plugin.windlass.svc";

/// What a command said, and how it ended.
#[derive(Clone, Debug)]
pub struct Said {
    /// Its exit code.
    pub code: Option<i32>,
    /// What it printed for people to read.
    pub out: String,
    /// What it complained of.
    pub err: String,
}

/// The sentence of one reason, in each place.
#[derive(Clone, Debug)]
pub struct Sentences {
    /// The line of `windlass explain`.
    pub explained: String,
    /// The message of the condition.
    pub condition: String,
    /// That of the event.
    pub event: String,
}

// === impl Cluster ===

impl Cluster {
    /// What `windlass explain` says of a VM to a person who may get the pods of the test.
    ///
    /// # Errors
    /// It cannot be started.
    pub async fn explain(&self, vm: &str) -> Result<Said> {
        let permits = self.plugin.permits.context("the plugin says where it serves permits")?;
        let file = |name: &str| self.folder.path().join(name);
        let mut command = Command::new(&self.windlass);
        command.args(["explain", &format!("{}/{vm}", self.space.name())]);
        command.args(["--server", &format!("https://{permits}"), "--tls-server-name", NAMED]);
        command.arg("--ca").arg(file(parts::CA)).arg("--token").arg(file(parts::TOKEN));
        let output = tokio::task::spawn_blocking(move || command.output()).await??;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        Ok(Said { code: output.status.code(), out, err })
    }

    /// Where the plugin answers, as `explain` is told it.
    pub fn server(&self) -> String {
        self.plugin.permits.map_or_else(String::new, |permits| format!("https://{permits}"))
    }

    /// Looks until `windlass explain` gives this reason; the line with it.
    ///
    /// # Errors
    /// It does not, in time.
    pub async fn until_explained(&self, vm: &str, reason: Scaling) -> Result<String> {
        let (marks, follows) = (format!(" ({reason}): "), follows(reason.status()));
        let what = format!("{vm}: explain says {reason}");
        let line = async || {
            let said = self.explain(vm).await?;
            let line = said.out.lines().find(|line| line.contains(&marks));
            Ok(line.map(str::to_owned).ok_or_else(|| format!("{said:?}")))
        };
        let line = self.until_there(&what, LIMIT, line).await?;
        ensure!(line.starts_with(follows), "it is to say {follows:?}: {line}");
        eprintln!("            {line}");
        Ok(line)
    }

    /// Looks until the condition of a VM's pod has this reason; its message.
    ///
    /// # Errors
    /// It has not, in time.
    pub async fn until_condition(&self, vm: &str, reason: Scaling) -> Result<String> {
        let word = reason.to_string();
        let shown = async || {
            let shown = self.condition(vm).await?;
            let is_it = |shown: &&PodCondition| shown.reason.as_ref() == Some(&word);
            Ok(shown.as_ref().filter(is_it).cloned().ok_or_else(|| format!("{shown:?}")))
        };
        let what = format!("{vm}: the condition says {reason}");
        let shown = self.until_there(&what, LIMIT, shown).await?;
        let status = reason.status().to_string();
        ensure!(shown.status == status, "it is to be {status}: {shown:?}");
        shown.message.context("a condition has a message")
    }

    /// The condition of a VM's pod, if it has one.
    ///
    /// # Errors
    /// The VM has no pod.
    pub async fn condition(&self, vm: &str) -> Result<Option<PodCondition>> {
        let object = self.machines().get(vm).await?;
        let pod = object.data["status"]["podName"].as_str().context("the VM has a pod")?;
        Ok(condition(&self.space.pods().get(pod).await?, CONDITION).cloned())
    }

    /// Looks until a VM's object has an event of this reason; its message.
    ///
    /// # Errors
    /// It has none, in time.
    pub async fn until_event(&self, vm: &str, reason: Scaling) -> Result<String> {
        let uid = self.machines().get(vm).await?.uid();
        let events: Api<Event> = Api::namespaced(self.space.client().clone(), self.space.name());
        let word = reason.to_string();
        let found = async || {
            let events = events.list(&ListParams::default()).await?.items;
            let of_vm = |event: &&Event| event.involved_object.uid == uid;
            let of_vm: Vec<&Event> = events.iter().filter(of_vm).collect();
            let found = of_vm.iter().rfind(|event| event.reason.as_ref() == Some(&word));
            Ok(found.map(|event| (*event).clone()).ok_or_else(|| format!("{of_vm:?}")))
        };
        let what = format!("{vm}: an event says {reason}");
        let found = self.until_there(&what, LIMIT, found).await?;
        found.message.context("an event has a message")
    }

    /// Looks until `windlass explain`, the condition of the VM's pod and an event of its object give this reason.
    ///
    /// # Errors
    /// One of them does not, in time.
    pub async fn until_told(&self, vm: &str, reason: Scaling) -> Result<Sentences> {
        let explained = self.until_explained(vm, reason).await?;
        let condition = self.until_condition(vm, reason).await?;
        let event = self.until_event(vm, reason).await?;
        Ok(Sentences { explained, condition, event })
    }

    /// The pods in the books of the plugin.
    ///
    /// # Errors
    /// It does not show them.
    pub async fn booked(&self) -> Result<Vec<String>> {
        let dump = crate::http::dump(self.plugin.dump_state).await?;
        let nodes = dump["windlass"]["vms"].as_array().context("the plugin shows its books")?;
        let vms = nodes.iter().flat_map(|node| node["vms"].as_array().into_iter().flatten());
        let name = |vm: &Value| vm["name"]["name"].as_str().map(str::to_owned);
        vms.map(|vm| name(vm).with_context(|| vm.to_string())).collect()
    }

    /// Looks until the plugin's books have no pod of a VM of this name.
    ///
    /// # Errors
    /// They have, for too long.
    pub async fn until_not_booked(&self, vm: &str) -> Result<()> {
        let of_vm = format!("{vm}-");
        let gone = async || {
            let booked = self.booked().await?;
            let is_there = booked.iter().any(|pod| pod.starts_with(&of_vm));
            Ok(if is_there { Err(format!("{booked:?}")) } else { Ok(()) })
        };
        self.until_there(&format!("{vm}: its room is free"), LIMIT, gone).await
    }
}

/// How `windlass explain` begins.
const fn follows(status: Status) -> &'static str {
    match status {
        Status::True => "It follows its load",
        Status::False => "It does not follow its load",
        Status::Unknown => "Nothing tells whether it follows its load",
    }
}
