//! The monitor of a VM that is not there: QMP over a socket, with sizes that change as asked.

use super::{MIB, MOST, Machine, UNIT_MIB, lock};
use anyhow::Result;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use windlass_testkit::qmp::{GREETING, Sizes, reply};

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
    write.write_all(format!("{GREETING}\r\n").as_bytes()).await?;
    while let Some(line) = lines.next_line().await? {
        let request: Value = serde_json::from_str(&line)?;
        let command = request["execute"].as_str().unwrap_or_default();
        let result = answer(command, &request["arguments"], &mut lock(machine));
        let answer = reply(&request["id"], result);
        write.write_all(format!("{answer}\r\n").as_bytes()).await?;
    }
    Ok(())
}

fn answer(command: &str, arguments: &Value, machine: &mut Machine) -> Option<Value> {
    let mut sizes = Sizes {
        plugged: machine.plugged,
        slots: MOST,
        boot: UNIT_MIB * MIB,
        added: machine.added,
        requested: machine.added,
        most_added: (MOST - 1) * UNIT_MIB * MIB,
    };
    let result = sizes.answer(command, arguments)?;
    if matches!(command, "qom-set" | "device_add") {
        (machine.plugged, machine.added) = (sizes.plugged, sizes.added);
        machine.was_resized();
    }
    Some(result)
}

#[cfg(test)]
mod tests {
    use super::super::Work;
    use super::*;
    use serde_json::json;

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
