//! What the books keep of what an agent tells people of its VM.
#![expect(clippy::unwrap_used, reason = "tests")]

use windlass_plugin_core::{Books, wire};
use windlass_protocol::plugin::{PermitRequest, RawRequest, Told, Why};
use windlass_protocol::{
    Bytes, ComputeUnit, MilliCpu, Moment, PluginVersion, Resources, VmName, VmRecord,
};

const NOW: Moment = Moment::from_millis(1_000_000);

#[test]
fn the_last_word_of_an_agent_is_known_until_the_next_and_changes_no_permit() {
    let mut books = Books::new(cu(4));
    books.enter(vm(), record(), cu(1));
    assert_eq!(books.known(NOW, &vm()).unwrap().heard, None);
    let told = Told::new(Some(cu(2)), Why::Resting, "The VM could shrink.");
    let mut untold = books.clone();
    let permit = |books: &mut Books, told: Option<Told>| {
        let answer = wire::grant(books, NOW, unit(), request(told)).unwrap();
        answer.granted.permit
    };
    assert_eq!(permit(&mut books, Some(told.clone())), permit(&mut untold, None));
    assert_eq!(books, untold, "what people are told is no part of the books");
    let known = books.known(NOW, &vm()).unwrap();
    assert_eq!((known.heard, known.told), (Some(NOW), Some(told)));
    permit(&mut books, None);
    assert_eq!(books.known(NOW, &vm()).unwrap().told, None, "an agent of the reference");
}

/// An agent tells with a request why its VM has its size: before the answer that makes it another.
#[test]
fn what_an_agent_told_of_its_permit_is_over_once_the_books_have_given_it() {
    for (room, permit) in [(4, 2), (1, 1)] {
        let mut books = Books::new(cu(room));
        books.enter(vm(), record(), cu(1));
        assert_eq!(books.known(NOW, &vm()).unwrap().permit, None, "no agent speaks for it");
        let told = Told::new(Some(cu(2)), Why::Room, "The VM waits for room on its node.");
        wire::grant(&mut books, NOW, unit(), request(Some(told))).unwrap();
        let known = books.known(NOW, &vm()).unwrap();
        assert_eq!((known.permit, known.is_permitted()), (Some(cu(permit)), permit == 2));
    }
}

#[test]
fn a_vm_that_is_short_is_known_with_what_it_wants_and_why_until_its_claim_ends() {
    let mut books = Books::new(cu(1));
    books.enter(vm(), record(), cu(1));
    wire::grant(&mut books, NOW, unit(), request(None)).unwrap();
    let known = books.known(NOW, &vm()).unwrap();
    assert_eq!((known.reserved, known.wanted), (cu(1), Some(cu(2))));
    assert_eq!(known.short.len(), 2, "of CPU and of memory");
    let later = NOW.after(windlass_protocol::timing::CLAIM_LASTS);
    let known = books.known(later, &vm()).unwrap();
    assert_eq!((known.wanted, known.short.len()), (None, 0));
}

fn request(told: Option<Told>) -> RawRequest {
    let request = PermitRequest {
        version: PluginVersion::V5_0,
        vm: vm(),
        unit: Some(unit().into()),
        resources: cu(2),
        last_permit: None,
        metrics: None,
        told: told.map(Box::new),
    };
    RawRequest::decode(&request.encode(record().memory_slot).unwrap()).unwrap()
}

fn vm() -> VmName {
    VmName::on_host("a")
}

fn record() -> VmRecord {
    VmRecord { memory_slot: Bytes::from_mib(128), grain: cu(1), ..VmRecord::default() }
}

fn unit() -> ComputeUnit {
    ComputeUnit::try_from(cu(1)).unwrap()
}

fn cu(count: u64) -> Resources {
    Resources { cpu: MilliCpu::from_cores(count), mem: Bytes::from_gib(count) }
}
