//! The objects of NeonVM at the API server: as JSON, which plugins and agents read by their own code.

use crate::cluster::api::Api;
use crate::cluster::call::{Answer, Found, Told};
use serde_json::{Value, json};
use std::rc::Rc;
use windlass_protocol::annotations::CEILING;
use windlass_protocol::pod::{Ceiling, ENABLED};
use windlass_protocol::quantity::cpu_text;
use windlass_protocol::vm_object::{Machine, NODE, VmObject};
use windlass_protocol::{Bounds, Resources, VmInfo, VmName};

/// An object as it was stored.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    json: Value,
    pub(crate) shown: Rc<Shown>,
}

/// An object as it is read.
#[derive(Debug)]
pub(crate) struct Shown {
    /// By the agent of a node.
    pub(crate) machine: Machine,
    /// By a plugin.
    pub(crate) object: VmObject,
    /// The node that it is labelled with, and was before its last change.
    pub(crate) label: Option<String>,
    pub(crate) was: Option<String>,
}

/// What the status of an object says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Status<'a> {
    pub(crate) phase: &'static str,
    pub(crate) pod: Option<&'a VmName>,
    pub(crate) node: Option<&'a str>,
    /// What the VM has; `None`: its status says nothing.
    pub(crate) has: Option<Resources>,
}

// === impl Api ===

impl Api {
    /// An object is made, unless its name is taken. It asks for `used` from the start.
    pub(crate) fn create_vm(&mut self, name: &VmName, used: Resources, bounds: Bounds) -> bool {
        if self.vms.contains_key(name) {
            return false;
        }
        let uid = self.new_uid();
        let figures = |of: fn(Resources) -> Value| json!({"min": of(bounds.min), "max": of(bounds.max), "use": of(used)});
        let json = json!({
            "metadata": {
                "namespace": name.namespace, "name": name.name, "uid": uid, "generation": 1,
                "labels": {ENABLED: "true"}, "annotations": {},
            },
            "spec": {"guest": {
                "cpus": figures(|it| json!(cpu_text(it.cpu))),
                "memorySlotSize": "128Mi",
                "memorySlots": figures(|it| json!(it.mem.whole(VmInfo::DEFAULT_MEMORY_SLOT))),
            }},
            "status": {"phase": "Pending"},
        });
        self.store_vm(name, json, None);
        true
    }

    /// An object is gone.
    pub(crate) fn remove_vm(&mut self, name: &VmName) {
        if let Some(Stored { shown, .. }) = self.vms.remove(name) {
            self.note(|_| Told::ObjectGone(shown));
        }
    }

    /// An object with this uid.
    pub(crate) fn vm(&self, name: &VmName, uid: &str) -> Option<&Rc<Shown>> {
        let shown = self.vms.get(name).map(|stored| &stored.shown);
        shown.filter(|shown| shown.machine.uid == uid)
    }

    /// NeonVM's controller says how a VM is.
    pub(crate) fn put_status(&mut self, name: &VmName, status: Status<'_>) {
        let Status { phase, pod, node, has } = status;
        let mut said = json!({"phase": phase});
        if let Some(pod) = pod {
            said["podName"] = json!(pod.name);
        }
        if let Some(node) = node {
            (said["node"], said["podIP"]) = (json!(node), json!("10.1.0.1"));
        }
        if let Some(has) = has {
            said["cpus"] = json!(cpu_text(has.cpu));
            said["memorySize"] = json!(format!("{}Mi", has.mem.mib()));
        }
        self.change_vm(name, |json| json["status"] = said);
    }

    /// A person takes the label of a node away.
    pub(crate) fn unlabel(&mut self, name: &VmName) {
        self.change_vm(name, |json| {
            if let Some(labels) = json["metadata"]["labels"].as_object_mut() {
                labels.remove(NODE);
            }
        });
    }

    /// An agent labels an object with this uid.
    pub(crate) fn label(&mut self, name: &VmName, uid: &str, label: &str) -> Answer {
        match self.vms.get(name) {
            None => Answer::Status(404),
            Some(stored) if stored.shown.machine.uid != uid => Answer::Status(409),
            Some(_) => {
                self.change_vm(name, |json| json["metadata"]["labels"][NODE] = json!(label));
                self.answer_vm(name)
            }
        }
    }

    /// A JSON patch: all of it, or nothing where a test fails.
    pub(crate) fn patch(&mut self, name: &VmName, patch: &Value) -> Answer {
        let Some(stored) = self.vms.get(name) else { return Answer::Status(404) };
        let mut next = stored.json.clone();
        for op in patch.as_array().into_iter().flatten() {
            let path = op["path"].as_str().unwrap_or_default();
            if op["op"] == "test" {
                if next.pointer(path) != Some(&op["value"]) {
                    return Answer::Status(422);
                }
            } else if let Some((of, field)) = path.rsplit_once('/')
                && let Some(object) = next.pointer_mut(of)
            {
                object[field] = op["value"].clone();
            }
        }
        self.change_vm(name, |json| *json = next);
        self.answer_vm(name)
    }

    /// A plugin records a ceiling on an object.
    pub(crate) fn record_on(
        &mut self,
        name: &VmName,
        uid: &str,
        found: &Found,
        next: Ceiling,
    ) -> Answer {
        let Some(stored) = self.vms.get(name) else { return Answer::Status(404) };
        let shown = &stored.shown;
        let is_met = match found {
            Found::Ceiling(ceiling) => shown.object.ceiling == Some(*ceiling),
            Found::Absent(revision) => shown.object.revision == *revision,
        };
        if shown.machine.uid != uid || !is_met {
            return Answer::Status(422);
        }
        self.change_vm(name, |json| {
            json["metadata"]["annotations"][CEILING] = json!(next.encode());
        });
        Answer::Done
    }

    /// An object is changed. A spec that differs has another generation.
    fn change_vm(&mut self, name: &VmName, change: impl FnOnce(&mut Value)) {
        let Some(stored) = self.vms.get(name) else { return };
        let (mut json, was) = (stored.json.clone(), stored.shown.label.clone());
        change(&mut json);
        if json == stored.json {
            return;
        }
        if json["spec"] != stored.json["spec"] {
            json["metadata"]["generation"] = json!(stored.shown.machine.generation + 1);
        }
        self.store_vm(name, json, was);
    }

    fn answer_vm(&self, name: &VmName) -> Answer {
        Answer::Object(self.vms.get(name).map(|stored| Rc::clone(&stored.shown)))
    }

    fn store_vm(&mut self, name: &VmName, mut json: Value, was: Option<String>) {
        let mut shown = None;
        self.note(|revision| {
            json["metadata"]["resourceVersion"] = json!(revision.to_string());
            let read = Rc::new(Shown::of(&json, was));
            shown = Some(Rc::clone(&read));
            Told::Object(read)
        });
        if let Some(shown) = shown {
            self.vms.insert(name.clone(), Stored { json, shown });
        }
    }
}

// === impl Shown ===

impl Shown {
    fn of(json: &Value, was: Option<String>) -> Self {
        let label = json["metadata"]["labels"][NODE].as_str().map(str::to_owned);
        let machine = serde_json::from_value(json.clone()).expect("the object has a name");
        let object = serde_json::from_value(json.clone()).expect("the object has a name");
        Self { machine, object, label, was }
    }
}
