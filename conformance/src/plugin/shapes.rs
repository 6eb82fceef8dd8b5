//! How amounts are written and read, and which keys an answer has.

use super::bench::{ALL, BASE, Bench};
use super::said::{Said, bytes, size};
use crate::case::{Case, Verdict, ensure};
use crate::versions::{PLUGIN, Span};
use serde_json::Value;

pub(super) const CASES: [Case<Bench>; 9] = [
    Case::new("an-answer-has-the-keys-of-its-version", &["P-UNT-1", "P-MIG-1", "J-ERR-1"], keys),
    Case::new("whole-cpus-are-bare-and-parts-are-quoted", &["J-CPU-1"], cpus).within(Span::from(3)),
    Case::new("cpu-is-read-in-every-spelling", &["J-CPU-1"], cpu_spellings),
    Case::new("cpu-that-does-not-fit-is-broken", &["J-CPU-1"], misfits).ours(),
    Case::new("memory-is-counted-in-slots", &["P-REQ-2", "P-REQ-1"], slots).within(Span::up_to(5)),
    Case::new("memory-is-counted-in-bytes", &["P-REQ-3", "P-REQ-1"], in_bytes)
        .within(Span::from(6)),
    Case::new("memory-below-zero-is-broken", &["P-REQ-3"], below_zero).ours().within(Span::from(6)),
    Case::new("the-unit-is-told-to-old-agents", &["P-UNT-1"], unit).within(Span::up_to(4)),
    Case::new("the-unit-is-told-in-whole-cpus", &["P-UNT-2"], whole_unit).within(Span::up_to(2)),
];

fn keys(bench: &Bench) -> Verdict {
    bench.settle()?;
    let body = bench.said(&bench.vm, BASE).body();
    let answer = bench.post(&body)?;
    let asked = format!("POST {body}");
    let found = answer.json(&asked)?;
    let keys = |value: &Value| -> Vec<String> {
        value.as_object().map(|object| object.keys().cloned().collect()).unwrap_or_default()
    };
    let expected: &[&str] =
        if bench.version.number < 5 { &["permit", "resourceUnit"] } else { &["permit"] };
    ensure(keys(&found) == expected, || {
        format!("{asked}: the keys of {found} are not {expected:?}")
    })?;
    ensure(keys(&found["permit"]) == ["vCPUs", "mem"], || {
        format!("{asked}: the keys of permit in {found} are not vCPUs, mem")
    })?;
    let kind = answer.header("content-type").unwrap_or_default();
    ensure(kind.starts_with("application/json"), || {
        format!("{asked}: Content-Type is {kind:?}, application/json was expected")
    })
}

fn cpus(bench: &Bench) -> Verdict {
    bench.settle()?;
    for milli in [250, 1000, 750, 1250, 2000] {
        let wanted = size(milli, 8);
        // Only amounts that are written as they should be are read.
        let permit = bench.permitted(&bench.vm, wanted)?.size;
        ensure(permit == wanted, || format!("{wanted:?} was asked for, {permit:?} permitted"))?;
    }
    Ok(())
}

fn cpu_spellings(bench: &Bench) -> Verdict {
    bench.settle()?;
    let said = bench.said(&bench.vm, BASE);
    let permit = |cpu: &str| {
        let body = Said { cpu: cpu.to_owned(), ..said.clone() }.body();
        bench.read(&bench.post(&body)?, &format!("POST {body}"))
    };
    for cpu in ["1", "\"1\"", "\"1000m\"", "1.0", "1e0", "\"0.001k\""] {
        let milli = permit(cpu)?.size.milli;
        ensure(milli == 1000, || format!("vCPUs {cpu} was asked for, {milli}m permitted"))?;
    }
    if bench.version.number >= 3 {
        for (cpu, expected) in [("0.25", 250), ("\"0.0001\"", 1), ("\"250m\"", 250)] {
            let milli = permit(cpu)?.size.milli;
            ensure(milli == expected, || format!("vCPUs {cpu} was asked for, {milli}m permitted"))?;
        }
    }
    broken(bench, &["\"x\"", "true", "[]", "\"\""])
}

fn misfits(bench: &Bench) -> Verdict {
    bench.settle()?;
    broken(bench, &["-1", "5000000"])
}

/// Whether a request for any of these is no message.
fn broken(bench: &Bench, cpus: &[&str]) -> Verdict {
    for cpu in cpus {
        let body = Said { cpu: (*cpu).to_owned(), ..bench.said(&bench.vm, BASE) }.body();
        bench.post(&body)?.refuses(&format!("POST {body}"), 400, "bad JSON")?;
    }
    Ok(())
}

fn slots(bench: &Bench) -> Verdict {
    bench.settle()?;
    for slots in [4, 0, 9, 8] {
        let wanted = size(1000, slots);
        let permit = bench.permitted(&bench.vm, wanted)?.size;
        ensure(permit == wanted, || format!("{wanted:?} was asked for, {permit:?} permitted"))?;
    }
    Ok(())
}

fn in_bytes(bench: &Bench) -> Verdict {
    bench.settle()?;
    let said = bench.said(&bench.vm, BASE);
    let amount = 8 * bench.slot;
    let kib = amount / 1024;
    for mem in [bytes(amount), amount.to_string(), format!("\"{amount}\""), format!("\"{kib}Ki\"")]
    {
        let body = Said { mem: mem.clone(), ..said.clone() }.body();
        let slots = bench.read(&bench.post(&body)?, &format!("POST {body}"))?.size.slots;
        ensure(slots == 8, || format!("mem {mem} was asked for, {slots} slots permitted"))?;
    }
    broken_memory(bench, &["\"1Qi\"", "true", "{}"])
}

fn below_zero(bench: &Bench) -> Verdict {
    bench.settle()?;
    broken_memory(bench, &["-1", "\"-1Gi\""])
}

/// Whether a request for any of these is no message.
fn broken_memory(bench: &Bench, amounts: &[&str]) -> Verdict {
    for mem in amounts {
        let body = Said { mem: (*mem).to_owned(), ..bench.said(&bench.vm, BASE) }.body();
        bench.post(&body)?.refuses(&format!("POST {body}"), 400, "bad JSON")?;
    }
    Ok(())
}

fn unit(bench: &Bench) -> Verdict {
    bench.settle()?;
    let first = bench.permitted(&bench.vm, BASE)?.unit;
    ensure(first.is_some_and(|unit| unit.milli > 0 && unit.slots > 0), || {
        format!("resourceUnit is {first:?}: amounts above zero were expected")
    })?;
    let again = bench.permitted(&bench.other, ALL)?.unit;
    ensure(again == first, || format!("resourceUnit is {first:?}, and then {again:?}"))
}

fn whole_unit(bench: &Bench) -> Verdict {
    bench.settle()?;
    let told = bench.permitted(&bench.vm, BASE)?.unit;
    let Some(told) = told.filter(|unit| unit.milli.is_multiple_of(1000)) else {
        return ensure(false, || format!("resourceUnit is {told:?}: whole CPUs were expected"));
    };
    // A plugin that does not speak v2.0 has no unit of parts.
    let newer = bench.in_version(PLUGIN[2]);
    let Ok(answered) = newer.permitted(&bench.vm, BASE) else { return Ok(()) };
    let Some(real) = answered.unit else { return Ok(()) };
    let factor = told.milli / real.milli.max(1);
    let least = (1..).find(|times| (real.milli * times).is_multiple_of(1000));
    ensure(least == Some(factor) && told.slots == real.slots * factor, || {
        format!("resourceUnit is {told:?}, which is not the least whole multiple of {real:?}")
    })
}
