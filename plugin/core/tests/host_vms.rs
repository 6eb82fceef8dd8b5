//! Which VMs of a host are in the books: presumed, seen, counted, refuted, gone.

use std::time::Duration;
use windlass_plugin_core::{Books, HostVms, VmRecord};
use windlass_protocol::vm::{Bounds, LoadWindow, Mode, Policy, ScaleDown, Target};
use windlass_protocol::{Bytes, MilliCpu, Moment, Resources, VmInfo, VmName};

const NOW: Moment = Moment::from_millis(1_000_000);

#[test]
fn a_presumed_vm_counts_with_the_most_until_it_is_seen_or_refuted() {
    let (mut vms, mut books) = (HostVms::default(), Books::new(cu(8)));
    for ceiling in [cu(4), cu(2)] {
        vms.presume(&mut books, &name(), VmRecord::of(&info()), ceiling);
        assert_eq!(books.reserved_for(&name()), Some(cu(4)));
    }
    assert!(vms.is_presumed(&name()));
    vms.entered(&mut books, &info(), Some(cu(2)));
    assert_eq!((books.reserved_for(&name()), vms.presumed().next()), (Some(cu(2)), None));
    // What was seen is not presumed, and not refuted.
    vms.presume(&mut books, &name(), VmRecord::of(&info()), cu(4));
    vms.refute(&mut books, &name());
    assert_eq!(books.reserved_for(&name()), Some(cu(2)));
    vms.left(&mut books, &name());
    assert_eq!(books.reserved_for(&name()), None);
    vms.presume(&mut books, &name(), VmRecord::of(&info()), cu(4));
    vms.refute(&mut books, &name());
    assert_eq!((books.reserved_for(&name()), vms.is_presumed(&name())), (None, false));
}

#[test]
fn a_vm_whose_hypervisor_does_not_say_counts_with_its_maximum() {
    let (mut vms, mut books) = (HostVms::default(), Books::new(cu(8)));
    vms.entered(&mut books, &info(), None);
    assert_eq!(books.reserved_for(&name()), Some(info().bounds.max));
    vms.witnessed(&mut books, &name(), cu(1));
    assert_eq!(books.reserved_for(&name()), Some(cu(1)));
}

#[test]
fn a_vm_that_is_counted_holds_exactly_that() {
    let (mut vms, mut books) = (HostVms::default(), Books::new(cu(8)));
    vms.counted(&mut books, &name(), cu(3));
    assert_eq!(books.reserved_for(&name()), Some(cu(3)), "it was never entered");
    vms.entered(&mut books, &info(), Some(cu(3)));
    let granted = books.request(NOW.after(Duration::from_secs(1)), &name(), cu(4)).unwrap();
    assert_eq!(granted.permit, cu(4));
    vms.counted(&mut books, &name(), cu(2));
    assert_eq!(books.reserved_for(&name()), Some(cu(2)), "the permit goes");
    assert_eq!(books.record(&name()), Some(&VmRecord::of(&info())), "what it should be stays");
    let higher = VmInfo { priority: 5, ..info() };
    vms.updated(&mut books, &higher);
    assert_eq!(books.record(&name()), Some(&VmRecord::of(&higher)));
}

fn info() -> VmInfo {
    VmInfo {
        name: name(),
        bounds: Bounds { min: cu(1), max: cu(4) },
        target: Target::USUAL,
        policy: Policy::LoadAverage,
        load_window: LoadWindow::OneMinute,
        priority: 0,
        mode: Mode::Act,
        memory_slot: VmInfo::DEFAULT_MEMORY_SLOT,
        paused_until: None,
        scale_down: ScaleDown::AT_ONCE,
        cpu_limit: None,
    }
}

fn name() -> VmName {
    VmName::on_host("a")
}

fn cu(count: u64) -> Resources {
    Resources { cpu: MilliCpu::from_cores(count), mem: Bytes::from_gib(count) }
}
