//! The driver of QEMU: what a monitor says, before, between and in place of answers.
//!
//! An input is what a monitor answers to each command, in order; when it ends, everything is
//! answered as a small machine would. What the driver may do meanwhile is little: a few
//! commands, and not many of each.

use crate::input::Input;
use crate::{talk, words};
use serde_json::{Value, json};
use std::path::PathBuf;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};
use windlass_drivers::{Driver, DriverError};
use windlass_drivers_qemu::Qemu;
use windlass_protocol::{Bytes, MilliCpu, Resize};

/// More commands than any resize takes: 512 DIMMs of two commands each, or as many vCPUs.
const COMMANDS: usize = 4096;

const GREETING: &[u8] = b"{\"QMP\": {\"version\": {\"qemu\": {\"micro\": 22, \"minor\": 2, \
    \"major\": 7}, \"package\": \"\"}, \"capabilities\": []}}\n";

/// What a driver may say.
const SPOKEN: [&str; 16] = [
    "qmp_capabilities",
    "query-hotpluggable-cpus",
    "query-cpus-fast",
    "query-memory-size-summary",
    "query-memory-devices",
    "query-memdev",
    "query-kvm",
    "query-status",
    "query-migrate",
    "qom-get",
    "qom-set",
    "qom-list",
    "device_add",
    "device_del",
    "object-add",
    "object-del",
];

pub(crate) fn play(input: &[u8]) {
    let mut input = Input::new(input);
    let removal = input.is();
    let cpu = MilliCpu::from_milli(u64::from(input.byte()) * 500);
    let sizes = [0, 1].map(|_| Bytes::from_mib(u64::from(input.short())));
    talk::run(async {
        let (ours, theirs) = talk::pipe();
        let qemu =
            Qemu { qmp: PathBuf::from("/"), vcpu_removal: removal, cpu_limit: None, limits: None };
        let driver = async move {
            let (mut driver, mut notices) = qemu.attach_over(theirs).await?;
            let can = driver.capabilities();
            assert!(!can.memory_step.is_zero() && !can.cpu_step.is_zero(), "{can:?}");
            for resize in [Resize::Cpu(cpu), Resize::Memory(sizes[0]), Resize::Memory(sizes[1])] {
                driver.see().await?;
                match driver.resize(resize).await {
                    Ok(()) => {}
                    Err(error @ (DriverError::Refused { .. } | DriverError::Partly { .. })) => {
                        words::is_short_and_harmless(&error);
                    }
                    Err(error) => return Err(error),
                }
                while notices.try_recv().is_ok() {}
            }
            Ok::<(), DriverError>(())
        };
        tokio::select! {
            done = driver => {
                if let Err(error) = done {
                    words::is_short_and_harmless(&error);
                }
            }
            () = monitor(ours, input) => {}
        }
    });
}

/// Says what the input has it say, and then waits to be left.
async fn monitor(stream: DuplexStream, mut input: Input<'_>) {
    let (read, mut write) = tokio::io::split(stream);
    let mut lines = BufReader::new(read).lines();
    let greeting = if input.byte() < 250 { GREETING } else { input.chunk() };
    // Who has heard enough is gone, here and below.
    let mut open = write.write_all(greeting).await.is_ok();
    let mut commands = 0;
    while let (true, Ok(Some(line))) = (open, lines.next_line().await) {
        commands += 1;
        assert!(commands <= COMMANDS, "more commands than any resize takes");
        let request: Value = serde_json::from_str(&line).expect("a command is JSON");
        let command = request["execute"].as_str().expect("a command has a name");
        assert!(SPOKEN.contains(&command), "{command}");
        open = write.write_all(&answer(command, &request["id"], &mut input)).await.is_ok();
    }
    if open {
        std::future::pending::<()>().await;
    }
}

/// What is said upon a command: one line or several, or something that is none.
fn answer(command: &str, id: &Value, input: &mut Input<'_>) -> Vec<u8> {
    let line = |value: Value| format!("{value}\n").into_bytes();
    let usual = || match usual(command) {
        Some(result) => json!({"return": result, "id": id}),
        None => error(id, "CommandNotFound", "The command has not been found"),
    };
    match input.below(8) {
        1 => {
            let result = serde_json::from_slice::<Value>(input.chunk()).unwrap_or_default();
            line(json!({"return": result, "id": id}))
        }
        2 => {
            let class = input.one_of(&["GenericError", "DeviceNotFound", "CommandNotFound"]);
            line(error(id, class, &input.text()))
        }
        3 => input.chunk().to_vec(),
        4 => [input.chunk(), b"\n", &line(usual())].concat(),
        5 => line(json!({"return": result(command, input), "id": id})),
        6 => {
            let name = input.one_of(&[
                "RESET",
                "DEVICE_DELETED",
                "MEM_UNPLUG_ERROR",
                "ACPI_DEVICE_OST",
                "MEMORY_DEVICE_SIZE_CHANGE",
            ]);
            let device = format!("windlass-dimm-{}", input.byte() % 4);
            let source = input.byte();
            let data = json!({"device": device, "info": {"device": device, "source": source}});
            [line(json!({"event": name, "data": data})), line(usual())].concat()
        }
        _ => line(usual()),
    }
}

fn error(id: &Value, class: &str, words: &str) -> Value {
    json!({"id": id, "error": {"class": class, "desc": words}})
}

/// An answer of the right form, in which any number may stand.
fn result(command: &str, input: &mut Input<'_>) -> Value {
    match command {
        "query-memory-size-summary" => json!({"base-memory": input.memory().bytes()}),
        "query-memory-devices" => {
            let device = |input: &mut Input<'_>| {
                let kind = input.one_of(&["virtio-mem", "dimm", "nvdimm"]);
                let id = input.one_of(&["vm0", "windlass-dimm-0", "windlass-dimm-7", ""]);
                json!({"type": kind, "data": {
                    "id": id,
                    "memdev": "/objects/m0",
                    "size": input.memory().bytes(),
                    "requested-size": input.memory().bytes(),
                    "max-size": input.memory().bytes(),
                    "block-size": input.number() << 20,
                }})
            };
            (0..input.below(4)).map(|_| device(input)).collect()
        }
        "query-hotpluggable-cpus" => {
            let slot = |input: &mut Input<'_>| {
                let mut slot = json!({"type": "max-x86_64-cpu", "props": {
                    "socket-id": 0, "core-id": input.byte(), "thread-id": 0,
                }});
                match input.below(3) {
                    0 => {}
                    1 => slot["qom-path"] = "/machine/unattached/device[0]".into(),
                    _ => slot["qom-path"] = "/machine/peripheral/windlass-cpu-1".into(),
                }
                slot
            };
            (0..input.below(9)).map(|_| slot(input)).collect()
        }
        "query-kvm" => json!({"enabled": input.is(), "present": true}),
        "query-status" => {
            let states = ["running", "paused", "inmigrate", "io-error", "from-the-future"];
            json!({"running": true, "status": input.one_of(&states)})
        }
        "query-migrate" => json!({"status": input.one_of(&["completed", "active", ""])}),
        "qom-get" => json!({"slots": input.number(), "max-size": input.memory().bytes()}),
        "query-memdev" => {
            let id =
                |input: &mut Input<'_>| json!({"id": format!("windlass-mem-{}", input.byte())});
            (0..input.below(4)).map(|_| id(input)).collect()
        }
        "qom-list" => json!([{"name": "device[1]", "type": "child<virtio-mem-pci>"}]),
        _ => usual(command).unwrap_or_default(),
    }
}

/// A machine with 2 of 4 vCPUs and 256 MiB, and 1 GiB of virtio-mem.
fn usual(command: &str) -> Option<Value> {
    let cpu = |core: u64, path: Option<&str>| {
        let mut cpu = json!({
            "type": "max-x86_64-cpu", "vcpus-count": 1,
            "props": {"socket-id": 0, "core-id": core, "thread-id": 0},
        });
        if let Some(path) = path {
            cpu["qom-path"] = path.into();
        }
        cpu
    };
    Some(match command {
        "query-hotpluggable-cpus" => json!([
            cpu(0, Some("/machine/unattached/device[0]")),
            cpu(1, Some("/machine/peripheral/windlass-cpu-1")),
            cpu(2, None),
            cpu(3, None),
        ]),
        "query-memory-devices" => json!([{"type": "virtio-mem", "data": {
            "id": "vm0", "memdev": "/objects/vmem0", "block-size": 2 << 20,
            "size": 64 << 20, "requested-size": 128 << 20, "max-size": 1 << 30,
        }}]),
        "query-memory-size-summary" => json!({"base-memory": 256 << 20, "plugged-memory": 0}),
        "query-kvm" => json!({"enabled": true, "present": true}),
        "query-status" => json!({"status": "running", "running": true}),
        "query-migrate" => json!({}),
        "query-memdev" | "qom-list" | "query-cpus-fast" => json!([]),
        "qmp_capabilities" | "qom-set" | "device_add" | "device_del" | "object-add"
        | "object-del" => json!({}),
        _ => return None,
    })
}
