//! The state as the reference's plugin dumps it, and what it has no place for beside that.
//!
//! The reference prints addresses so that one can see what is the same; here names stand there.
//! Memory is in slots of `memBlockSize`, that of a VM in its own.

use crate::directory::NodeEntry;
use crate::figures::{FIELDS, Figures, Vm, pressure};
use crate::plugin::Plugin;
use serde_json::{Value, json};
use std::sync::Arc;
use windlass_plugin_config::config::{PluginConfig, Rule};
use windlass_plugin_config::lists::ListedVm;
use windlass_protocol::{Bytes, Resources, VmName, quantity};

/// The state at this moment; `stopped` while the program ends.
pub fn dump(plugin: &Plugin, stopped: bool) -> Value {
    let directory = plugin.directory();
    let (config, nodes) = (&directory.config, Figures::of_all(&directory));
    let keyed = nodes.iter().map(|(name, entry, figures)| {
        json!({ "key": name, "value": node(name, entry, figures, config.slot) })
    });
    let pods = nodes.iter().flat_map(|(_, entry, _)| entry.vms.keys());
    let pod = |vm: &Arc<VmName>| json!({ "obj": vm.to_string(), "podName": names(vm) });
    let rooms = directory.cluster.nodes().values().map(NodeEntry::room);
    let most = rooms.fold(Resources::ZERO, Resources::max);
    let ours = nodes.iter().map(|(name, entry, _)| {
        let books = serde_json::to_value(entry.books.dump()).unwrap_or(Value::Null);
        ((*name).to_owned(), books)
    });
    json!({
        "stopped": stopped,
        "buildInfo": {
            "gitInfo": concat!("windlass-v", env!("CARGO_PKG_VERSION")),
            "goVersion": "",
        },
        "state": {
            "ongoingMigrationDeletions": [],
            "nodes": keyed.collect::<Vec<_>>(),
            "vmPods": pods.map(pod).collect::<Vec<_>>(),
            "otherPods": [],
            "maxTotalReservableCPU": cpu(most.cpu.milli()),
            "maxTotalReservableMemSlots": most.mem.whole(config.slot),
            "config": told(config),
        },
        "windlass": { "books": ours.collect::<serde_json::Map<_, _>>() },
    })
}

fn node(name: &str, entry: &NodeEntry, figures: &Figures, slot: Bytes) -> Value {
    let pods = figures.vms.iter().filter_map(|one| {
        let listed = entry.vms.get(&one.booked.name)?;
        let value = vm(name, entry.rule, listed, one);
        Some(json!({ "key": names(&one.booked.name), "value": value }))
    });
    json!({
        "obj": name,
        "name": name,
        "nodeGroup": "",
        "vCPU": axis(figures.cpu, &cpu),
        "memSlots": axis(figures.mem, &|bytes| Bytes::from_bytes(bytes).whole(slot).into()),
        "pods": pods.collect::<Vec<_>>(),
        "otherPods": [],
        "mq": [],
    })
}

fn vm(node: &str, rule: Rule, listed: &ListedVm, vm: &Vm) -> Value {
    let Vm { booked, spoken, buffer } = vm;
    let slots = |mem: Bytes| mem.whole(listed.memory_slot);
    let unit = json!({ "vCPUs": cpu(rule.unit.cpu().milli()), "mem": slots(rule.unit.mem()) });
    let axis = |of: &dyn Fn(Resources) -> Value| {
        json!({
            "reserved": of(booked.reserved),
            "buffer": of(*buffer),
            "capacityPressure": of(pressure(booked)),
            "min": of(listed.bounds.min),
            "max": of(listed.bounds.max),
        })
    };
    json!({
        "obj": booked.name.to_string(),
        "name": names(&booked.name),
        "vmName": names(&booked.name),
        "node": node,
        "testingOnlyAlwaysMigrate": false,
        "vCPU": axis(&|size| cpu(size.cpu.milli())),
        "memSlots": axis(&|size| slots(size.mem).into()),
        // Told with the first answer.
        "mostRecentComputeUnit": spoken.then_some(unit),
        // Loads are heard and not kept: nothing is moved for them.
        "metrics": null,
        "mqIndex": -1,
        "migrationState": listed.moving.then(|| {
            // Another program makes the move: it has no name here.
            json!({ "migrationName": { "namespace": booked.name.namespace, "name": "" } })
        }),
    })
}

/// The figures of an axis, whose names begin with a small letter here.
fn axis(figures: [u64; 7], show: &dyn Fn(u64) -> Value) -> Value {
    let name = |field: &str| field[..1].to_lowercase() + &field[1..];
    FIELDS.iter().zip(figures).map(|(field, value)| (name(field), show(value))).collect()
}

/// The configuration that is in force, as the reference would have it written.
fn told(config: &PluginConfig) -> Value {
    let axis = |watermark: f64, system: String| json!({ "watermark": watermark, "system": system });
    let rule = |rule: &Rule| {
        json!({
            "cpu": axis(rule.watermark.0, quantity::cpu_text(rule.system.cpu)),
            "memory": axis(rule.watermark.1, quantity::memory_text(rule.system.mem)),
            "computeUnit": {
                "vCPUs": cpu(rule.unit.cpu().milli()),
                "mem": rule.unit.mem().whole(config.slot),
            },
        })
    };
    let named = config.rules.named.iter();
    let dump = config.dump_state;
    json!({
        "nodeDefaults": rule(&config.rules.usual),
        "nodeOverrides": named
            .map(|(nodes, other)| json!({ "nodes": nodes, "config": rule(other) }))
            .collect::<Vec<_>>(),
        "memBlockSize": quantity::memory_text(config.slot),
        "schedulerName": config.cluster.scheduler_name,
        "migrationDeletionRetrySeconds": config.cluster.migration_retry_seconds,
        "doMigration": false,
        "k8sNodeGroupLabel": config.cluster.node_group_label,
        "dumpState": dump
            .map(|(at, limit)| json!({ "port": at.port(), "timeoutSeconds": limit.as_secs() })),
    })
}

fn names(vm: &VmName) -> Value {
    json!({ "namespace": vm.namespace, "name": vm.name })
}

/// Milli-CPUs as the reference writes them: a number if they are whole, else a text.
fn cpu(milli: u64) -> Value {
    if milli.is_multiple_of(1000) { (milli / 1000).into() } else { format!("{milli}m").into() }
}
