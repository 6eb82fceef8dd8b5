//! A VM that is about to be moved: its agent is told, and its size stays.

use super::MOVING;
use super::bench::{BASE, Bench};
use super::said::size;
use crate::case::{Case, Verdict, ensure};

pub(super) const CASES: [Case<Bench>; 2] = [
    Case::new("a-vm-that-is-moved-is-told-so", &["P-MIG-1", "P-MIG-3"], told).needing(MOVING),
    Case::new("a-vm-that-is-moved-keeps-its-size", &["P-MIG-2"], kept).needing(MOVING),
];

fn told(bench: &Bench) -> Verdict {
    let permit = bench.permitted(bench.moving()?, BASE)?;
    ensure(permit.migrate, || "migrate is not in the answer for a VM that is moved".to_owned())?;
    ensure(permit.size == BASE, || {
        format!("a VM that is moved has {BASE:?} and is permitted {:?}", permit.size)
    })?;
    bench.settle()?;
    let permit = bench.permitted(&bench.vm, BASE)?;
    ensure(!permit.migrate, || "migrate is in the answer for a VM that stays".to_owned())
}

fn kept(bench: &Bench) -> Verdict {
    let vm = bench.moving()?;
    bench.permitted(vm, BASE)?;
    let words = "cannot change resources: agent has already been informed that pod is migrating";
    for wanted in [size(2000, 8), size(1000, 9), size(1000, 7), size(0, 8)] {
        let body = bench.said(vm, wanted).body();
        bench.post(&body)?.refuses(&format!("POST {body}"), 400, words)?;
    }
    let permit = bench.permitted(vm, BASE)?.size;
    ensure(permit == BASE, || format!("as much as it has was asked for, {permit:?} permitted"))
}
