//! What an operator reads where a VM waits for room that others have.

use super::*;
use crate::explain::room::holders;
use windlass_protocol::CpuLimit;

#[test]
fn waiting_for_room_that_an_idle_vm_holds() {
    let vm = VmStatus {
        waiting: vec![Waiting::Room { wanted: size(3, 768), permit: size(1, 768) }],
        permit: Some(size(1, 768)),
        ..loaded()
    };
    let full = |page: &mut Explained| {
        let idle = booked("batch", 0, size(3, 256), None);
        page.node.as_mut().unwrap().vms =
            vec![booked("db1", 0, size(1, 256), Some(size(3, 768))), idle];
        page.parked = vec![Parked { vm: vm_name("batch"), cpu: MilliCpu::from_cores(2) }];
        page.open = Some(grows());
    };
    read(
        vm,
        full,
        expect![[r#"
            2026-11-21T10:00:35Z db1 has 1 vCPU / 256MiB and its goal is 3 vCPU / 768MiB:
              waiting for room, 2 vCPU more.

            Why not more: It waits for room on the node: it wants 3 vCPU / 768MiB and is
              granted 1 vCPU / 768MiB. It gets what others give back, by priority and need.
              Of the node's 4 vCPU, 4 vCPU are reserved: batch has 3 vCPU. batch has parked
              2 vCPU: they stay reserved until the VM ends, because the host does not limit
              its CPU; `windlass vm check` of that VM says why. `cpu_limit = "trust"` in its
              VM file or in host.toml frees them for others, and trusts the guest not to use
              what it has parked.

            Why not less: Load 2.70 over 15s (aim: 0.9 per vCPU) calls for 3 vCPU; memory
              goes along to 768MiB, because sizes move in whole compute units of 1 vCPU /
              256MiB.

            Last changes:
              10:00:05Z going 1 vCPU / 256MiB -> 3 vCPU / 768MiB for 30s: load 2.70 over
                15s, 110MiB of 221MiB used

            `windlass explain db1 --verbose` tells each decision in full.
        "#]],
    );
}

#[test]
fn waiting_for_room_that_comes_back() {
    let vm = VmStatus {
        waiting: vec![Waiting::Room { wanted: size(3, 768), permit: size(1, 256) }],
        permit: Some(size(1, 256)),
        ..loaded()
    };
    let keeps = VmStatus {
        name: vm_name("batch"),
        upper: Some(size(3, 768)),
        waiting: vec![Waiting::Holding { goal: size(1, 256), until: Some(later(75_000)) }],
        ..idle()
    };
    let returning = crate::explain::returned_by_others(&vm.name, &[vm.clone(), keeps]);
    let full = |page: &mut Explained| {
        let idle = booked("batch", 0, size(3, 768), None);
        page.node.as_mut().unwrap().vms =
            vec![booked("db1", 0, size(1, 256), Some(size(3, 768))), idle];
        page.returning = returning;
        page.cpu_limit = Some(CpuLimit::Trust);
    };
    read(
        vm,
        full,
        expect![[r#"
        2026-11-21T10:00:35Z db1 has 1 vCPU / 256MiB and its goal is 3 vCPU / 768MiB:
          waiting for room, 2 vCPU / 512MiB more.

        Why not more: It waits for room on the node: it wants 3 vCPU / 768MiB and is
          granted 1 vCPU / 256MiB. It gets what others give back, by priority and need.
          Of the node's 4 vCPU, 4 vCPU are reserved: batch has 3 vCPU. If their load
          stays as it is, batch returns 2 vCPU from 10:01:20Z on. Of the node's 1.25GiB,
          512MiB are reserved: batch has 768MiB. If their load stays as it is, batch
          returns 512MiB from 10:01:20Z on.

        Why not less: Load 2.70 over 15s (aim: 0.9 per vCPU) calls for 3 vCPU; memory
          goes along to 768MiB, because sizes move in whole compute units of 1 vCPU /
          256MiB.

        Last changes: none.

        `windlass explain db1 --verbose` tells each decision in full.
    "#]],
    );
}

#[test]
fn waiting_for_room_on_one_axis_alone() {
    for (permit, words) in [
        (size(3, 256), "Of the node's 1.25GiB, 512MiB are reserved: batch has 256MiB."),
        (size(1, 768), "Of the node's 4 vCPU, 4 vCPU are reserved: batch has 3 vCPU."),
    ] {
        let vm = VmStatus {
            waiting: vec![Waiting::Room { wanted: size(3, 768), permit }],
            permit: Some(permit),
            ..loaded()
        };
        let mut page = page(vm);
        page.node.as_mut().unwrap().vms = vec![booked("batch", 0, size(3, 256), None)];
        assert_eq!(holders(&page, size(3, 768), permit), [words]);
    }
}

#[test]
fn the_room_of_a_node_and_those_who_have_it_are_told_in_proportion() {
    let (few, many) = (["b"].as_slice(), ["b", "c", "d", "e", "f", "g", "h"].as_slice());
    let sentences: Vec<String> = [(4, 4, few), (5, 4, few), (3, 5, few), (3, 4, many)]
        .into_iter()
        .map(|(wanted, reserved, names)| {
            let mut page = page(loaded());
            page.node.as_mut().unwrap().reserved = size(reserved, 512);
            let vms = (1..).zip(names).map(|(n, name)| booked(name, 0, size(n, 256), None));
            page.node.as_mut().unwrap().vms = vms.collect();
            holders(&page, size(wanted, 256), size(1, 256)).join(" ") + "\n"
        })
        .collect();
    expect![[r#"
        Of the node's 4 vCPU, 4 vCPU are reserved: b has 1 vCPU.
        It wants more than the whole node has, 4 vCPU: b has 1 vCPU.
        Of the node's 4 vCPU, 5 vCPU are reserved, which is more than there is, so no VM grows beyond its reserved CPU: b has 1 vCPU.
        Of the node's 4 vCPU, 4 vCPU are reserved: h has 7 vCPU, g has 6 vCPU, f has 5 vCPU, e has 4 vCPU, d has 3 vCPU, 2 others have less.
    "#]].assert_eq(&sentences.concat());
}
