//! A request that is read without a tree, against the same read with one.

use super::*;
use proptest::prelude::*;

const LATEST: &str = "{\"protoVersion\":7,\"pod\":{\"namespace\":\"default\",\"name\":\"vm1\"},\
    \"computeUnit\":{\"vCPUs\":\"250m\",\"mem\":\"1Gi\"},\"resources\":{\"vCPUs\":2,\"mem\":\"2Gi\"},\
    \"lastPermit\":{\"vCPUs\":1,\"mem\":512},\"metrics\":{\"loadAvg1M\":0.5}} {";

/// What a byte is replaced by, or what is put before it.
const PIECES: [&[u8]; 16] = [
    b"",
    b"\"",
    b"{",
    b"}",
    b",",
    b":",
    b"0",
    b"7",
    b".",
    b"-",
    b"null",
    b" ",
    b"\\",
    b"\xff",
    b"\"mem\":1,",
    b"{}",
];

proptest! {
    #[test]
    fn a_request_as_it_is_written_is_read_as_any_other(
        edits in prop::collection::vec((0..LATEST.len(), 0..2_usize, 0..PIECES.len()), 0..4),
        nulls in prop::collection::vec(0..3_usize, 0..3),
    ) {
        let mut text = LATEST.to_owned();
        for part in nulls {
            let (from, to) = [("\"lastPermit\":", ",\"met"), ("\"metrics\":", "} {"),
                ("\"computeUnit\":", ",\"res")][part];
            let from = text.find(from).unwrap() + from.len();
            let to = from + text[from..].find(to).unwrap();
            text.replace_range(from..to, "null");
        }
        let mut body = text.into_bytes();
        for (at, replaced, piece) in edits {
            let at = at.min(body.len() - 1);
            body.splice(at..at + replaced, PIECES[piece].iter().copied());
        }
        if let Some(written) = RawRequest::written(&body) {
            prop_assert_eq!(RawRequest::tree(&body), Ok(written));
        }
    }
}

#[test]
fn what_agents_write_needs_no_tree() {
    assert!(RawRequest::written(LATEST.as_bytes()).is_some());
    for version in [PluginVersion::V4_0, PluginVersion::V5_0] {
        let request = RawRequest::decode(LATEST.as_bytes()).unwrap();
        let request = request.with_slot(Bytes::from_mib(128)).unwrap();
        let body = PermitRequest { version, ..request }.encode(Bytes::from_mib(128));
        let is_latest = version == PluginVersion::V5_0;
        assert_eq!(body.is_ok_and(|body| RawRequest::written(&body).is_some()), is_latest);
    }
}

#[test]
fn what_no_longer_fits_once_it_is_rounded_up_is_refused() {
    let refused = |milli| {
        let resources = Resources { cpu: MilliCpu::from_milli(milli), mem: Bytes::from_mib(128) };
        let (version, vm) = (PluginVersion::V1_1, VmName::on_host("vm1"));
        let request =
            PermitRequest { version, vm, unit: None, resources, last_permit: None, metrics: None };
        request.encode(Bytes::from_mib(128)).err()
    };
    assert_eq!(refused(4_294_967_000), None);
    let value = MilliCpu::from_milli(4_294_968_000);
    assert_eq!(refused(4_294_967_001), Some(OverRange::Cpu("resources", value)));
}

/// The vectors are bodies with what the reference's own types of v0.12.2 make of them: what
/// they decode to, written again, or that it is an error.
#[test]
fn requests_are_read_as_the_reference_reads_them() {
    let has = PluginVersion::V2_0.features();
    for line in include_str!("../../tests/vectors/plugin-requests.tsv").lines() {
        let (body, answer) = line.split_once('\t').unwrap();
        let read = go_json::first(body.as_bytes());
        match read.and_then(|json| In::<Request<u16>>::fill(has, &json)) {
            Ok(read) => {
                let written = String::from_utf8(go_json::encode(&In(has, &read))).unwrap();
                assert_eq!(written, answer, "{body}");
            }
            Err(error) => assert_eq!("error", answer, "{body}: {error}"),
        }
    }
}
