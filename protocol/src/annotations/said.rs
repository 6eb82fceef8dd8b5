//! The content of one JSON annotation, if it is valid.
//!
//! The reference's annotations are read with its leniency, and its bounds must be complete. Our
//! annotations may omit any field, and an unknown key makes them invalid.

use crate::bad_body::shortened;
use crate::go_json::read::folds;
use crate::go_json::{self, Json, Read, keys};
use crate::{BadBody, Bounds, Bytes, LoadWindow, MilliCpu, ScaleDownSaid, limits, words};

/// A bounds annotation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct BoundsSaid {
    pub(super) min_cpu: Option<MilliCpu>,
    pub(super) min_mem: Option<Bytes>,
    pub(super) max_cpu: Option<MilliCpu>,
    pub(super) max_mem: Option<Bytes>,
}

/// A config annotation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ConfigSaid {
    pub(super) load: Option<f64>,
    pub(super) memory: Option<f64>,
    pub(super) window: Option<LoadWindow>,
    pub(super) scale_down: ScaleDownSaid,
}

/// A config annotation with unchecked words.
#[derive(Default)]
struct ConfigText {
    load: Option<f64>,
    memory: Option<f64>,
    window: Option<String>,
    keeps_cpu: Option<String>,
    keeps_memory: Option<String>,
}

keys!(read BoundsSaid {
    "min": { "cpu": min_cpu, "mem": min_mem },
    "max": { "cpu": max_cpu, "mem": max_mem },
});
keys!(read ConfigText {
    "loadAverageFractionTarget": load,
    "memoryUsageFractionTarget": memory,
    "loadWindow": window,
    "scaleDown": { "cpu": keeps_cpu, "memory": keeps_memory },
});

// === impl BoundsSaid ===

impl BoundsSaid {
    pub(super) fn ours(text: &str, slot: Bytes) -> Result<Self, Vec<BadBody>> {
        known(text, &[("min", &["cpu", "mem"]), ("max", &["cpu", "mem"])])?;
        read::<Self>(text)?.within(slot)
    }

    pub(super) fn theirs(text: &str, slot: Bytes) -> Result<Self, Vec<BadBody>> {
        let said = read::<Self>(text)?.within(slot)?;
        let missing = said.missing().map(|field| BadBody::Missing { field: field.to_owned() });
        let missing: Vec<_> = missing.collect();
        if missing.is_empty() { Ok(said) } else { Err(missing) }
    }

    /// This, completed by `other`.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            min_cpu: self.min_cpu.or(other.min_cpu),
            min_mem: self.min_mem.or(other.min_mem),
            max_cpu: self.max_cpu.or(other.max_cpu),
            max_mem: self.max_mem.or(other.max_mem),
        }
    }

    pub(super) fn missing(&self) -> impl Iterator<Item = &'static str> {
        let fields = [
            ("min.cpu", self.min_cpu.is_none()),
            ("min.mem", self.min_mem.is_none()),
            ("max.cpu", self.max_cpu.is_none()),
            ("max.mem", self.max_mem.is_none()),
        ];
        fields.into_iter().filter(|(_, missing)| *missing).map(|(field, _)| field)
    }

    fn within(self, slot: Bytes) -> Result<Self, Vec<BadBody>> {
        let mut errors = Vec::new();
        for (field, cpu) in [("min.cpu", self.min_cpu), ("max.cpu", self.max_cpu)] {
            if let Some(cpu) = cpu.filter(|cpu| !limits::CPU.has_cpu(*cpu)) {
                errors.push(BadBody::field(field, cpu, limits::CPU.allowed()));
            }
        }
        let slots = limits::slots(slot);
        for (field, mem) in [("min.mem", self.min_mem), ("max.mem", self.max_mem)] {
            if let Some(mem) = mem.filter(|mem| !slots.has_memory(*mem)) {
                let limit = format!("{} of {slot}", slots.allowed());
                errors.push(BadBody::field(field, mem, limit));
            }
        }
        if errors.is_empty() { Ok(self) } else { Err(errors) }
    }
}

impl From<Bounds> for BoundsSaid {
    fn from(Bounds { min, max }: Bounds) -> Self {
        Self {
            min_cpu: Some(min.cpu),
            min_mem: Some(min.mem),
            max_cpu: Some(max.cpu),
            max_mem: Some(max.mem),
        }
    }
}

// === impl ConfigSaid ===

impl ConfigSaid {
    pub(super) fn ours(text: &str) -> Result<Self, Vec<BadBody>> {
        let keys: &[(_, &[_])] = &[
            ("loadAverageFractionTarget", &[]),
            ("memoryUsageFractionTarget", &[]),
            ("loadWindow", &[]),
            ("scaleDown", &["cpu", "memory"]),
        ];
        known(text, keys)?;
        Self::of(read(text)?)
    }

    /// The reference has no load window and no scale-down time.
    pub(super) fn theirs(text: &str) -> Result<Self, Vec<BadBody>> {
        let ConfigText { load, memory, .. } = read(text)?;
        Self::of(ConfigText { load, memory, ..ConfigText::default() })
    }

    fn of(said: ConfigText) -> Result<Self, Vec<BadBody>> {
        let mut errors = Vec::new();
        for (name, number, kind) in [
            ("loadAverageFractionTarget", said.load, limits::LOAD_TARGET),
            ("memoryUsageFractionTarget", said.memory, limits::SHARE),
        ] {
            if let Some(number) = number.filter(|number| !kind.has_number(*number)) {
                errors.push(BadBody::field(name, number, kind.allowed()));
            }
        }
        let window = said.window.as_deref().map(|word| (word, words::named(word)));
        if let Some((word, None)) = window {
            errors.push(BadBody::field("loadWindow", word, limits::LOAD_WINDOW.allowed()));
        }
        let window = window.and_then(|(_, window)| window);
        let mut keeps = |name: &str, text: Option<&str>| {
            let text = text?;
            let wait = limits::scale_down(text);
            if wait.is_none() {
                errors.push(BadBody::field(name, text, limits::SCALE_DOWN.allowed()));
            }
            wait
        };
        let scale_down = ScaleDownSaid {
            cpu: keeps("scaleDown.cpu", said.keeps_cpu.as_deref()),
            memory: keeps("scaleDown.memory", said.keeps_memory.as_deref()),
        };
        if errors.is_empty() {
            Ok(Self { load: said.load, memory: said.memory, window, scale_down })
        } else {
            Err(errors)
        }
    }
}

fn read<T: Read + Default>(text: &str) -> Result<T, Vec<BadBody>> {
    go_json::decode_whole(text.as_bytes()).map_err(|error| vec![error])
}

/// Reports unknown keys of an object and of the objects in it.
fn known(text: &str, keys: &[(&str, &[&str])]) -> Result<(), Vec<BadBody>> {
    let json = go_json::whole(text.as_bytes()).map_err(|error| vec![error])?;
    let Json::Object(entries) = &json else { return Ok(()) };
    let names: Vec<_> = keys.iter().map(|(name, _)| *name).collect();
    let mut errors = Vec::new();
    for (key, value) in entries {
        match keys.iter().find(|(name, _)| folds(name, key)) {
            None => errors.push(unknown("", key, value, &names)),
            Some((_, [])) => {}
            Some((name, inner)) => {
                let Json::Object(entries) = value else { continue };
                let others = entries.iter().filter(|(key, _)| !inner.iter().any(|n| folds(n, key)));
                let place = format!("{name}.");
                errors.extend(others.map(|(key, value)| unknown(&place, key, value, inner)));
            }
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

fn unknown(place: &str, key: &str, value: &Json, names: &[&str]) -> BadBody {
    BadBody::Field {
        field: format!("{place}{}", shortened(key)),
        value: shortened(&value.to_string()),
        expected: format!("under a key that we know: {}", names.join(", ")),
    }
}
