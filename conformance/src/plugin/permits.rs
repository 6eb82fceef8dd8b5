//! What is permitted: less, as much, more, too much.

use super::bench::{ALL, BASE, Bench};
use super::said::{Said, Size, size};
use crate::case::{Case, Verdict, ensure};
use crate::versions::{PLUGIN, Span};

pub(super) const CASES: [Case<Bench>; 11] = [
    Case::new("less-is-taken-back-at-once", &["P-PRM-1"], less),
    Case::new("as-much-is-confirmed", &["P-PRM-2"], as_much),
    Case::new("more-is-permitted-where-there-is-room", &["P-PRM-3"], more),
    Case::new("too-much-is-permitted-in-part", &["P-PRM-3"], too_much),
    Case::new("a-node-is-given-out-once", &["P-PRM-4"], once),
    Case::new("the-axes-are-answered-by-themselves", &["P-PRM-1", "P-PRM-3"], by_axis),
    Case::new("a-request-said-twice-is-permitted-no-less", &["P-PRM-5"], twice),
    Case::new("an-increase-is-rounded-down-to-whole-cpus", &["P-PRM-6"], rounded)
        .within(Span::up_to(2)),
    Case::new("nothing-may-be-asked-for", &["P-PRM-9"], nothing),
    Case::new("a-last-permit-gives-no-more-than-is-asked", &["P-REQ-4"], last_permit)
        .within(Span::from(4)),
    Case::new("load-changes-no-permit", &["P-REQ-5"], load),
];

/// Asks, and compares.
fn is_permitted(bench: &Bench, wanted: Size, expected: Size) -> Verdict {
    let permit = bench.permitted(&bench.vm, wanted)?.size;
    ensure(permit == expected, || {
        format!("{wanted:?} was asked for, {permit:?} permitted, {expected:?} was expected")
    })
}

/// What the VM can have while the other keeps what it has.
fn most(bench: &Bench) -> Result<Size, crate::Fault> {
    let most = bench.permitted(&bench.vm, ALL)?.size;
    bench.permitted(&bench.vm, BASE)?;
    Ok(most)
}

fn less(bench: &Bench) -> Verdict {
    bench.settle()?;
    is_permitted(bench, size(2000, 12), size(2000, 12))?;
    is_permitted(bench, size(1000, 6), size(1000, 6))?;
    is_permitted(bench, size(0, 2), size(0, 2))
}

fn as_much(bench: &Bench) -> Verdict {
    bench.settle()?;
    is_permitted(bench, BASE, BASE)?;
    is_permitted(bench, BASE, BASE)
}

fn more(bench: &Bench) -> Verdict {
    bench.settle()?;
    is_permitted(bench, size(2000, 9), size(2000, 9))?;
    is_permitted(bench, size(2000, 9), size(2000, 9))
}

fn too_much(bench: &Bench) -> Verdict {
    bench.settle()?;
    let permit = bench.permitted(&bench.vm, ALL)?.size;
    let within = |low: u64, found: u64, high: u64| (low..=high).contains(&found);
    let fits =
        within(BASE.milli, permit.milli, ALL.milli) && within(BASE.slots, permit.slots, ALL.slots);
    ensure(fits, || {
        format!("{ALL:?} was asked for, {permit:?} permitted, {BASE:?} or more was expected")
    })?;
    // What was permitted is kept: it is confirmed.
    is_permitted(bench, permit, permit)
}

fn once(bench: &Bench) -> Verdict {
    bench.settle_and_free()?;
    let first = bench.permitted(&bench.vm, ALL)?.size;
    let other = bench.permitted(&bench.other, ALL)?.size;
    ensure(other == BASE, || {
        format!(
            "{} has {first:?}, all that there is, and {} is permitted {other:?}",
            bench.vm, bench.other
        )
    })?;
    is_permitted(bench, BASE, BASE)?;
    bench.is_free(&[&bench.vm], BASE)?;
    let other = bench.permitted(&bench.other, ALL)?.size;
    ensure(other == first, || {
        format!(
            "{} gave back all but {BASE:?}, {first:?} can be had, {} is permitted {other:?}",
            bench.vm, bench.other
        )
    })?;
    bench.permitted(&bench.other, BASE)?;
    bench.is_free(&[&bench.other], BASE)
}

fn by_axis(bench: &Bench) -> Verdict {
    bench.settle()?;
    is_permitted(bench, size(0, 12), size(0, 12))?;
    is_permitted(bench, size(2000, 4), size(2000, 4))?;
    let most = most(bench)?;
    is_permitted(bench, size(ALL.milli, 8), size(most.milli, 8))?;
    is_permitted(bench, size(1000, ALL.slots), size(1000, most.slots))
}

fn twice(bench: &Bench) -> Verdict {
    bench.settle()?;
    for wanted in [size(2000, 10), ALL] {
        let first = bench.permitted(&bench.vm, wanted)?.size;
        let again = bench.permitted(&bench.vm, wanted)?.size;
        ensure(again.milli >= first.milli && again.slots >= first.slots, || {
            format!("{wanted:?} was permitted {first:?}, and said again {again:?}")
        })?;
    }
    Ok(())
}

fn rounded(bench: &Bench) -> Verdict {
    bench.settle()?;
    // Only a plugin that speaks v2.0 can have given out parts.
    let newer = bench.in_version(PLUGIN[2]);
    if newer.permitted(&bench.other, size(1250, 8)).is_err() {
        return Ok(());
    }
    let parts = newer.permitted(&bench.vm, ALL)?.size;
    newer.permitted(&bench.vm, BASE)?;
    let whole = bench.permitted(&bench.vm, ALL)?.size;
    let expected = size(parts.milli / 1000 * 1000, parts.slots);
    newer.permitted(&bench.other, BASE)?;
    ensure(whole == expected, || {
        format!(
            "{parts:?} is permitted in v2.0, and {whole:?} in {}, where {expected:?} was expected",
            bench.version
        )
    })
}

fn nothing(bench: &Bench) -> Verdict {
    bench.settle_and_free()?;
    let before = most(bench)?;
    let none = size(0, 0);
    bench.permitted(&bench.other, none)?;
    bench.is_free(&[&bench.other], none)?;
    let after = most(bench)?;
    ensure(after == size(before.milli + BASE.milli, before.slots + BASE.slots), || {
        format!(
            "{} asked for nothing: {before:?} could be had before, and {after:?} after",
            bench.other
        )
    })?;
    is_permitted(bench, none, none)?;
    bench.is_free(&[&bench.vm], none)
}

fn last_permit(bench: &Bench) -> Verdict {
    bench.settle()?;
    let most = most(bench)?;
    let (said, large) = (bench.said(&bench.vm, BASE), bench.said(&bench.vm, ALL));
    let last = format!(r#"{{"vCPUs":{},"mem":{}}}"#, large.cpu, large.mem);
    for (wanted, expected) in [(said, BASE), (large, most)] {
        let body = Said { last_permit: last.clone(), ..wanted }.body();
        let permit = bench.read(&bench.post(&body)?, &format!("POST {body}"))?.size;
        ensure(permit == expected, || {
            format!("POST {body}: permitted {permit:?}, {expected:?} was expected")
        })?;
    }
    let body = Said { last_permit: "7".to_owned(), ..bench.said(&bench.vm, BASE) }.body();
    bench.post(&body)?.refuses(&format!("POST {body}"), 400, "bad JSON")
}

fn load(bench: &Bench) -> Verdict {
    bench.settle()?;
    let most = most(bench)?;
    for metrics in ["0", "0.01", "100", "3e38"] {
        let said = bench.said(&bench.vm, ALL);
        let body = Said { metrics: said.metrics.replace("0.5", metrics), ..said }.body();
        let permit = bench.read(&bench.post(&body)?, &format!("POST {body}"))?.size;
        bench.permitted(&bench.vm, BASE)?;
        ensure(permit == most, || {
            format!("POST {body}: permitted {permit:?}, {most:?} was expected")
        })?;
    }
    Ok(())
}
