//! What the reference accepts is accepted, and understood in the same way.
//!
//! The vectors are inputs with the answers of the reference's own types: what a quantity is in
//! thousandths and in whole units, rounded up. Those of requests for permits are read where their
//! wire is, in `src/plugin`.

use windlass_protocol::informant::ResourceMessage;
use windlass_protocol::plugin::RawRequest;
use windlass_protocol::{Bytes, MilliCpu, quantity};

#[test]
fn quantities_are_read_as_the_reference_reads_them() {
    for line in include_str!("vectors/quantities.tsv").lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let (cpu, memory) = (quantity::cpu(fields[0]), quantity::memory(fields[0]));
        match fields[1..] {
            ["error"] => assert!(cpu.is_err() && memory.is_err(), "{line}"),
            [milli, whole] => {
                assert_eq!(cpu, Ok(MilliCpu::from_milli(milli.parse().unwrap())), "{line}");
                assert_eq!(memory, Ok(Bytes::from_bytes(whole.parse().unwrap())), "{line}");
            }
            _ => panic!("{line}"),
        }
    }
}

#[test]
fn an_amount_that_is_missing_is_not_zero() {
    for (data, field) in [
        ("{}", "data.cpu"),
        (r#"{"memory":"1Gi"}"#, "data.cpu"),
        (r#"{"cpu":null,"memory":"1Gi"}"#, "data.cpu"),
        (r#"{"cpu":"1"}"#, "data.memory"),
        (r#"{"cpu":"1","memory":null}"#, "data.memory"),
    ] {
        let body = format!(r#"{{"data":{data},"sequenceNumber":1}}"#);
        let error = ResourceMessage::decode_any(body.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(field), "{body}: {error}");
    }
}

#[test]
fn what_the_reference_lets_wrap_around_is_refused() {
    for (vcpus, words) in [
        ("-1", "zero or more"),
        ("4294968", "at most 4294967.295 vCPU"),
        ("\"9223372036854775807\"", "63 bits"),
        ("1e99", "63 bits"),
    ] {
        let body = format!("{{\"resources\":{{\"vCPUs\":{vcpus}}}}}");
        let error = RawRequest::decode(body.as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with("resources.vCPUs: "), "{error}");
        assert!(error.contains(words), "{error}");
    }
}
