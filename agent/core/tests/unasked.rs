//! What an agent tells of a VM for which it asks no permit.
#![expect(clippy::unwrap_used, reason = "tests")]

#[expect(dead_code, reason = "each test of one scaler needs a part of it")]
#[path = "support/vm.rs"]
mod vm;

use vm::{Vm, seen};
use windlass_agent_core::sentences::told_unasked;
use windlass_agent_core::{Action, Call, Event, Order};
use windlass_protocol::plugin::Why;

/// A plugin that is asked for no permit shows people what it was told.
#[test]
fn an_agent_that_asks_for_no_permit_tells_why_and_no_longer_once_it_asks() {
    let mut vm = Vm::seen_with(2);
    let why = |vm: &Vm| told_unasked(&vm.scaler.status(vm.now), vm.now).map(|told| told.why);
    assert_eq!(why(&vm), Some(Why::NoInformant));
    let ours = vm.registered();
    assert_eq!(why(&vm), Some(Why::NoInformant), "it has not said yet whose turn it is");
    vm.scaler.call(vm.now, Call::Resume(ours));
    vm.checked();
    vm.answered(Action::Look, Event::Seen(seen(2)));
    assert_eq!(why(&vm), None, "{:?}", vm.scaler.waiting(vm.now));
    vm.tell(Event::Ordered(Order::Freeze));
    assert_eq!(why(&vm), Some(Why::Paused));
}
