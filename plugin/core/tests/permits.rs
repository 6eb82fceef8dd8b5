//! What the books make of what agents of different versions say.

use windlass_plugin_core::{Ask, Books, BooksError, VmRecord};
use windlass_protocol::{Bytes, ComputeUnit, MilliCpu, Moment, Resources, VmName};

const NOW: Moment = Moment::from_millis(1_000_000);

#[test]
fn the_last_permit_is_promised_again_before_anybody_grows() {
    let mut books = rebuilt(cu(2));
    books.update(&vm("b"), VmRecord { priority: 9, ..VmRecord::default() });
    books.request(NOW, &vm("b"), cu(4)).unwrap();
    // By now there is room, and `b` goes first.
    books.set_room(cu(4));
    let after = |ask: Ask| {
        let mut books = books.clone();
        let granted = books.request(NOW, &vm("a"), ask).unwrap();
        assert_eq!(books.reserved_for(&vm("a")), Some(granted.permit));
        granted.permit
    };
    assert_eq!(after(cu(3).into()), cu(1), "that is growth");
    assert_eq!(after(Ask { last_permit: Some(cu(3)), ..cu(3).into() }), cu(3), "that is not");
    assert_eq!(after(Ask { last_permit: Some(cu(2)), ..cu(3).into() }), cu(2));
    assert_eq!(after(Ask { last_permit: Some(cu(3)), ..cu(2).into() }), cu(2), "it wants no more");
}

#[test]
fn no_more_is_promised_again_than_is_free() {
    for (room, permit) in [(cu(2), cu(1)), (cu(3), cu(2)), (cu(1), cu(1)), (cu(9), cu(4))] {
        let mut books = rebuilt(room);
        let ask = Ask { last_permit: Some(cu(4)), ..cu(4).into() };
        assert_eq!(books.request(NOW, &vm("a"), ask).unwrap().permit, permit, "{room}");
    }
}

#[test]
fn a_last_permit_means_nothing_once_an_agent_has_spoken() {
    let mut books = rebuilt(cu(6));
    books.request(NOW, &vm("a"), cu(1)).unwrap();
    books.request(NOW, &vm("b"), cu(5)).unwrap();
    books.request(NOW, &vm("b"), cu(4)).unwrap();
    let high = VmRecord { priority: 9, ..VmRecord::default() };
    books.update(&vm("b"), high);
    books.request(NOW, &vm("b"), cu(5)).unwrap();
    let ask = Ask { last_permit: Some(cu(2)), ..cu(2).into() };
    assert_eq!(books.request(NOW, &vm("a"), ask).unwrap().permit, cu(1));
}

#[test]
fn a_vm_without_a_grain_grows_in_its_agent_s_compute_units() {
    let mut books = rebuilt(Resources { cpu: MilliCpu::from_milli(4_750), ..cu(5) });
    let unit = ComputeUnit::new(MilliCpu::from_milli(500), Bytes::from_mib(512));
    let ask = Ask { unit, ..cu(6).into() };
    let permit = books.request(NOW, &vm("a"), ask).unwrap().permit;
    assert_eq!(permit.cpu, MilliCpu::from_milli(3_500), "3.75 are free, the last quarter is left");
}

#[test]
fn what_is_said_in_bytes_takes_the_whole_of_its_last_slot() {
    let asked = Resources { mem: Bytes::from_mib(1024 + 16), ..cu(1) };
    for (room, permit) in [(2 * 1024 + 127, cu(1)), (2 * 1024 + 128, asked)] {
        let mut books = rebuilt(Resources { mem: Bytes::from_mib(room), ..cu(2) });
        assert_eq!(books.request(NOW, &vm("a"), asked).unwrap().permit, permit, "{room} MiB");
        assert!(!books.is_over(), "{room} MiB");
    }
}

#[test]
fn an_agent_of_whole_cpus_leaves_the_rest_to_others() {
    let mut books = rebuilt(Resources { cpu: MilliCpu::from_milli(3_500), ..cu(4) });
    let ask = Ask { whole_cpus: true, ..cu(3).into() };
    assert_eq!(books.request(NOW, &vm("a"), ask).unwrap().permit.cpu, cu(2).cpu);
    let half = Resources { cpu: MilliCpu::from_milli(1_500), ..cu(1) };
    let later = NOW.after(windlass_protocol::timing::CLAIM_LASTS);
    assert_eq!(books.request(later, &vm("b"), half).unwrap().permit, half);
}

#[test]
fn a_part_of_a_vcpu_stays_reserved_where_an_agent_cannot_be_told_of_it() {
    let mut books = Books::new(cu(2));
    let part = Resources { cpu: MilliCpu::from_milli(800), ..cu(1) };
    books.enter(vm("a"), VmRecord::default(), part);
    books.enter(
        vm("b"),
        VmRecord::default(),
        Resources { cpu: MilliCpu::from_milli(1_200), ..cu(1) },
    );
    assert_eq!(books.request(NOW, &vm("a"), part).unwrap().permit, part);
    let ask = Ask { whole_cpus: true, ..cu(1).into() };
    assert_eq!(books.request(NOW, &vm("a"), ask).unwrap().permit.cpu, MilliCpu::ZERO);
    assert_eq!(books.reserved_for(&vm("a")), Some(part));
}

/// Who has much competes for what it lacks, not for what it has.
#[test]
fn no_more_is_kept_for_another_than_it_lacks() {
    let mut books = Books::new(cu(7));
    for (name, has) in [("a", 4), ("b", 1), ("c", 2)] {
        books.enter(vm(name), VmRecord::default(), cu(has));
        assert_eq!(books.request(NOW, &vm(name), cu(has)).unwrap().permit, cu(has));
    }
    for (name, has) in [("a", 4), ("b", 1)] {
        assert_eq!(books.request(NOW, &vm(name), cu(has + 2)).unwrap().permit, cu(has));
    }
    books.request(NOW, &vm("c"), cu(0)).unwrap();
    assert_eq!(books.request(NOW, &vm("b"), cu(3)).unwrap().permit, cu(2), "half of two");
}

#[test]
fn a_vm_that_is_about_to_be_moved_gets_no_more_and_then_keeps_its_size() {
    let mut books = rebuilt(cu(6));
    books.set_moving(&vm("a"), true);
    let told = books.request(NOW, &vm("a"), cu(3)).unwrap();
    assert!(told.moving && told.permit == cu(1) && !told.short.is_empty());
    let refused = books.request(NOW, &vm("a"), cu(2)).unwrap_err();
    assert!(matches!(refused, BooksError::Moving { .. }), "{refused}");
    assert!(books.request(NOW, &vm("a"), cu(1)).unwrap().moving);
    // Nothing is kept for it meanwhile.
    assert_eq!(books.request(NOW, &vm("b"), cu(5)).unwrap().permit, cu(5));
    books.set_moving(&vm("a"), false);
    assert!(!books.request(NOW, &vm("a"), cu(1)).unwrap().moving);
}

/// Books after a restart: two VMs that were seen to have one unit, and nobody has spoken.
fn rebuilt(room: Resources) -> Books {
    let mut books = Books::new(room);
    for name in ["a", "b"] {
        books.enter(vm(name), VmRecord::default(), cu(1));
    }
    books
}

fn vm(name: &str) -> VmName {
    VmName::on_host(name)
}

fn cu(count: u64) -> Resources {
    Resources { cpu: MilliCpu::from_cores(count), mem: Bytes::from_gib(count) }
}
