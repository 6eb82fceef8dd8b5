//! What annotations say about a VM: `windlass.dev/*`, and the reference's two.
//!
//! Ours win over the reference's, field by field; then come what the VM itself says
//! ([`Defaults`]) and the defaults of the product. Where only the reference's describe the
//! scaling, load is averaged over one minute, as the reference does.
//!
//! [`Annotations`] remembers what each annotation last said validly: [`Annotations::update`]
//! takes over what is valid, forgets what is gone, keeps the rest as it was, and returns what
//! is wrong for the caller to report.

mod said;

use crate::config::Problem;
use crate::{
    BadBody, Bounds, Bytes, LoadWindow, Mode, Moment, Policy, Resources, ScaleDown, ScaleDownSaid,
    Target, Usual, VmInfo, VmName, limits, rfc3339, words,
};
use said::{BoundsSaid, ConfigSaid};
use std::collections::BTreeMap;

/// Bounds in our words; any of the four may be absent.
pub const BOUNDS: &str = "windlass.dev/bounds";
/// Target and load window in our words.
pub const CONFIG: &str = "windlass.dev/config";
/// The policy's name.
pub const POLICY: &str = "windlass.dev/policy";
/// A whole number; higher goes first.
pub const PRIORITY: &str = "windlass.dev/priority";
/// `act` or `observe`.
pub const MODE: &str = "windlass.dev/mode";
/// Nothing moves before this time.
pub const PAUSED_UNTIL: &str = "windlass.dev/paused-until";
/// Written by the plugin, for itself.
pub const CEILING: &str = "windlass.dev/ceiling";
/// The reference's bounds; all four must be there.
pub const THEIR_BOUNDS: &str = "autoscaling.neon.tech/bounds";
/// The reference's target.
pub const THEIR_CONFIG: &str = "autoscaling.neon.tech/config";

/// All of ours.
const OURS: [&str; 7] = [BOUNDS, CONFIG, POLICY, PRIORITY, MODE, PAUSED_UNTIL, CEILING];

/// What each annotation last said validly.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Annotations {
    bounds: Option<BoundsSaid>,
    their_bounds: Option<BoundsSaid>,
    config: Option<ConfigSaid>,
    their_config: Option<ConfigSaid>,
    policy: Option<Policy>,
    priority: Option<i32>,
    mode: Option<Mode>,
    paused_until: Option<Moment>,
}

/// What the VM itself says, for what no annotation says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Defaults {
    /// Its bounds.
    pub bounds: Option<Bounds>,
    /// How a goal is computed.
    pub policy: Option<Policy>,
    /// Over which time load is averaged.
    pub load_window: Option<LoadWindow>,
    /// Who goes first.
    pub priority: Option<i32>,
    /// Whether Windlass acts.
    pub mode: Option<Mode>,
    /// Its step of memory.
    pub memory_slot: Bytes,
    /// How long it keeps what it does not need.
    pub scale_down: ScaleDownSaid,
    /// What holds where nothing else is said.
    pub usual: Usual,
}

// === impl Annotations ===

impl Annotations {
    /// Takes over what these annotations say. What is invalid stays as it was, and is returned.
    pub fn update(&mut self, annotations: &BTreeMap<String, String>, slot: Bytes) -> Vec<Problem> {
        let mut news = News { annotations, errors: Vec::new() };
        news.json(BOUNDS, &mut self.bounds, |text| BoundsSaid::ours(text, slot));
        news.json(THEIR_BOUNDS, &mut self.their_bounds, |text| BoundsSaid::theirs(text, slot));
        news.json(CONFIG, &mut self.config, ConfigSaid::ours);
        news.json(THEIR_CONFIG, &mut self.their_config, ConfigSaid::theirs);
        news.word(POLICY, &mut self.policy, words::named, &limits::POLICY.allowed());
        let whole = |text: &str| text.parse().ok();
        news.word(PRIORITY, &mut self.priority, whole, &limits::PRIORITY.allowed());
        news.word(MODE, &mut self.mode, words::named, &limits::MODE.allowed());
        let time = "a time, as 2026-01-31T08:00:00Z";
        news.word(PAUSED_UNTIL, &mut self.paused_until, rfc3339::parse, time);
        let mut errors = news.errors;
        let ours = |name: &&String| name.starts_with("windlass.dev/");
        for name in annotations.keys().filter(ours).filter(|name| !OURS.contains(&name.as_str())) {
            let limit = format!("is no annotation of ours, which are {}", OURS.join(", "));
            errors.push(Problem::new(name, "", limit));
        }
        errors
    }

    /// What the VM should be, by these annotations and what it says itself.
    ///
    /// # Errors
    /// If a bound is said by nobody, or a maximum is below its minimum.
    pub fn info(&self, name: VmName, defaults: &Defaults) -> Result<VmInfo, Vec<Problem>> {
        let config = self.config.unwrap_or_default();
        let theirs = self.their_config.unwrap_or_default();
        let Usual { target, scale_down } = defaults.usual;
        // The reference keeps nothing, and its users expect that of its annotations.
        let theirs_alone = self.only_the_reference_s();
        let usual_wait = if theirs_alone { ScaleDown::AT_ONCE } else { scale_down };
        Ok(VmInfo {
            name,
            bounds: self.resolve_bounds(defaults)?,
            target: Target {
                load_average: config.load.or(theirs.load).unwrap_or(target.load_average),
                memory: config.memory.or(theirs.memory).unwrap_or(target.memory),
            },
            policy: self.policy.or(defaults.policy).unwrap_or(Policy::LoadAverage),
            load_window: config.window.or(defaults.load_window).unwrap_or(if theirs_alone {
                LoadWindow::OneMinute
            } else {
                LoadWindow::FifteenSeconds
            }),
            priority: self.priority.or(defaults.priority).unwrap_or(0),
            mode: self.mode.or(defaults.mode).unwrap_or(Mode::Act),
            memory_slot: defaults.memory_slot,
            paused_until: self.paused_until,
            scale_down: config.scale_down.or(defaults.scale_down).unwrap_or(usual_wait),
        })
    }

    /// What both an annotation and the VM itself say, which a VM file must not.
    pub(crate) fn beside(&self, defaults: &Defaults) -> Vec<Problem> {
        let window = self.config.is_some_and(|config| config.window.is_some());
        let said = self.config.map(|config| config.scale_down).unwrap_or_default();
        let own = defaults.scale_down;
        [
            (POLICY, "policy", self.policy.is_some() && defaults.policy.is_some()),
            (CONFIG, "load_window", window && defaults.load_window.is_some()),
            (PRIORITY, "priority", self.priority.is_some() && defaults.priority.is_some()),
            (MODE, "mode", self.mode.is_some() && defaults.mode.is_some()),
            (CONFIG, "scale_down.cpu", said.cpu.is_some() && own.cpu.is_some()),
            (CONFIG, "scale_down.memory", said.memory.is_some() && own.memory.is_some()),
        ]
        .into_iter()
        .filter(|(_, _, both)| *both)
        .map(|(name, key, _)| Problem::new(name, "", format!("must not stand beside {key}")))
        .collect()
    }

    /// Whether nothing of ours describes how the VM scales, and something of theirs does.
    fn only_the_reference_s(&self) -> bool {
        let ours = self.bounds.is_some() || self.config.is_some() || self.policy.is_some();
        !ours && (self.their_bounds.is_some() || self.their_config.is_some())
    }

    fn resolve_bounds(&self, defaults: &Defaults) -> Result<Bounds, Vec<Problem>> {
        let ours = self.bounds.unwrap_or_default();
        let theirs = self.their_bounds.unwrap_or_default();
        let own = defaults.bounds;
        let min_cpu = ours.min_cpu.or(theirs.min_cpu).or(own.map(|own| own.min.cpu));
        let min_mem = ours.min_mem.or(theirs.min_mem).or(own.map(|own| own.min.mem));
        let max_cpu = ours.max_cpu.or(theirs.max_cpu).or(own.map(|own| own.max.cpu));
        let max_mem = ours.max_mem.or(theirs.max_mem).or(own.map(|own| own.max.mem));
        let (Some(min_cpu), Some(min_mem), Some(max_cpu), Some(max_mem)) =
            (min_cpu, min_mem, max_cpu, max_mem)
        else {
            let missing = [
                ("min.cpu", min_cpu.is_none()),
                ("min.mem", min_mem.is_none()),
                ("max.cpu", max_cpu.is_none()),
                ("max.mem", max_mem.is_none()),
            ];
            if missing.iter().all(|(_, missing)| *missing) {
                return Err(vec![said_by_nobody(BOUNDS.to_owned())]);
            }
            let missing = missing.into_iter().filter(|(_, missing)| *missing);
            let field = |(field, _)| said_by_nobody(format!("{BOUNDS}.{field}"));
            return Err(missing.map(field).collect());
        };
        let whose = |ours: bool| if ours { BOUNDS } else { THEIR_BOUNDS };
        limits::bounds(
            Resources { cpu: min_cpu, mem: min_mem },
            Resources { cpu: max_cpu, mem: max_mem },
            [
                &format!("{}.max.cpu", whose(ours.max_cpu.or(ours.min_cpu).is_some())),
                &format!("{}.max.mem", whose(ours.max_mem.or(ours.min_mem).is_some())),
            ],
        )
    }
}

fn said_by_nobody(field: String) -> Problem {
    let limit = format!("is missing: neither {BOUNDS} nor {THEIR_BOUNDS} says it");
    Problem::new(field, "", limit)
}

/// What the annotations say by now, and what is wrong with it.
struct News<'a> {
    annotations: &'a BTreeMap<String, String>,
    errors: Vec<Problem>,
}

impl News<'_> {
    /// Takes over JSON if it is valid.
    fn json<T>(
        &mut self,
        name: &'static str,
        said: &mut Option<T>,
        read: impl FnOnce(&str) -> Result<T, Vec<BadBody>>,
    ) {
        let Some(text) = self.annotations.get(name) else {
            *said = None;
            return;
        };
        match read(text) {
            Ok(new) => *said = Some(new),
            Err(bad) => self.errors.extend(bad.into_iter().map(|bad| explain(name, text, bad))),
        }
    }

    /// Takes over a word if it is known.
    fn word<T>(
        &mut self,
        name: &'static str,
        said: &mut Option<T>,
        read: impl FnOnce(&str) -> Option<T>,
        limit: &str,
    ) {
        let Some(text) = self.annotations.get(name) else {
            *said = None;
            return;
        };
        match read(text.trim()) {
            Some(new) => *said = Some(new),
            None => {
                let limit = format!("must be {limit}");
                self.errors.push(Problem::new(name, format!("{text:?}"), limit));
            }
        }
    }
}

fn explain(name: &str, text: &str, bad: BadBody) -> Problem {
    match bad {
        BadBody::NotJson { at, why } => {
            Problem::new(name, text, format!("must be JSON, but at byte {at}: {why}"))
        }
        BadBody::Field { field, value, expected } if field == "body" => {
            Problem::new(name, value, format!("must be {expected}"))
        }
        BadBody::Field { field, value, expected } => {
            Problem::new(format!("{name}.{field}"), value, format!("must be {expected}"))
        }
        BadBody::Missing { field } => Problem::new(format!("{name}.{field}"), "", "is missing"),
    }
}
