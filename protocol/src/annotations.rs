//! A VM's desired state from annotations: `windlass.dev/*`, and the reference's two.
//!
//! Each field comes from our annotation, else from the reference's, else from the VM's own file
//! ([`Defaults`]), else from the product's defaults. If only the reference's annotations describe the
//! scaling, load is averaged over one minute, as the reference does.
//!
//! [`Annotations`] keeps the last valid value of each annotation. [`Annotations::update`] takes valid
//! values over, forgets removed ones, keeps the last valid value of an invalid one, and returns the
//! problems.

mod said;

use crate::config::Problem;
use crate::{
    BadBody, Bounds, Bytes, CpuLimit, LoadWindow, Mode, Moment, Policy, Resources, ScaleDown,
    ScaleDownSaid, Target, Usual, VmInfo, VmName, limits, rfc3339, words,
};
use said::{BoundsSaid, ConfigSaid};
use std::collections::BTreeMap;

/// Our bounds; each of the four may be absent.
pub const BOUNDS: &str = "windlass.dev/bounds";
/// Our target and load window.
pub const CONFIG: &str = "windlass.dev/config";
/// The policy's name.
pub const POLICY: &str = "windlass.dev/policy";
/// A whole number; the higher priority goes first.
pub const PRIORITY: &str = "windlass.dev/priority";
/// `act` or `observe`.
pub const MODE: &str = "windlass.dev/mode";
/// No size changes before this time.
pub const PAUSED_UNTIL: &str = "windlass.dev/paused-until";
/// What of the requests and limits of a VM's container is not the VM's: its hypervisor's own use.
pub const OVERHEAD: &str = "windlass.dev/overhead";
/// The plugin writes and reads this annotation.
pub const CEILING: &str = "windlass.dev/ceiling";
/// The plugin gives a pod this annotation when room came free for it.
pub const ROOM_CAME_FREE: &str = "windlass.dev/room-came-free";
/// The plugin gives a pod this annotation so that no earlier binding of it takes effect.
pub const BINDING_SETTLED: &str = "windlass.dev/binding-settled";
/// The reference's bounds; all four are required.
pub const THEIR_BOUNDS: &str = "autoscaling.neon.tech/bounds";
/// The reference's target.
pub const THEIR_CONFIG: &str = "autoscaling.neon.tech/config";

const OURS: [&str; 8] = [BOUNDS, CONFIG, POLICY, PRIORITY, MODE, PAUSED_UNTIL, OVERHEAD, CEILING];

/// What the plugin writes to have a pod changed: nobody reads them.
const MARKS: [&str; 2] = [ROOM_CAME_FREE, BINDING_SETTLED];

/// The last valid value of each annotation.
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

/// The VM's own values, for fields that no annotation sets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Defaults {
    /// The bounds.
    pub bounds: Option<Bounds>,
    /// The policy that computes goals.
    pub policy: Option<Policy>,
    /// The time over which load is averaged.
    pub load_window: Option<LoadWindow>,
    /// The priority.
    pub priority: Option<i32>,
    /// The mode.
    pub mode: Option<Mode>,
    /// The step of memory.
    pub memory_slot: Bytes,
    /// The time for which the VM keeps unneeded resources.
    pub scale_down: ScaleDownSaid,
    /// How the VM's CPU is limited.
    pub cpu_limit: Option<CpuLimit>,
    /// The defaults of the program.
    pub usual: Usual,
}

// === impl Annotations ===

impl Annotations {
    /// Takes these annotations over. An invalid one keeps its last valid value and gives a problem.
    pub fn update(&mut self, annotations: &BTreeMap<String, String>, slot: Bytes) -> Vec<Problem> {
        let mut update = Update { annotations, errors: Vec::new() };
        update.take(BOUNDS, &mut self.bounds, |text| BoundsSaid::ours(text, slot));
        update.take(THEIR_BOUNDS, &mut self.their_bounds, |text| BoundsSaid::theirs(text, slot));
        update.take(CONFIG, &mut self.config, ConfigSaid::ours);
        update.take(THEIR_CONFIG, &mut self.their_config, ConfigSaid::theirs);
        update.take(POLICY, &mut self.policy, word(words::named, limits::POLICY.allowed()));
        let whole = |text: &str| text.parse().ok();
        update.take(PRIORITY, &mut self.priority, word(whole, limits::PRIORITY.allowed()));
        update.take(MODE, &mut self.mode, word(words::named, limits::MODE.allowed()));
        let time = word(rfc3339::parse, "a time, as 2026-01-31T08:00:00Z".to_owned());
        update.take(PAUSED_UNTIL, &mut self.paused_until, time);
        let mut errors = update.errors;
        let ours = |name: &&String| name.starts_with("windlass.dev/");
        let known = |name: &&String| [&OURS[..], &MARKS].concat().contains(&name.as_str());
        for name in annotations.keys().filter(ours).filter(|name| !known(name)) {
            let limit = format!("is no annotation of ours, which are {}", OURS.join(", "));
            errors.push(Problem::new(name, "", limit));
        }
        errors
    }

    /// The desired state of the VM.
    ///
    /// # Errors
    /// A bound is missing, or a maximum is below its minimum.
    pub fn info(&self, name: VmName, defaults: &Defaults) -> Result<VmInfo, Vec<Problem>> {
        let config = self.config.unwrap_or_default();
        let theirs = self.their_config.unwrap_or_default();
        let Usual { target, scale_down } = defaults.usual;
        // The reference shrinks at once, and users of its annotations expect that.
        let theirs_alone = self.only_theirs();
        let usual_wait = if theirs_alone { ScaleDown::AT_ONCE } else { scale_down };
        Ok(VmInfo {
            name,
            bounds: self.resolve_bounds(defaults.bounds)?,
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
            cpu_limit: defaults.cpu_limit,
        })
    }

    /// The bounds of a VM, field by field those of annotations or else `own`.
    ///
    /// # Errors
    /// A maximum is below its minimum.
    pub(crate) fn bounds(&self, own: Bounds) -> Result<Bounds, Vec<Problem>> {
        self.resolve_bounds(Some(own))
    }

    /// Which of these annotations say bounds that were never valid.
    pub fn unread_bounds(&self, annotations: &BTreeMap<String, String>) -> Option<&'static str> {
        let said = [(BOUNDS, self.bounds.is_some()), (THEIR_BOUNDS, self.their_bounds.is_some())];
        let unread = |(name, is_read): &(&str, bool)| !is_read && annotations.contains_key(*name);
        said.into_iter().find(unread).map(|(name, _)| name)
    }

    /// The priority, if an annotation says one.
    pub const fn priority(&self) -> Option<i32> {
        self.priority
    }

    /// The fields that both an annotation and the VM file set, which is invalid.
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

    /// Whether only the reference's annotations describe how the VM scales.
    fn only_theirs(&self) -> bool {
        let ours = self.bounds.is_some() || self.config.is_some() || self.policy.is_some();
        !ours && (self.their_bounds.is_some() || self.their_config.is_some())
    }

    fn resolve_bounds(&self, own: Option<Bounds>) -> Result<Bounds, Vec<Problem>> {
        let ours = self.bounds.unwrap_or_default();
        let own = own.map(BoundsSaid::from).unwrap_or_default();
        let said = ours.or(self.their_bounds.unwrap_or_default()).or(own);
        let (Some(min_cpu), Some(min_mem), Some(max_cpu), Some(max_mem)) =
            (said.min_cpu, said.min_mem, said.max_cpu, said.max_mem)
        else {
            let limit = format!("is missing: neither {BOUNDS} nor {THEIR_BOUNDS} says it");
            let missing = |field: String| Problem::new(field, "", limit.as_str());
            if said.missing().count() == 4 {
                return Err(vec![missing(BOUNDS.to_owned())]);
            }
            return Err(said.missing().map(|name| missing(format!("{BOUNDS}.{name}"))).collect());
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

struct Update<'a> {
    annotations: &'a BTreeMap<String, String>,
    errors: Vec<Problem>,
}

impl Update<'_> {
    /// Takes an annotation over if it is valid.
    fn take<T>(
        &mut self,
        name: &str,
        said: &mut Option<T>,
        read: impl FnOnce(&str) -> Result<T, Vec<BadBody>>,
    ) {
        match self.annotations.get(name).map(|text| read(text).map_err(|bad| (text, bad))) {
            None => *said = None,
            Some(Ok(new)) => *said = Some(new),
            Some(Err((text, bad))) => {
                self.errors.extend(bad.into_iter().map(|bad| explain(name, text, bad)));
            }
        }
    }
}

/// Reads an annotation that is one word, not JSON.
fn word<T>(
    read: impl FnOnce(&str) -> Option<T>,
    expected: String,
) -> impl FnOnce(&str) -> Result<T, Vec<BadBody>> {
    move |text| {
        let (field, value) = ("body".to_owned(), format!("{text:?}"));
        read(text.trim()).ok_or_else(|| vec![BadBody::Field { field, value, expected }])
    }
}

/// The problem of an annotation with this name and text.
pub(crate) fn explain(name: &str, text: &str, bad: BadBody) -> Problem {
    let problem = match bad {
        BadBody::NotJson { at, why } => {
            Problem::new("", text, format!("must be JSON, but at byte {at}: {why}"))
        }
        BadBody::Field { field, value, expected } => {
            let field = if field == "body" { "" } else { &field };
            Problem::new(field, value, format!("must be {expected}"))
        }
        BadBody::Missing { field } => Problem::without_value(field, "is missing"),
    };
    problem.within(name)
}
