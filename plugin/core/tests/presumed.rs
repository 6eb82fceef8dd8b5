//! VMs that nobody sees: what they count with before and after their agents speak.

use windlass_plugin_core::ask::Ask;
use windlass_plugin_core::{Books, VmRecord};
use windlass_protocol::timing::REQUEST_IS_LATE;
use windlass_protocol::{Bytes, MilliCpu, Moment, Resources, VmName};

const NOW: Moment = Moment::from_millis(1_000_000);

#[test]
fn earlier_promises_are_kept_and_no_more_is_given_for_a_ceiling() {
    // Each may have all of the node; earlier books had promised half of it to each.
    let mut books = node(&["a", "b"]);
    assert!(books.is_over());
    for vm in ["a", "b"] {
        let granted = ask(&mut books, vm, cu(4), Some(cu(2)));
        assert_eq!(granted, cu(2), "{vm} was promised this, and nothing is free");
    }
    assert!(!books.is_over());
    assert_eq!(books.reserved(), cu(4));
    assert_eq!(ask(&mut books, "a", cu(1), Some(cu(2))), cu(1));
    assert_eq!(ask(&mut books, "b", cu(4), Some(cu(2))), cu(2), "`a` may not have heard that");
    assert_eq!(ask(&mut books, "a", cu(1), Some(cu(1))), cu(1));
    assert_eq!(ask(&mut books, "b", cu(4), Some(cu(2))), cu(3));
}

#[test]
fn who_names_no_last_permit_may_have_what_he_asks_for() {
    let mut books = node(&["a", "b"]);
    let later = NOW.after(REQUEST_IS_LATE);
    for (now, reserved) in [(NOW, [4, 4]), (later, [3, 1])] {
        for ((vm, wanted), reserved) in [("a", 3), ("b", 1)].into_iter().zip(reserved) {
            assert_eq!(ask_at(now, &mut books, vm, cu(wanted), None), cu(wanted));
            assert_eq!(books.reserved_for(&VmName::on_host(vm)), Some(cu(reserved)), "{vm}");
        }
    }
    let granted = ask_at(later, &mut books, "b", cu(2), None);
    assert_eq!(granted, cu(1), "from here on it is a want");
}

#[test]
fn a_vm_that_was_presumed_to_have_more_than_there_is_gets_all_that_there_is() {
    let mut books = node(&["a"]);
    books.presume(VmName::on_host("a"), VmRecord { grain: cu(1), ..VmRecord::default() }, cu(8));
    assert_eq!(ask(&mut books, "a", cu(1), None), cu(1));
    assert!(books.is_over(), "it may have more");
    assert_eq!(ask(&mut books, "a", cu(8), Some(cu(1))), cu(4), "it heard the answer");
    assert!(!books.is_over());
}

#[test]
fn what_is_seen_takes_the_place_of_what_was_presumed() {
    let mut books = node(&["a"]);
    let vm = VmName::on_host("a");
    books.witness(&vm, cu(2));
    assert_eq!(books.reserved_for(&vm), Some(cu(2)));
    books.presume(vm.clone(), VmRecord::default(), cu(4));
    assert_eq!(books.reserved_for(&vm), Some(cu(2)), "it was seen");
    assert!(!books.is_spoken_for(&vm));
    assert_eq!(ask(&mut books, "a", cu(1), None), cu(1));
    books.presume(vm.clone(), VmRecord::default(), cu(4));
    assert_eq!(books.reserved_for(&vm), Some(cu(1)), "its agent has spoken");
    assert!(books.is_spoken_for(&vm) && !books.is_spoken_for(&VmName::on_host("b")));
}

/// A node of 4 CUs with these VMs, each of which may have been promised all of it.
fn node(vms: &[&str]) -> Books {
    let mut books = Books::new(cu(4));
    for vm in vms {
        let record = VmRecord { grain: cu(1), ..VmRecord::default() };
        books.presume(VmName::on_host(*vm), record, cu(4));
    }
    books
}

fn ask(
    books: &mut Books,
    vm: &str,
    wanted: Resources,
    last_permit: Option<Resources>,
) -> Resources {
    ask_at(NOW, books, vm, wanted, last_permit)
}

fn ask_at(
    now: Moment,
    books: &mut Books,
    vm: &str,
    wanted: Resources,
    last_permit: Option<Resources>,
) -> Resources {
    let ask = Ask { wanted, last_permit, ..Ask::default() };
    books.request(now, &VmName::on_host(vm), ask).expect("the VM is known").permit
}

fn cu(count: u64) -> Resources {
    Resources { cpu: MilliCpu::from_cores(count), mem: Bytes::from_gib(count) }
}
