//! What operators write: VM files, annotations, host.toml, amounts, the files of the programs.
//!
//! The first byte of an input says which; the last few are those of [`program_files`]. What is taken keeps to the limits that the documents
//! name; what is not is refused by field, in few words, and each time the same.

use crate::input::Input;
use crate::{program_files, words};
use std::collections::BTreeMap;
use windlass_cli::host::config::HostConfig;
use windlass_kit::config::parse_toml;
use windlass_kit::problem::Problem;
use windlass_protocol::annotations::{Annotations, Defaults};
use windlass_protocol::config::{Node, memory};
use windlass_protocol::informant::ResourceMessage;
use windlass_protocol::quantity::{self, QuantityError};
use windlass_protocol::{
    AgentId, Bytes, MilliCpu, Resources, ScaleDownSaid, Sequence, Usual, VmFile, VmInfo, VmName,
};

/// More problems than a person reads; the file that has them is 4 KiB.
const PROBLEMS: usize = 4096;

const ANNOTATIONS: [&str; 8] = [
    "windlass.dev/bounds",
    "windlass.dev/config",
    "windlass.dev/policy",
    "windlass.dev/priority",
    "windlass.dev/mode",
    "windlass.dev/paused-until",
    "autoscaling.neon.tech/bounds",
    "autoscaling.neon.tech/config",
];

pub(crate) fn play(input: &[u8]) {
    let mut input = Input::new(input);
    let which = input.byte();
    if let Some(file) = which.checked_sub(program_files::FIRST) {
        return program_files::play(file, &String::from_utf8_lossy(input.rest()));
    }
    match which % 6 {
        0 | 1 => vm_file(&mut input),
        2 => annotations(&mut input),
        3 => host_file(&String::from_utf8_lossy(input.rest())),
        4 => amount(&String::from_utf8_lossy(input.rest())),
        _ => memory_text(&String::from_utf8_lossy(input.rest())),
    }
}

fn vm_file(input: &mut Input<'_>) {
    let stem = if input.is() { "db1".to_owned() } else { input.text() };
    let text = String::from_utf8_lossy(input.rest()).into_owned();
    let read = match parse_toml(&text) {
        Ok(read) => read,
        Err(problem) => return words::is_short_and_harmless(&problem),
    };
    let file = VmFile::with_usual(&stem, read.clone(), &Usual::default());
    let again = VmFile::with_usual(&stem, read, &Usual::default());
    assert_eq!(file, again, "read twice, it is another");
    match file {
        Ok(file) => {
            is_within_limits(&file.info);
            assert_eq!(file.info.name, VmName::on_host(stem));
            assert!(file.qmp.is_absolute() && file.informant.port() != 0);
        }
        Err(errors) => are_problems(&errors),
    }
}

fn annotations(input: &mut Input<'_>) {
    let defaults = Defaults {
        bounds: None,
        policy: None,
        load_window: None,
        priority: None,
        mode: None,
        memory_slot: VmInfo::DEFAULT_MEMORY_SLOT,
        scale_down: ScaleDownSaid::default(),
        cpu_limit: None,
        usual: Usual::default(),
    };
    let mut said = Annotations::default();
    while !input.is_empty() {
        let texts: BTreeMap<String, String> = (0..=input.below(4))
            .map(|_| match input.below(9) {
                8 => (input.text(), input.text()),
                known => (ANNOTATIONS[known].to_owned(), input.text()),
            })
            .collect();
        let errors = said.update(&texts, defaults.memory_slot);
        let again = said.clone();
        assert_eq!(said.update(&texts, defaults.memory_slot), errors, "said twice, other errors");
        let name = VmName::on_host("db1");
        let info = said.info(name.clone(), &defaults);
        assert_eq!(again.info(name, &defaults), info, "said twice, it is another");
        if !errors.is_empty() {
            are_problems(&errors);
        }
        match info {
            Ok(info) => is_within_limits(&info),
            Err(errors) => are_problems(&errors),
        }
    }
}

fn host_file(text: &str) {
    match HostConfig::from_text(text) {
        Ok(config) => {
            assert!(
                config.basics.state_dir != config.basics.vms_dir
                    && config.basics.socket.is_absolute()
            );
            assert!(
                *config.basics.callback_ports.start() > 0
                    && !config.basics.callback_ports.is_empty()
            );
            assert!(config.basics.needs_restart(&config.basics).is_empty());
        }
        Err(problems) => are_short(&problems),
    }
}

/// Everything that is wrong with a file, for people.
pub(crate) fn are_short(problems: &[Problem]) {
    assert!(!problems.is_empty() && problems.len() <= PROBLEMS);
    problems.iter().for_each(words::is_short_and_harmless);
}

fn are_problems(errors: &[Problem]) {
    assert!(!errors.is_empty(), "refused without a reason");
    assert!(errors.len() <= PROBLEMS, "{} problems", errors.len());
    for error in errors {
        assert!(!error.field.is_empty(), "{error}");
        words::is_short_and_harmless(error);
    }
}

/// What docs/configuration.md promises of every VM.
fn is_within_limits(info: &VmInfo) {
    let (min, max, slot) = (info.bounds.min, info.bounds.max, info.memory_slot);
    assert!(max.covers(min), "{min} to {max}");
    for size in [min, max] {
        let cpu = size.cpu;
        assert!(cpu >= MilliCpu::from_milli(50) && cpu <= MilliCpu::from_cores(512), "{cpu}");
        let slots = size.mem.whole(slot);
        assert!(size.mem == slot.saturating_mul(slots), "{} in slots of {slot}", size.mem);
        assert!((1..=65_535).contains(&slots), "{slots} slots");
    }
    let (load, memory) = (info.target.load_average, info.target.memory);
    assert!(load > 0.0 && load < 2.0 && memory > 0.0 && memory <= 1.0, "{load}, {memory}");
}

/// An amount as Kubernetes writes it, against a reader of its own that knows only short ones.
fn amount(text: &str) {
    let (cpu, mem) = (quantity::cpu(text), quantity::memory(text));
    for error in [cpu.as_ref().err(), mem.as_ref().err()].into_iter().flatten() {
        words::is_short_and_harmless(error);
    }
    if let Some((expected_cpu, expected_mem)) = plain_amount(text) {
        assert_eq!(cpu.map(MilliCpu::milli).ok(), expected_cpu, "{text:?} as CPU");
        assert_eq!(mem.map(Bytes::bytes).ok(), expected_mem, "{text:?} as memory");
    }
    if let (Ok(cpu), Ok(mem)) = (cpu, mem) {
        let resources = Resources { cpu, mem };
        let id = AgentId::from_u128(7);
        let message = ResourceMessage { resources, id, sequence: Sequence::from_number(1) };
        assert_eq!(ResourceMessage::decode_any(&message.encode()), Ok(message), "{text:?}");
    }
    // As somebody writes it into a file: the same amount.
    assert_eq!(Node::Text(text.to_owned()).cpu().ok_or(QuantityError::Form).is_ok(), cpu.is_ok());
}

/// Thousandths of a vCPU and bytes of `digits[.digits][suffix]` with few digits: what fits into
/// 63 bits, rounded up. `None` where this reader does not know the form.
fn plain_amount(text: &str) -> Option<(Option<u64>, Option<u64>)> {
    const SUFFIXES: [(&str, u128, u128); 12] = [
        ("Ki", 1 << 10, 1),
        ("Mi", 1 << 20, 1),
        ("Gi", 1 << 30, 1),
        ("Ti", 1 << 40, 1),
        ("n", 1, 1_000_000_000),
        ("u", 1, 1_000_000),
        ("m", 1, 1000),
        ("k", 1000, 1),
        ("M", 1_000_000, 1),
        ("G", 1_000_000_000, 1),
        ("T", 1_000_000_000_000, 1),
        ("", 1, 1),
    ];
    let found = SUFFIXES.iter().find(|(suffix, ..)| text.ends_with(suffix));
    let (number, times, over) =
        found.map(|(s, times, over)| (&text[..text.len() - s.len()], times, over))?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{fraction}");
    let few = (1..=12).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !few || whole.is_empty() {
        return None;
    }
    let amount = digits.parse::<u128>().ok()? * times;
    let over = over * 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    let fits = |amount: u128| u64::try_from(amount).ok().filter(|n| *n <= i64::MAX.unsigned_abs());
    Some((fits((amount * 1000).div_ceil(over)), fits(amount.div_ceil(over))))
}

/// `512MiB`, as a person writes it: what is read and shown in whole units is read as the same.
fn memory_text(text: &str) {
    let Some(amount) = memory(text) else { return };
    let shown = amount.to_string();
    words::is_short_and_harmless(&shown);
    let again = memory(&shown).expect("what is shown can be written");
    let off = again.bytes().abs_diff(amount.bytes());
    assert!(off <= amount.bytes() / 100, "{text:?} is shown as {shown}");
}
