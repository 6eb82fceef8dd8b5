//! The content of one JSON annotation, if it is valid.
//!
//! The reference's annotations are read with its leniency, and its bounds must be complete. Our
//! annotations may omit any field, and an unknown key makes them invalid.

use crate::go_json::{self, Json, keys, parse, read};
use crate::{BadBody, Bytes, LoadWindow, MilliCpu, ScaleDownSaid, limits, words};

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
        let json = whole(text)?;
        known(&json, &[("min", &["cpu", "mem"]), ("max", &["cpu", "mem"])])?;
        Self::read(text)?.within(slot)
    }

    pub(super) fn theirs(text: &str, slot: Bytes) -> Result<Self, Vec<BadBody>> {
        let said = Self::read(text)?.within(slot)?;
        let fields = [
            ("min.cpu", said.min_cpu.is_none()),
            ("min.mem", said.min_mem.is_none()),
            ("max.cpu", said.max_cpu.is_none()),
            ("max.mem", said.max_mem.is_none()),
        ];
        let missing = fields.into_iter().filter(|(_, missing)| *missing);
        let missing: Vec<_> =
            missing.map(|(field, _)| BadBody::Missing { field: field.to_owned() }).collect();
        if missing.is_empty() { Ok(said) } else { Err(missing) }
    }

    fn read(text: &str) -> Result<Self, Vec<BadBody>> {
        go_json::decode_whole(text.as_bytes()).map_err(|error| vec![error])
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

// === impl ConfigSaid ===

impl ConfigSaid {
    pub(super) fn ours(text: &str) -> Result<Self, Vec<BadBody>> {
        let json = whole(text)?;
        known(
            &json,
            &[
                ("loadAverageFractionTarget", &[]),
                ("memoryUsageFractionTarget", &[]),
                ("loadWindow", &[]),
                ("scaleDown", &["cpu", "memory"]),
            ],
        )?;
        Self::of(ConfigText::read(text)?)
    }

    /// The reference has no load window and no scale-down time.
    pub(super) fn theirs(text: &str) -> Result<Self, Vec<BadBody>> {
        let ConfigText { load, memory, .. } = ConfigText::read(text)?;
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

// === impl ConfigText ===

impl ConfigText {
    fn read(text: &str) -> Result<Self, Vec<BadBody>> {
        go_json::decode_whole(text.as_bytes()).map_err(|error| vec![error])
    }
}

fn whole(text: &str) -> Result<Json<'_>, Vec<BadBody>> {
    let (json, rest) = parse::first(text.as_bytes()).map_err(|error| vec![error])?;
    parse::nothing_after(text.as_bytes(), rest).map_err(|error| vec![error])?;
    Ok(json)
}

/// Reports unknown keys of an object and of the objects in it.
fn known(json: &Json, keys: &[(&str, &[&str])]) -> Result<(), Vec<BadBody>> {
    let Json::Object(entries) = json else { return Ok(()) };
    let names: Vec<_> = keys.iter().map(|(name, _)| *name).collect();
    let mut errors = Vec::new();
    for (key, value) in entries {
        match keys.iter().find(|(name, _)| read::folds(name, key)) {
            None => errors.push(unknown(key, value, &names)),
            Some((_, [])) => {}
            Some((name, inner)) => {
                let inner: Vec<(&str, &[&str])> =
                    inner.iter().map(|key| (*key, &[] as &[&str])).collect();
                let deeper = known(value, &inner).err().unwrap_or_default();
                errors.extend(deeper.into_iter().map(|bad| match bad {
                    BadBody::Field { field, value, expected } => {
                        BadBody::Field { field: format!("{name}.{field}"), value, expected }
                    }
                    BadBody::NotJson { .. } | BadBody::Missing { .. } => bad,
                }));
            }
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

fn unknown(key: &str, value: &Json, names: &[&str]) -> BadBody {
    BadBody::field(key, value, format!("under a key that we know: {}", names.join(", ")))
}
