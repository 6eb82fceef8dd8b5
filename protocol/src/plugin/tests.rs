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

/// With what an agent of ours tells people.
const TELLING: &str = "{\"protoVersion\":7,\"pod\":{\"namespace\":\"default\",\"name\":\"vm1\"},\
    \"computeUnit\":{\"vCPUs\":\"250m\",\"mem\":\"1Gi\"},\"resources\":{\"vCPUs\":2,\"mem\":\"2Gi\"},\
    \"lastPermit\":{\"vCPUs\":1,\"mem\":512},\"metrics\":{\"loadAvg1M\":0.5},\
    \"windlass\":{\"goal\":{\"vCPUs\":3,\"mem\":\"3Gi\"},\"why\":\"room\",\"words\":\"It waits.\"}} {";

proptest! {
    #[test]
    fn a_request_as_it_is_written_is_read_as_any_other(
        tells in any::<bool>(),
        edits in prop::collection::vec((0..TELLING.len(), 0..2_usize, 0..PIECES.len()), 0..4),
        nulls in prop::collection::vec(0..3_usize, 0..3),
    ) {
        let mut text = if tells { TELLING } else { LATEST }.to_owned();
        for part in nulls {
            let (from, to) = [("\"lastPermit\":", ",\"met"), ("\"metrics\":", if tells { ",\"windlass" } else { "} {" }),
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
    let mut telling = RawRequest::written(TELLING.as_bytes()).unwrap();
    let goal = Resources { cpu: MilliCpu::from_cores(3), mem: Bytes::from_gib(3) };
    let told = Told::new(Some(goal), Why::Room, "It waits.");
    assert_eq!(telling.take_told(Bytes::ZERO).as_deref(), Some(&told));
    assert_eq!(Some(&telling), RawRequest::decode(LATEST.as_bytes()).as_ref().ok());
    for version in [PluginVersion::V4_0, PluginVersion::V5_0] {
        let request = RawRequest::decode(LATEST.as_bytes()).unwrap();
        let request = request.with_slot(Bytes::from_mib(128)).unwrap();
        let body = PermitRequest { version, ..request }.encode(Bytes::from_mib(128));
        let is_latest = version == PluginVersion::V5_0;
        assert_eq!(body.is_ok_and(|body| RawRequest::written(&body).is_some()), is_latest);
    }
}

/// A plugin of the reference reads 1024 bytes, and is to find a whole request there.
#[test]
fn what_is_told_is_cut_and_left_out_of_a_request_that_has_no_room_for_it() {
    let slot = Bytes::from_mib(128);
    let request = RawRequest::decode(TELLING.as_bytes()).unwrap().with_slot(slot).unwrap();
    let telling = |name: usize, words: &str| {
        let told = Some(Box::new(Told::new(None, Why::NoInformant, words)));
        let vm = VmName { namespace: "n".repeat(name), name: "v".repeat(name) };
        let body = PermitRequest { vm, told, ..request.clone() }.encode(slot).unwrap();
        assert!(body.len() <= BODY_LIMIT, "{}", body.len());
        RawRequest::decode(&body).unwrap().take_told(slot).map(|told| told.words)
    };
    assert_eq!(telling(10, "No informant.").as_deref(), Some("No informant."));
    let long = telling(63, &"ü".repeat(300)).unwrap();
    assert!(long.len() <= LONGEST_WORDS && long.ends_with('…'), "{long}");
    assert_eq!(telling(250, &"<".repeat(200)), None, "each takes six bytes");
    assert_eq!(telling(10, "a\u{1b}[2J\n").as_deref(), Some("a\u{fffd}[2J\u{fffd}"));
}

#[test]
fn a_later_agent_s_reason_is_another_one() {
    let text = TELLING.replace("\"room\"", "\"gone-fishing\"");
    let told = RawRequest::decode(text.as_bytes()).unwrap().take_told(Bytes::ZERO).unwrap();
    assert_eq!((told.why, &*told.words), (Why::Other, "It waits."));
    let older = TELLING.replace("\"protoVersion\":7", "\"protoVersion\":6");
    assert_eq!(RawRequest::decode(older.as_bytes()).unwrap().take_told(Bytes::ZERO), None);
    let wrong = TELLING.replace("\"It waits.\"", "7");
    let error = RawRequest::decode(wrong.as_bytes()).unwrap_err().to_string();
    assert_eq!(error, "windlass.words: 7 is not a text");
}

#[test]
fn what_no_longer_fits_once_it_is_rounded_up_is_refused() {
    let refused = |milli| {
        let resources = Resources { cpu: MilliCpu::from_milli(milli), mem: Bytes::from_mib(128) };
        let (version, vm) = (PluginVersion::V1_1, VmName::on_host("vm1"));
        let request = PermitRequest {
            version,
            vm,
            unit: None,
            resources,
            last_permit: None,
            metrics: None,
            told: None,
        };
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
