//! What an agent says to a plugin, part by part, in the shape of its version.

use super::Vm;
use serde_json::json;

/// CPU in thousandths, and slots of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) milli: u64,
    pub(super) slots: u64,
}

/// The parts of a request, as JSON.
#[derive(Clone, Debug)]
pub(super) struct Said {
    pub(super) number: u32,
    pub(super) version: String,
    pub(super) pod: String,
    pub(super) cpu: String,
    pub(super) mem: String,
    pub(super) unit: String,
    pub(super) last_permit: String,
    pub(super) metrics: String,
}

pub(super) const fn size(milli: u64, slots: u64) -> Size {
    Size { milli, slots }
}

// === impl Said ===

impl Said {
    /// A request that a plugin of this version takes.
    pub(super) fn new(number: u32, vm: &Vm, wanted: Size, slot: u64) -> Self {
        let metrics = match number {
            1..=3 => json!({"loadAvg1M": 0.5, "loadAvg5M": 0.25}),
            4..=6 => json!({"loadAvg1M": 0.5, "loadAvg5M": 0.25, "memoryUsageBytes": 5e8}),
            _ => json!({"loadAvg1M": 0.5}),
        };
        let mem = |slots| memory(number, slots, slot);
        Self {
            number,
            version: number.to_string(),
            pod: json!({"namespace": vm.namespace, "name": vm.name}).to_string(),
            cpu: cpu(wanted.milli),
            mem: mem(wanted.slots),
            unit: format!(r#"{{"vCPUs":"250m","mem":{}}}"#, mem(1)),
            last_permit: "null".to_owned(),
            metrics: metrics.to_string(),
        }
    }

    /// The body, with the keys of its version.
    pub(super) fn body(&self) -> String {
        let Self { number, version, pod, cpu, mem, unit, last_permit, metrics } = self;
        let unit = if *number >= 6 { format!("\"computeUnit\":{unit},") } else { String::new() };
        let last =
            if *number >= 4 { format!("\"lastPermit\":{last_permit},") } else { String::new() };
        format!(
            "{{\"protoVersion\":{version},\"pod\":{pod},{unit}\
             \"resources\":{{\"vCPUs\":{cpu},\"mem\":{mem}}},{last}\"metrics\":{metrics}}}"
        )
    }
}

/// CPU as the wire has it.
pub(super) fn cpu(milli: u64) -> String {
    if milli.is_multiple_of(1000) { (milli / 1000).to_string() } else { format!("\"{milli}m\"") }
}

/// Slots as the wire of this version has them.
pub(super) fn memory(number: u32, slots: u64, slot: u64) -> String {
    if number < 6 { slots.to_string() } else { bytes(slots.saturating_mul(slot)) }
}

/// Bytes as a quantity: bare below 1024, else in the largest unit that leaves no rest.
pub(super) fn bytes(bytes: u64) -> String {
    if bytes < 1024 {
        return bytes.to_string();
    }
    let (mut left, mut unit) = (bytes, "");
    for next in ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"] {
        if !left.is_multiple_of(1024) {
            break;
        }
        (left, unit) = (left / 1024, next);
    }
    format!("\"{left}{unit}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_written_as_the_wire_has_them() {
        assert_eq!(["0", "2", "\"250m\"", "\"1500m\""], [0, 2000, 250, 1500].map(cpu));
        let mib = 1 << 20;
        for (amount, text) in [
            (0, "0"),
            (1023, "1023"),
            (1024, "\"1Ki\""),
            (1536 * mib, "\"1536Mi\""),
            (4096 * mib, "\"4Gi\""),
            (1025, "\"1025\""),
        ] {
            assert_eq!(bytes(amount), text);
        }
        assert_eq!(memory(5, 8, 128 * mib), "8");
        assert_eq!(memory(6, 8, 128 * mib), "\"1Gi\"");
    }

    #[test]
    fn a_request_has_the_keys_of_its_version() {
        let vm = Vm::named("a");
        let body = |number| Said::new(number, &vm, size(1500, 8), 128 << 20).body();
        let pod = r#""pod":{"namespace":"default","name":"a"}"#;
        assert_eq!(
            body(3),
            format!(
                r#"{{"protoVersion":3,{pod},"resources":{{"vCPUs":"1500m","mem":8}},"metrics":{{"loadAvg1M":0.5,"loadAvg5M":0.25}}}}"#
            )
        );
        assert_eq!(
            body(7),
            format!(
                r#"{{"protoVersion":7,{pod},"computeUnit":{{"vCPUs":"250m","mem":"128Mi"}},"resources":{{"vCPUs":"1500m","mem":"1Gi"}},"lastPermit":null,"metrics":{{"loadAvg1M":0.5}}}}"#
            )
        );
    }
}
