//! Ceilings: which answers wait, what is reserved meanwhile, and what is written when.
#![expect(clippy::unwrap_used, reason = "tests")]

mod laws;
mod model;

use std::time::Duration;
use windlass_plugin_core::ceilings::{FirstCeiling, Kept};
use windlass_plugin_core::{Ask, Books, Proposed, VmRecord};
use windlass_protocol::pod::Ceiling;
use windlass_protocol::timing::REQUEST_IS_LATE;
use windlass_protocol::{Bytes, MilliCpu, Moment, Resources, VmName};

const NOW: Moment = Moment::from_millis(1_000_000);
const EPOCH: u64 = 3;

#[test]
fn growth_within_the_ceiling_is_answered_at_once_and_growth_above_it_waits() {
    let mut books = bound(8, &["a"]);
    assert_eq!(propose(&mut books, "a", 1), Some(1));
    assert_eq!(propose(&mut books, "a", 2), Some(2), "the ceiling of the binding has headroom");
    assert_eq!(propose(&mut books, "a", 3), None);
    assert_eq!(reserved(&books), 3, "the proposal is reserved");
    assert_eq!(record(&mut books, "a"), 4, "with headroom");
    assert_eq!(request(&mut books, "a", 3), 3);
    assert_eq!(propose(&mut books, "a", 4), Some(4), "no write is needed");
}

#[test]
fn what_is_not_recorded_is_free_again_and_the_agent_keeps_what_it_had() {
    let mut books = bound(8, &["a"]);
    assert_eq!((propose(&mut books, "a", 2), propose(&mut books, "a", 5)), (Some(2), None));
    let write = books.ceiling_due(&vm("a"), EPOCH).unwrap();
    assert_eq!(request(&mut books, "a", 5), 2, "its agent waits no longer");
    assert_eq!(reserved(&books), 5, "the write is under way");
    books.ceiling_given_up(&vm("a"));
    assert_eq!(reserved(&books), 2);
    books.ceiling_written(&vm("a"), write.next);
    assert_eq!(
        propose(&mut books, "a", 3),
        None,
        "a late word of a write that was given up is none"
    );
}

#[test]
fn a_write_that_outlasts_its_request_counts_at_the_next() {
    let mut books = bound(8, &["a"]);
    assert_eq!((propose(&mut books, "a", 1), propose(&mut books, "a", 3)), (Some(1), None));
    let write = books.ceiling_due(&vm("a"), EPOCH).unwrap();
    assert_eq!(request(&mut books, "a", 3), 2, "as much as the ceiling covers");
    books.ceiling_written(&vm("a"), write.next);
    assert_eq!(reserved(&books), 3);
    assert_eq!(propose(&mut books, "a", 3), Some(3));
}

#[test]
fn a_smaller_request_withdraws_what_was_proposed() {
    let mut books = bound(8, &["a"]);
    assert_eq!((propose(&mut books, "a", 1), propose(&mut books, "a", 5)), (Some(1), None));
    assert_eq!(propose(&mut books, "a", 1), Some(1));
    assert_eq!(reserved(&books), 1);
    record(&mut books, "a");
    assert_eq!(reserved(&books), 1);
}

#[test]
fn requests_of_one_vm_wait_for_one_write_and_a_larger_one_for_the_next() {
    let mut books = bound(16, &["a"]);
    assert_eq!((propose(&mut books, "a", 3), propose(&mut books, "a", 4)), (None, None));
    let write = books.ceiling_due(&vm("a"), EPOCH).unwrap();
    assert_eq!(propose(&mut books, "a", 9), None);
    books.ceiling_written(&vm("a"), write.next);
    assert_eq!(request(&mut books, "a", 9), 5, "as far as the first write goes");
    assert_eq!(record(&mut books, "a"), 12);
    assert_eq!(propose(&mut books, "a", 9), Some(9));
}

#[test]
fn an_answer_that_is_cut_can_be_said_on_the_wire() {
    let mut books = bound(8, &[]);
    let record = VmRecord { grain: Resources::ZERO, ..record_of() };
    let kept = Kept { max: cu(8), shown: None, has: Resources::ZERO, alone: cu(8) };
    books.enter_pod(vm("a"), record, cu(1), cu(1), Some(kept));
    let first = Resources::new(MilliCpu::from_milli(2500), Bytes::from_mib(2000));
    books.ceiling_bound(&vm("a"), FirstCeiling::new(EPOCH, first, None));
    for (whole_cpus, milli) in [(true, 2000), (false, 2500)] {
        let ask = Ask { whole_cpus, ..Ask::from(cu(4)) };
        let granted = books.request(NOW, &vm("a"), ask).unwrap();
        let size = Resources::new(MilliCpu::from_milli(milli), Bytes::from_mib(1920));
        assert_eq!((granted.permit, granted.is_unrecorded), (size, true));
    }
}

#[test]
fn a_ceiling_of_an_earlier_leader_covers_nothing_new() {
    let mut books = restarted(8, &[("a", 4)]);
    assert_eq!(reserved(&books), 4, "it may have been promised");
    assert_eq!(propose_knowing(&mut books, "a", 2, 2), Some(2), "its agent was promised as much");
    assert_eq!(propose_knowing(&mut books, "a", 2, 3), None, "the earlier one may be lowering it");
    assert_eq!(record(&mut books, "a"), 4);
    assert_eq!(propose_knowing(&mut books, "a", 3, 4), Some(4));
}

#[test]
fn a_first_word_without_a_last_permit_is_recorded_first_and_costs_no_promise() {
    let mut books = restarted(8, &[("a", 4)]);
    assert_eq!(propose(&mut books, "a", 3), None);
    assert_eq!(request(&mut books, "a", 3), 1, "what its pod requests counts always");
    assert_eq!(reserved(&books), 4, "it may have what an earlier leader promised");
    books.ceiling_given_up(&vm("a"));
    assert_eq!(propose(&mut books, "a", 3), None);
    assert_eq!(record(&mut books, "a"), 5, "it covers all of that");
    assert_eq!((propose(&mut books, "a", 3), reserved(&books)), (Some(3), 4), "it may be late");
}

#[test]
fn what_an_agent_was_told_before_its_word_counts_stays_reserved() {
    let mut books = restarted(8, &[("a", 4)]);
    assert_eq!((propose(&mut books, "a", 3), record(&mut books, "a")), (None, 5));
    let edited = |books: &mut Books, write: u64, units: u64| {
        let shown = Some(Ceiling { epoch: EPOCH, write, size: cu(units) });
        let kept = kept(shown);
        books.enter_pod(vm("a"), record_of(), cu(1), cu(units), Some(kept));
    };
    edited(&mut books, 98, 6);
    assert_eq!(propose(&mut books, "a", 6), None, "it may have been promised, and is not sure");
    assert_eq!(request(&mut books, "a", 6), 5);
    books.ceiling_given_up(&vm("a"));
    edited(&mut books, 99, 2);
    assert_eq!(reserved(&books), 5);
}

#[test]
fn an_agent_that_was_told_nothing_yet_is_not_told_less_than_its_vm_may_have() {
    let mut books = restarted(8, &[("a", 4)]);
    assert_eq!(propose(&mut books, "a", 3), None);
    let cut = books.request(NOW, &vm("a"), cu(3)).unwrap();
    assert_eq!((cut.permit, cut.is_unrecorded), (cu(1), true));
    assert!(books.says_too_little(&vm("a"), cu(3), &cut), "it would name one as its last permit");
    assert!(!books.says_too_little(&vm("a"), cu(1), &cut), "its VM has no more");
    books.ceiling_given_up(&vm("a"));
    assert_eq!((propose(&mut books, "a", 3), record(&mut books, "a")), (None, 5));
    let granted = books.request(NOW, &vm("a"), cu(3)).unwrap();
    assert_eq!(granted.permit, cu(3));
    assert!(!books.says_too_little(&vm("a"), cu(3), &granted));
}

#[test]
fn the_headroom_of_a_ceiling_that_was_recorded_for_a_first_word_is_no_promise() {
    let mut books = restarted(8, &[("a", 4)]);
    assert_eq!(propose(&mut books, "a", 3), None);
    let write = books.ceiling_due(&vm("a"), EPOCH).unwrap();
    assert_eq!(write.next.size, cu(5), "with headroom");
    let kept = kept(Some(write.next));
    books.enter_pod(vm("a"), record_of(), cu(1), write.next.size, Some(kept));
    assert_eq!(reserved(&books), 4);
    books.ceiling_written(&vm("a"), write.next);
    assert_eq!((propose(&mut books, "a", 3), reserved(&books)), (Some(3), 4));
}

#[test]
fn an_answer_that_is_cut_covers_the_whole_of_the_slot_that_a_pod_requests() {
    let mut books = bound(8, &[]);
    let size = |mib| Resources { mem: Bytes::from_mib(mib), ..cu(1) };
    let kept = Kept { max: cu(4), shown: None, has: Resources::ZERO, alone: cu(4) };
    books.enter_pod(vm("a"), record_of(), size(1044), cu(4), Some(kept));
    let has = size(1152);
    assert_eq!(books.propose(NOW, &vm("a"), has).unwrap(), Proposed::Waits);
    assert_eq!(books.request(NOW, &vm("a"), has).unwrap().permit, has, "its VM starts with that");
}

#[test]
fn the_watch_lowers_what_is_sure_and_never_raises_it() {
    let mut books = bound(8, &["a"]);
    assert_eq!(propose(&mut books, "a", 1), Some(1));
    shown(&mut books, "a", Some(Ceiling { epoch: EPOCH, write: 7, size: cu(6) }));
    assert_eq!(propose(&mut books, "a", 3), None, "it may be on its way down");
    assert_eq!(record(&mut books, "a"), 4);
    shown(&mut books, "a", Some(Ceiling { epoch: EPOCH, write: 7, size: cu(1) }));
    assert_eq!(propose(&mut books, "a", 4), Some(4), "the watch is late");
    shown(&mut books, "a", None);
    assert_eq!(propose(&mut books, "a", 4), Some(4), "without one its maximum counts");
    gives_back(&mut books, "a", 1);
    shown(&mut books, "a", Some(Ceiling { epoch: EPOCH, write: 99, size: cu(2) }));
    assert_eq!(propose(&mut books, "a", 3), None, "a person lowered it");
    let write = books.ceiling_due(&vm("a"), EPOCH).unwrap();
    assert_eq!((write.known.unwrap().write, write.next.write), (99, 100));
}

#[test]
fn a_recorded_epoch_that_is_higher_goes_on() {
    let mut books = bound(8, &["a"]);
    assert_eq!(propose(&mut books, "a", 3), None);
    books.ceiling_due(&vm("a"), EPOCH).unwrap();
    // The Lease was made anew since, and epochs began again.
    let read = Ceiling { epoch: EPOCH + 1, write: 2, size: cu(4) };
    books.ceiling_read(&vm("a"), Some(read));
    let due = books.ceiling_due(&vm("a"), EPOCH).unwrap();
    assert_eq!((due.known, due.next.epoch, due.next.write), (Some(read), EPOCH + 1, 3));
    books.ceiling_written(&vm("a"), due.next);
    assert_eq!(request(&mut books, "a", 3), 3);
}

#[test]
fn a_write_that_met_another_ceiling_is_made_for_what_was_read() {
    let mut books = bound(8, &["a"]);
    assert_eq!(propose(&mut books, "a", 3), None);
    let first = books.ceiling_due(&vm("a"), EPOCH).unwrap();
    let read = Ceiling { epoch: EPOCH, write: 41, size: cu(2) };
    books.ceiling_read(&vm("a"), Some(read));
    let again = books.ceiling_due(&vm("a"), EPOCH).unwrap();
    assert_eq!((again.known, again.next.write), (Some(read), 42));
    books.ceiling_written(&vm("a"), first.next);
    assert_eq!(request(&mut books, "a", 3), 2, "that write had no effect");
}

/// Whoever may change the pod may write any number.
#[test]
fn a_forged_number_of_a_write_stops_no_later_one() {
    for (forged, numbers) in [
        (Ceiling::LAST_WRITE - 1, [Ceiling::LAST_WRITE, 2]),
        (Ceiling::LAST_WRITE, [2, 3]),
        (u64::MAX, [2, 3]),
    ] {
        let mut books = bound(16, &["a"]);
        assert_eq!(propose(&mut books, "a", 1), Some(1));
        let forged = Ceiling { epoch: u64::MAX, write: forged, size: cu(1) };
        shown(&mut books, "a", Some(forged));
        let mut known = forged;
        for (wanted, number) in [3, 6].into_iter().zip(numbers) {
            assert_eq!(propose(&mut books, "a", wanted), None);
            let write = books.ceiling_due(&vm("a"), EPOCH).unwrap();
            assert_eq!((write.known, write.next.write), (Some(known), number));
            books.ceiling_written(&vm("a"), write.next);
            shown(&mut books, "a", Some(write.next));
            assert_eq!(request(&mut books, "a", wanted), wanted);
            known = write.next;
        }
    }
}

#[test]
fn ceilings_have_headroom_only_while_those_of_the_node_fit_its_room() {
    let mut books = bound(5, &["a", "b"]);
    for name in ["a", "b"] {
        assert_eq!(propose(&mut books, name, 1), Some(1));
    }
    assert_eq!(propose(&mut books, "a", 3), None);
    assert_eq!(record(&mut books, "a"), 3, "b's ceiling of 2 fills the node");
    assert_eq!(request(&mut books, "a", 3), 3);
    assert_eq!(books.ceilings_to_mend(NOW), []);
    books.set_room(cu(4));
    assert_eq!(books.ceilings_to_mend(NOW), [vm("b")], "at once, for a node that is full");
    assert_eq!(record(&mut books, "b"), 1);
    assert_eq!(books.ceilings_to_mend(NOW), []);
}

#[test]
fn a_ceiling_that_is_too_high_for_minutes_is_lowered() {
    let mut books = bound(16, &["a"]);
    assert_eq!(propose(&mut books, "a", 6), None);
    assert_eq!(record(&mut books, "a"), 8);
    shown(&mut books, "a", Some(Ceiling { epoch: EPOCH, write: 2, size: cu(8) }));
    assert_eq!(request(&mut books, "a", 6), 6);
    gives_back(&mut books, "a", 2);
    let later = |secs| NOW.after(Duration::from_secs(secs));
    assert_eq!(books.ceilings_to_mend(later(10)), []);
    assert_eq!(books.ceilings_to_mend(later(309)), []);
    assert_eq!(books.ceilings_to_mend(later(310)), [vm("a")]);
    let write = books.ceiling_due(&vm("a"), EPOCH).unwrap();
    assert_eq!(write.next.size, cu(3));
    assert_eq!(propose(&mut books, "a", 4), None, "the lower ceiling may be in force");
    books.ceiling_given_up(&vm("a"));
    assert_eq!(request(&mut books, "a", 4), 3, "and may still come to be");
}

#[test]
fn a_ceiling_that_the_api_server_lost_is_written_again() {
    let mut books = bound(8, &["a"]);
    assert_eq!((propose(&mut books, "a", 3), record(&mut books, "a")), (None, 4));
    assert_eq!(request(&mut books, "a", 3), 3);
    shown(&mut books, "a", Some(Ceiling { epoch: EPOCH, write: 1, size: cu(2) }));
    let later = |secs| NOW.after(Duration::from_secs(secs));
    assert_eq!(books.ceilings_to_mend(NOW), [], "a list may be late");
    assert_eq!(books.ceilings_to_mend(later(30)), [vm("a")]);
    assert_eq!(record(&mut books, "a"), 4);
}

#[test]
fn bounds_that_are_lowered_early_lower_no_promise() {
    let mut books = Books::new(cu(8));
    for max in [4, 2] {
        let kept = Kept { max: cu(max), shown: None, has: Resources::ZERO, alone: cu(max) };
        books.enter_pod(vm("a"), record_of(), cu(1), cu(max), Some(kept));
    }
    assert_eq!(reserved(&books), 4);
}

#[test]
fn a_vm_of_another_object_has_no_ceiling_here() {
    let mut books = Books::new(cu(8));
    books.enter_pod(vm("a"), record_of(), cu(1), cu(4), None);
    assert_eq!(propose(&mut books, "a", 4), Some(4));
    assert_eq!((books.ceiling_due(&vm("a"), EPOCH), books.first_ceiling(&vm("a"))), (None, None));
    assert_eq!(books.ceilings_to_mend(NOW), []);
}

/// A node of this many units with VMs of one unit, bound by these books.
fn bound(room: u64, names: &[&str]) -> Books {
    let mut books = Books::new(cu(room));
    for name in names {
        let kept = kept(None);
        books.enter_pod(vm(name), record_of(), cu(1), cu(1), Some(kept));
    }
    for name in names {
        books.ceiling_bound(&vm(name), FirstCeiling::new(EPOCH, cu(2), None));
    }
    books
}

/// A node whose VMs have these ceilings of an earlier leader.
fn restarted(room: u64, ceilings: &[(&str, u64)]) -> Books {
    let mut books = Books::new(cu(room));
    for (name, units) in ceilings {
        let shown = Some(Ceiling { epoch: EPOCH - 1, write: 5, size: cu(*units) });
        books.enter_pod(vm(name), record_of(), cu(1), cu(*units), Some(kept(shown)));
    }
    books
}

/// The object of a VM that may have sixteen units shows this ceiling.
fn kept(shown: Option<Ceiling>) -> Kept {
    Kept { max: cu(16), shown, has: Resources::ZERO, alone: cu(16) }
}

fn shown(books: &mut Books, name: &str, shown: Option<Ceiling>) {
    books.enter_pod(vm(name), record_of(), cu(1), cu(1), Some(kept(shown)));
}

/// The permit; `None`: it waits.
fn propose(books: &mut Books, name: &str, units: u64) -> Option<u64> {
    said(books.propose(NOW, &vm(name), Ask::from(cu(units))).unwrap())
}

fn propose_knowing(books: &mut Books, name: &str, last: u64, units: u64) -> Option<u64> {
    let ask = Ask { last_permit: Some(cu(last)), ..Ask::from(cu(units)) };
    said(books.propose(NOW, &vm(name), ask).unwrap())
}

fn said(proposed: Proposed) -> Option<u64> {
    match proposed {
        Proposed::Granted(granted) => Some(units(granted.permit)),
        Proposed::Waits => None,
    }
}

fn request(books: &mut Books, name: &str, wanted: u64) -> u64 {
    units(books.request(NOW, &vm(name), cu(wanted)).unwrap().permit)
}

/// Its agent says twice that the VM has no more than this.
fn gives_back(books: &mut Books, name: &str, units: u64) {
    for now in [NOW, NOW.after(REQUEST_IS_LATE)] {
        books.request(now, &vm(name), cu(units)).unwrap();
    }
}

/// A write is sent and confirmed; its size.
fn record(books: &mut Books, name: &str) -> u64 {
    let write = books.ceiling_due(&vm(name), EPOCH).unwrap();
    books.ceiling_written(&vm(name), write.next);
    units(write.next.size)
}

fn reserved(books: &Books) -> u64 {
    units(books.reserved())
}

fn units(size: Resources) -> u64 {
    assert_eq!(size, cu(size.cpu.milli() / 1000));
    size.cpu.milli() / 1000
}

fn record_of() -> VmRecord {
    VmRecord { grain: cu(1), ..VmRecord::default() }
}

fn vm(name: &str) -> VmName {
    VmName::on_host(name)
}

fn cu(count: u64) -> Resources {
    Resources::new(MilliCpu::from_cores(count), Bytes::from_gib(count))
}
