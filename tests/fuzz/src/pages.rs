//! Metrics that the agent reads, and the host's socket.
//!
//! An input is the text of a page of metrics, figures that a page of ours is made of, or the
//! bytes of one connection to the socket of a host without VMs.

use crate::input::Input;
use crate::{talk, words};
use windlass_agent_core::metrics_text::parse;
use windlass_agent_host::api::Refusal;
use windlass_agent_host::http::idle;
use windlass_informant_core::Averages;
use windlass_informant_core::event::Memory;
use windlass_informant_core::wire::Figures;
use windlass_informant_core::wire::figures::Cpus;
use windlass_kit::tasks::Tasks;
use windlass_protocol::{Bytes, ComputeUnit, MilliCpu, Moment};
use windlass_scaling::Sample;

pub(crate) fn play(input: &[u8]) {
    let mut input = Input::new(input);
    match input.byte() % 4 {
        0 => page(&String::from_utf8_lossy(input.rest())),
        1 => figures(&mut input),
        _ => converse(input.rest()),
    }
}

/// Law 5, missing is not zero: what is read is a figure, or nothing; and what means nothing to us
/// changes nothing. A name of ours means that our informant wrote the page.
fn page(text: &str) {
    let sample = parse(text, Moment::default());
    is_sane(&sample);
    let noisy = format!("# HELP {}\nnode_other 1\n\n{text}\nnode_load15 7\n", text.len());
    assert_eq!(parse(&noisy, Moment::default()), sample, "another name counts");
    // A page that is said twice says nothing new.
    assert_eq!(parse(&format!("{text}\n{text}"), Moment::default()), sample, "said twice");
}

fn is_sane(sample: &Sample) {
    let loads = sample.loads;
    let all = [loads.five_seconds, loads.fifteen_seconds, loads.one_minute, loads.five_minutes];
    for load in all.into_iter().flatten() {
        assert!(load.is_finite() && load >= 0.0, "{load}");
    }
    for cpu in [sample.online, sample.reach].into_iter().flatten() {
        assert!(cpu >= MilliCpu::from_cores(1) && cpu <= MilliCpu::from_cores(1_000_000), "{cpu}");
    }
}

/// What an informant writes is what an agent reads.
fn figures(input: &mut Input<'_>) {
    let load = |input: &mut Input<'_>| f64::from(input.short()) / 100.0;
    let seconds = Averages {
        five_seconds: input.is().then(|| load(input)),
        fifteen_seconds: input.is().then(|| load(input)),
    };
    let minutes = input.is().then(|| [load(input), load(input), load(input)]);
    let cpus = input.is().then(|| Cpus {
        present: usize::from(input.byte()),
        online: usize::from(input.byte()),
        reach: u32::from(input.byte()),
    });
    let memory = input.is().then(|| Memory {
        total: input.memory(),
        available: input.memory(),
        free: input.memory(),
        overhead: None,
    });
    let sample =
        parse(&Figures { minutes, seconds, cpus, memory }.page().text(), Moment::default());
    is_sane(&sample);
    assert_eq!(sample.loads.five_seconds, seconds.five_seconds);
    assert_eq!(sample.loads.fifteen_seconds, seconds.fifteen_seconds);
    assert_eq!(sample.loads.one_minute, minutes.map(|loads| loads[0]));
    assert_eq!(sample.loads.five_minutes, minutes.map(|loads| loads[1]));
    let cores = |count: u64| (count > 0).then(|| MilliCpu::from_cores(count));
    assert_eq!(sample.online, cpus.and_then(|cpus| cores(cpus.online as u64)));
    assert_eq!(sample.reach, cpus.and_then(|cpus| cores(u64::from(cpus.reach))));
    // Beyond 2^53 a figure of Prometheus is not exact.
    let near = |read: Option<Bytes>, said: Option<Bytes>| match (read, said) {
        (Some(read), Some(said)) => read.bytes().abs_diff(said.bytes()) <= said.bytes() >> 52,
        (read, said) => read == said,
    };
    assert!(near(sample.total, memory.map(|memory| memory.total)), "{sample:?}");
    assert!(near(sample.available, memory.map(|memory| memory.available)), "{sample:?}");
}

/// Every answer of the socket is JSON, also a refusal.
fn converse(said: &[u8]) {
    let unit = ComputeUnit::new(MilliCpu::from_cores(1), Bytes::from_gib(1)).expect("no zero");
    let heard = talk::run(async { talk::heard_of(idle(&Tasks::default(), unit), said).await });
    for (status, body) in talk::answers(said, &heard) {
        match status {
            // An invitation to go on, and hyper's own words, which are none.
            _ if body.is_empty() => assert_ne!(status, 200, "an answer without words"),
            200 => drop(serde_json::from_slice::<serde_json::Value>(&body).expect("JSON")),
            // The kit's server speaks where the socket is not asked.
            408 | 413 => words::is_refusal(status, &body),
            _ => match serde_json::from_slice::<Refusal>(&body) {
                Ok(refusal) => {
                    words::is_short_and_harmless(&refusal.code);
                    words::is_short_and_harmless(&refusal.message);
                }
                Err(_) => assert!(status == 400, "{status}: {}", String::from_utf8_lossy(&body)),
            },
        }
    }
}
