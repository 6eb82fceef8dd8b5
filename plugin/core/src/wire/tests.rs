//! What an agent is answered, in every version: permits, refusals and their order.

use super::*;
use windlass_protocol::MilliCpu;
use windlass_protocol::plugin::{Metrics, PermitRequest};

const NOW: Moment = Moment::from_millis(1_000_000);
const SLOT: Bytes = Bytes::from_mib(128);

#[test]
fn an_agent_reads_what_it_may_have_in_every_version() {
    for version in PluginVersion::known() {
        for (asked, permit) in [(cu(2), cu(2)), (cu(4), cu(3)), (cu(1), cu(1))] {
            let mut books = node(SLOT);
            let body = body(version, asked);
            let permitted = self::permit(&mut books, NOW, &terms(), &body).unwrap();
            assert_eq!((&permitted.vm, permitted.asked), (&VmName::on_host("a"), asked));
            assert_eq!(permitted.granted.permit, permit, "{version}");
            assert_eq!(permitted.granted.short.is_empty(), asked == permit);
            let answer = PermitResponse::decode(version, &permitted.encode().unwrap(), SLOT);
            assert_eq!(answer, Ok(PermitResponse { permit, migrate: false }), "{version}");
        }
    }
}

#[test]
fn a_body_is_read_no_further_than_its_limit() {
    let body = body(PluginVersion::V5_0, cu(2));
    let padded = [body.clone(), vec![b' '; 10_000]].concat();
    assert!(permit(&mut node(SLOT), NOW, &terms(), &padded).is_ok());
    let late = [vec![b' '; BODY_LIMIT], body].concat();
    let refusal = permit(&mut node(SLOT), NOW, &terms(), &late).unwrap_err();
    assert!(matches!(refusal, Refusal::TooLong(_)), "{refusal}");
    assert_eq!(refusal.status(), 400);
}

#[test]
fn a_refusal_has_its_status_and_words_and_leaves_the_books_alone() {
    let mut books = node(SLOT);
    let before = books.clone();
    for (body, status, words) in [
        (String::new(), 400, "bad JSON: byte 0: the body ends"),
        ("[]".into(), 400, "bad JSON: body: a list is not an object"),
        ("{}".into(), 400, "Invalid protocol version <invalid: zero>: protoVersion is 0"),
        (with(3, ":3", ":8"), 400, "Protocol version mismatch: Need v1.0 to v5.0 but got <un"),
        (with(3, "\"mem\":16", "\"mem\":-1"), 400, "bad JSON: resources.mem: -1 is not a"),
        (with(3, "\"a\"", "\"b\""), 404, "pod not found: pod: default/b is not a VM in the"),
        ("[".repeat(2000), 400, "bad JSON: body: longer than 1024 bytes, of which no more"),
    ] {
        let refusal = permit(&mut books, NOW, &terms(), body.as_bytes()).unwrap_err();
        assert_eq!(refusal.status(), status, "{body}: {refusal}");
        assert!(refusal.to_string().starts_with(words), "{body}: {refusal}");
    }
    assert_eq!(books, before);
}

/// A body that breaks one rule more than the one before it is refused for that: the order is
/// the reference's.
#[test]
fn the_first_check_that_fails_has_the_word() {
    let nobody = |text: String| text.replace("\"a\"", "\"b\"");
    let half = |text: String| text.replace("\"vCPUs\":2", "\"vCPUs\":\"1500m\"");
    let null = |text: String| text.replace(METRICS, "null");
    let odd = |text: String| text.replace("\"1Gi\"", "\"1000Mi\"");
    let none = |text: String| text.replace("{\"vCPUs\":1,\"mem\":\"1Gi\"}", "null");
    let zero = |text: String| text.replace("{\"vCPUs\":1,\"mem\":\"1Gi\"}", "{}");
    let (v1_0, v1_1, v4_0, v5_0) = (text(1), text(2), text(6), text(7));
    let narrow = Versions { min: PluginVersion::V1_1, max: PluginVersion::V4_0 };
    for (body, versions, words) in [
        (half(v1_1.clone()), narrow, "agent requested fractional CPU with protocol version t"),
        (nobody(half(v1_1.clone())), narrow, "pod not found: pod: default/b"),
        (null(half(v1_1)), narrow, "agent requested fractional CPU"),
        (half(v1_0.clone()), SPOKEN, "agent requested fractional CPU with protocol version t"),
        (nobody(v1_0.clone()), SPOKEN, "pod not found: pod: default/b"),
        (null(nobody(v1_0.clone())), SPOKEN, "nil metrics not supported for protocol version"),
        (null(nobody(v1_0)), narrow, "Protocol version mismatch: Need v1.1 to v4.0 but got v1"),
        (odd(v4_0.clone()), narrow, "computeUnit is not divisible by VM memory slot size: com"),
        (nobody(odd(v4_0.clone())), narrow, "pod not found"),
        (nobody(none(v4_0.clone())), narrow, "computeUnit required for protocol version v4.0"),
        (nobody(zero(v4_0)), narrow, "computeUnit fields must be non-zero: vCPUs must be non-"),
        (nobody(none(v5_0.clone())), SPOKEN, "computeUnit fields must be non-zero: vCPUs must be"),
        (nobody(zero(v5_0.clone())), SPOKEN, "computeUnit fields must be non-zero: vCPUs must be"),
        (nobody(none(v5_0)), narrow, "Protocol version mismatch: Need v1.1 to v4.0 but got"),
    ] {
        let terms = Terms { versions, ..terms() };
        let refusal = permit(&mut node(SLOT), NOW, &terms, body.as_bytes()).unwrap_err();
        assert!(refusal.to_string().starts_with(words), "{body}: {refusal}");
        let status = if words.starts_with("pod") { 404 } else { 400 };
        assert_eq!(refusal.status(), status, "{body}: {refusal}");
    }
}

#[test]
fn an_old_agent_is_told_of_whole_cpus_only() {
    let quarter = ComputeUnit::new(MilliCpu::from_milli(250), Bytes::from_mib(256)).unwrap();
    let terms = Terms { unit: quarter, ..terms() };
    let mut books = node(SLOT);
    let half = MilliCpu::from_milli(500);
    books.set_room(Resources { cpu: cu(3).cpu.saturating_add(half), ..cu(4) });
    for (version, permit, unit) in [
        (1, "\"vCPUs\":2,", "\"vCPUs\":1,\"mem\":8"),
        (2, "\"vCPUs\":2,", "\"vCPUs\":1,\"mem\":8"),
        (3, "\"vCPUs\":\"2500m\",", "\"vCPUs\":\"250m\",\"mem\":2"),
    ] {
        let version = PluginVersion::from_number(version);
        let mut books = books.clone();
        let record = VmRecord { grain: Resources::ZERO, ..*books.record(&a()).unwrap() };
        books.update(&a(), record);
        let body = body(version, cu(4));
        let permitted = self::permit(&mut books, NOW, &terms, &body).unwrap();
        let answer = String::from_utf8(permitted.encode().unwrap()).unwrap();
        assert!(answer.starts_with(&format!("{{\"permit\":{{{permit}")), "{answer}");
        assert!(answer.ends_with(&format!("\"resourceUnit\":{{{unit}}}}}")), "{answer}");
        let said = PermitResponse::decode(version, answer.as_bytes(), SLOT).unwrap();
        assert_eq!(books.reserved_for(&a()), Some(said.permit), "no more is kept than said");
    }
}

#[test]
fn who_was_told_of_a_move_keeps_its_size() {
    let mut books = node(SLOT);
    for version in PluginVersion::known() {
        books.set_moving(&a(), true);
        let mut ask = |wanted| permit(&mut books, NOW, &terms(), &body(version, wanted));
        // It asks for more, and is told.
        let told = ask(cu(3)).unwrap();
        let answer = PermitResponse::decode(version, &told.encode().unwrap(), SLOT).unwrap();
        assert_eq!(answer, PermitResponse { permit: cu(1), migrate: true }, "{version}");
        let refusal = ask(cu(2)).unwrap_err();
        let words = "cannot change resources: agent has already been informed that pod is mi";
        assert!(refusal.to_string().starts_with(words), "{refusal}");
        assert_eq!(refusal.status(), 400);
        assert!(ask(cu(1)).unwrap().granted.moving, "its answer may have been lost");
        books.set_moving(&a(), false);
        let mut ask = |wanted| permit(&mut books, NOW, &terms(), &body(version, wanted));
        assert_eq!(ask(cu(2)).unwrap().granted.permit, cu(2));
        assert!(!ask(cu(1)).unwrap().granted.moving);
    }
}

#[test]
fn an_answer_that_does_not_fit_is_not_said() {
    let v2_0 = PluginVersion::V2_0;
    let mut books = node(Bytes::ZERO);
    let permitted = permit(&mut books, NOW, &terms(), &body(v2_0, cu(1))).unwrap();
    let refusal = permitted.encode().unwrap_err();
    assert_eq!(refusal, Refusal::OverRange(OverRange::Slot));
    assert_eq!(refusal.status(), 500);
    // What is only told is told as far as it goes.
    let mut books = node(Bytes::from_kib(8));
    let permitted = permit(&mut books, NOW, &terms(), &body(v2_0, cu(1))).unwrap();
    let answer = String::from_utf8(permitted.encode().unwrap()).unwrap();
    assert!(answer.ends_with("\"resourceUnit\":{\"vCPUs\":1,\"mem\":65535}}"), "{answer}");
}

const SPOKEN: Versions<PluginVersion> = PluginVersion::SPOKEN;
const METRICS: &str = "{\"loadAvg1M\":0.5,\"loadAvg5M\":0.25}";

/// How the plugin speaks.
struct Terms {
    unit: ComputeUnit,
    versions: Versions<PluginVersion>,
}

fn permit(
    books: &mut Books,
    now: Moment,
    terms: &Terms,
    body: &[u8],
) -> Result<Permitted, Refusal> {
    grant(books, now, terms.unit, read(body, terms.versions)?)
}

/// A node with room for 4 CUs, where `a` has 1 and somebody else 1.
fn node(memory_slot: Bytes) -> Books {
    let mut books = Books::new(cu(4));
    for name in ["a", "other"] {
        let record = VmRecord { grain: cu(1), memory_slot, ..VmRecord::default() };
        books.enter(VmName::on_host(name), record, cu(1));
    }
    books
}

fn with(version: u32, what: &str, other: &str) -> String {
    let good = text(version);
    assert!(good.contains(what), "{what} in {good}");
    good.replace(what, other)
}

fn text(version: u32) -> String {
    String::from_utf8(body(PluginVersion::from_number(version), cu(2))).unwrap()
}

fn body(version: PluginVersion, resources: Resources) -> Vec<u8> {
    let metrics = Metrics { load_1m: 0.5, load_5m: Some(0.25), memory_usage: Some(1e9) };
    let (vm, unit, metrics) = (a(), Some(cu(1)), Some(metrics));
    let request =
        PermitRequest { version, vm, unit, resources, last_permit: None, metrics, told: None };
    request.encode(SLOT).unwrap()
}

fn a() -> VmName {
    VmName::on_host("a")
}

fn terms() -> Terms {
    Terms { unit: ComputeUnit::try_from(cu(1)).unwrap(), versions: SPOKEN }
}

fn cu(count: u64) -> Resources {
    Resources { cpu: MilliCpu::from_cores(count), mem: Bytes::from_gib(count) }
}
