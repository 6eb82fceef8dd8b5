//! A VM that is not there: how it stands, in one line.

use crate::api::VmState;
use crate::explain::{Explained, absent, page};
use expect_test::expect;
use windlass_protocol::status::{Booked, NodeStatus};
use windlass_protocol::{Bytes, MilliCpu, Moment, Resources, VmName};

const ROOM: Resources = Resources::new(MilliCpu::from_cores(4), Bytes::from_gib(1));

#[test]
fn a_page_says_how_a_vm_stands_that_is_not_there() {
    let text = [
        stands(Some(VmState::Managed), Vec::new()),
        stands(Some(VmState::Invalid), Vec::new()),
        stands(Some(VmState::Released), vec![booked()]),
        stands(Some(VmState::Removed), vec![booked()]),
        stands(None, vec![booked()]),
    ];
    expect![[r#"
        Now, 2026-11-21T10:00:05Z: db1 is not there: no QEMU serves /run/db1.sock.
        Now, 2026-11-21T10:00:05Z: db1 is not managed, its file is invalid; nothing is reserved for it.
        Now, 2026-11-21T10:00:05Z: db1 is released; 4 vCPU / 1GiB stay reserved for it.
        Now, 2026-11-21T10:00:05Z: db1 is removed; 4 vCPU / 1GiB stay reserved for it.
        Now, 2026-11-21T10:00:05Z: db1 is not managed.
    "#]]
    .assert_eq(&text.concat());
}

#[test]
fn where_the_books_are_the_plugin_s_no_figure_of_them_is_made_up() {
    let vm = VmName::on_host("db1");
    let removed = absent(&vm, VmState::Removed, None, None);
    assert_eq!(removed, "removed; what is reserved for it is in the plugin's books");
}

fn stands(state: Option<VmState>, vms: Vec<Booked>) -> String {
    let text = page(&Explained {
        at: Moment::from_millis(1_795_255_205_000),
        vm: VmName::on_host("db1"),
        decisions: Vec::new(),
        open: None,
        notes: Vec::new(),
        ordered: Vec::new(),
        status: None,
        state,
        monitor: Some("/run/db1.sock".into()),
        node: Some(NodeStatus { room: ROOM, reserved: Resources::ZERO, vms }),
        problems: Vec::new(),
        parked: Vec::new(),
        returning: Vec::new(),
        cpu_limit: None,
    });
    text.lines().filter(|line| line.starts_with("Now")).map(|line| format!("{line}\n")).collect()
}

fn booked() -> Booked {
    let name = VmName::on_host("db1");
    Booked { name, priority: 0, reserved: ROOM, claim: None }
}
