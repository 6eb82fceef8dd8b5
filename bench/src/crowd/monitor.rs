//! The monitor of a VM that is not there: QMP over a socket, with sizes that change as asked.

use super::{MIB, MOST, Machine, UNIT_MIB, lock};
use anyhow::Result;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};

const GREETING: &str = "{\"QMP\": {\"version\": {\"qemu\": {\"micro\": 22, \"minor\": 2, \
    \"major\": 7}, \"package\": \"\"}, \"capabilities\": [\"oob\"]}}\r\n";

/// Binds now; serves one client after another.
pub(super) fn serve(
    path: PathBuf,
    machine: Arc<Mutex<Machine>>,
) -> Result<impl Future<Output = Result<()>> + Send + 'static> {
    let listener = UnixListener::bind(path)?;
    Ok(async move {
        loop {
            let (client, _) = listener.accept().await?;
            // A client that goes away is no failure of the monitor.
            let _ended = converse(client, &machine).await;
        }
    })
}

async fn converse(client: UnixStream, machine: &Mutex<Machine>) -> Result<()> {
    let (read, mut write) = client.into_split();
    let mut lines = BufReader::new(read).lines();
    write.write_all(GREETING.as_bytes()).await?;
    while let Some(line) = lines.next_line().await? {
        let request: Value = serde_json::from_str(&line)?;
        let command = request["execute"].as_str().unwrap_or_default();
        let answer = match answer(command, &request["arguments"], &mut lock(machine)) {
            Some(result) => json!({"return": result, "id": request["id"]}),
            None => json!({"id": request["id"], "error": {
                "class": "CommandNotFound", "desc": "The command has not been found",
            }}),
        };
        write.write_all(format!("{answer}\r\n").as_bytes()).await?;
    }
    Ok(())
}

fn answer(command: &str, arguments: &Value, machine: &mut Machine) -> Option<Value> {
    Some(match command {
        "query-hotpluggable-cpus" => (0..MOST).map(|slot| cpu(slot, machine.plugged)).collect(),
        "query-memory-devices" => json!([{"type": "virtio-mem", "data": {
            "memdev": "/objects/vmem0", "memaddr": 1_u64 << 32, "block-size": 2 * MIB, "node": 0,
            "size": machine.added, "requested-size": machine.added,
            "max-size": (MOST - 1) * UNIT_MIB * MIB, "id": "vm0",
        }}]),
        "query-memory-size-summary" => {
            json!({"base-memory": UNIT_MIB * MIB, "plugged-memory": machine.added})
        }
        "query-kvm" => json!({"enabled": false, "present": true}),
        "query-memdev" => json!([{"id": "vmem0", "size": (MOST - 1) * UNIT_MIB * MIB}]),
        "query-status" => json!({"running": true, "status": "running"}),
        "qom-list" => json!([]),
        "qom-set" => {
            machine.added = arguments["value"].as_u64()?;
            machine.was_resized();
            json!({})
        }
        "device_add" => {
            machine.plugged += 1;
            machine.was_resized();
            json!({})
        }
        "qmp_capabilities" => json!({}),
        _ => return None,
    })
}

fn cpu(slot: u64, plugged: u64) -> Value {
    let mut cpu = json!({
        "type": "max-x86_64-cpu", "vcpus-count": 1,
        "props": {"socket-id": 0, "core-id": slot, "thread-id": 0, "node-id": 0},
    });
    if slot < plugged {
        cpu["qom-path"] = format!("/machine/unattached/device[{slot}]").into();
    }
    cpu
}

#[cfg(test)]
mod tests {
    use super::super::Work;
    use super::*;

    #[test]
    fn what_is_asked_for_is_there() {
        let mut machine = Machine::new(Work::Said(true));
        assert_eq!(answer("qom-set", &json!({"value": 7 * MIB}), &mut machine), Some(json!({})));
        answer("device_add", &Value::Null, &mut machine).unwrap();
        let slots = answer("query-hotpluggable-cpus", &Value::Null, &mut machine).unwrap();
        let plugged = slots.as_array().unwrap().iter().filter(|slot| slot["qom-path"].is_string());
        assert_eq!((plugged.count(), machine.added, machine.resized), (2, 7 * MIB, 2));
        assert_eq!(answer("quit", &Value::Null, &mut machine), None);
    }
}
