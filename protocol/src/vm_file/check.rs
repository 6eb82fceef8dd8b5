//! From a table to a [`VmFile`], or to everything that is wrong with it.

use super::keys::{KEYS, Key};
use super::text::{Node, VmFileText};
use super::{FieldError, VmFile};
use crate::annotations::{Annotations, BOUNDS, Defaults, THEIR_BOUNDS};
use crate::{
    Bounds, Bytes, LoadWindow, Mode, Policy, Resources, ScaleDownSaid, Target, Usual, VmInfo,
    VmName, limits,
};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// The longest path of a unix socket.
const LONGEST_SOCKET: usize = 107;
/// The longest name of a VM.
const LONGEST_NAME: usize = 63;
/// The tables that annotations stand in for.
const SIZED: [&str; 3] = ["min", "max", "target"];
/// The other table with keys of its own.
const SCALE_DOWN: &str = "scale_down";

impl VmFile {
    /// Checks what a VM file says; `stem` is the file's name without `.toml`.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn from_text(stem: &str, text: VmFileText) -> Result<Self, Vec<FieldError>> {
        Self::with_usual(stem, text, &Usual::default())
    }

    /// The same, where something else holds for files that do not say it.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn with_usual(
        stem: &str,
        text: VmFileText,
        usual: &Usual,
    ) -> Result<Self, Vec<FieldError>> {
        let mut check = Check::of(text);
        let file = check.file(stem, usual);
        check.unknown();
        match file {
            Some(file) if check.errors.is_empty() => Ok(file),
            Some(_) | None => Err(check.errors),
        }
    }
}

/// The values that were not looked at yet, and what was found wrong with the others.
struct Check {
    nodes: BTreeMap<String, Node>,
    errors: Vec<FieldError>,
}

impl Check {
    /// With the keys of the tables as `min.cpu` and so on.
    fn of(text: VmFileText) -> Self {
        let (mut nodes, mut errors) = (BTreeMap::new(), Vec::new());
        let is_table = |name: &str| SIZED.contains(&name) || name == SCALE_DOWN;
        for (name, node) in text.0 {
            match node {
                Node::Table(table) if is_table(&name) => {
                    let named = |key| format!("{name}.{}", Key::spelt(key));
                    nodes.extend(table.into_iter().map(|(key, node)| (named(key), node)));
                }
                _ if is_table(&name) => {
                    let example = if name == SCALE_DOWN { "\"60s\"" } else { "1" };
                    let limit = format!("must be a table, as {{ cpu = {example} }}");
                    errors.push(FieldError::new(name, node, limit));
                }
                Node::Null
                | Node::Bool(_)
                | Node::Whole(_)
                | Node::Float(_)
                | Node::Text(_)
                | Node::List(_)
                | Node::Table(_) => {
                    nodes.insert(Key::spelt(name), node);
                }
            }
        }
        Self { nodes, errors }
    }

    /// Every key is looked at, also when an earlier one is wrong.
    fn file(&mut self, stem: &str, usual: &Usual) -> Option<VmFile> {
        let name = self.name(stem);
        let qmp = self.required("qmp", path);
        let informant = self.required("informant", socket);
        let advertise = self.get("advertise", address);
        let metrics = self.get("metrics", socket);
        let vcpu_removal = self.get("vcpu_removal", Node::truth).unwrap_or(false);
        let memory_slot = self
            .get("memory_slot", |node| node.memory().filter(|slot| limits::slot(*slot)))
            .unwrap_or(VmInfo::DEFAULT_MEMORY_SLOT);
        let defaults = Defaults {
            bounds: None,
            policy: self.get("policy", policy),
            load_window: self.get("load_window", load_window),
            priority: self.get("priority", priority),
            mode: self.get("mode", mode),
            memory_slot,
            scale_down: ScaleDownSaid {
                cpu: self.get("scale_down.cpu", scale_down),
                memory: self.get("scale_down.memory", scale_down),
            },
            usual: *usual,
        };
        let info = match self.nodes.remove("annotations") {
            Some(node) => self.annotated(name?, &defaults, node),
            None => self.plain(name?, &defaults),
        };
        Some(VmFile {
            info: info?,
            qmp: qmp?,
            informant: informant?,
            advertise,
            metrics,
            vcpu_removal,
        })
    }

    fn name(&mut self, stem: &str) -> Option<VmName> {
        let plain = |c: char| c.is_ascii_alphanumeric() || ['-', '_', '.'].contains(&c);
        let good = stem.len() <= LONGEST_NAME
            && stem.starts_with(|c: char| c.is_ascii_alphanumeric())
            && stem.chars().all(plain);
        if !good {
            self.errors.push(FieldError::new(
                "the file's name",
                format!("{stem:?}"),
                "must be 1 to 63 letters, digits, dots, dashes and underscores, a letter or digit \
                 first",
            ));
        }
        good.then(|| VmName::on_host(stem))
    }

    /// Bounds and target from the file's own keys.
    fn plain(&mut self, name: VmName, defaults: &Defaults) -> Option<VmInfo> {
        let bounds = self.bounds(defaults.memory_slot);
        let default = defaults.usual.target;
        let aimed = |fits: fn(f64) -> bool| move |node: &Node| node.number().filter(|n| fits(*n));
        let load = self.get("target.load_average", aimed(limits::load_target));
        let memory = self.get("target.memory", aimed(limits::memory_target));
        Some(VmInfo {
            name,
            bounds: bounds?,
            target: Target {
                load_average: load.unwrap_or(default.load_average),
                memory: memory.unwrap_or(default.memory),
            },
            policy: defaults.policy.unwrap_or(Policy::LoadAverage),
            load_window: defaults.load_window.unwrap_or(LoadWindow::FifteenSeconds),
            priority: defaults.priority.unwrap_or(0),
            mode: defaults.mode.unwrap_or(Mode::Act),
            memory_slot: defaults.memory_slot,
            paused_until: None,
            scale_down: defaults.scale_down.unwrap_or(defaults.usual.scale_down),
        })
    }

    fn bounds(&mut self, slot: Bytes) -> Option<Bounds> {
        let cpu = |node: &Node| node.cpu().filter(|cpu| limits::cpu(*cpu));
        let memory = |node: &Node| node.memory().filter(|memory| limits::memory(*memory, slot));
        let (min_cpu, min_mem) =
            (self.required("min.cpu", cpu), self.required("min.memory", memory));
        let (max_cpu, max_mem) =
            (self.required("max.cpu", cpu), self.required("max.memory", memory));
        let min = Resources { cpu: min_cpu?, mem: min_mem? };
        let max = Resources { cpu: max_cpu?, mem: max_mem? };
        limits::bounds(min, max, ["max.cpu", "max.memory"])
            .map_err(|errors| self.errors.extend(errors))
            .ok()
    }

    /// Bounds and target, and what else they say, from annotations.
    fn annotated(&mut self, name: VmName, defaults: &Defaults, node: Node) -> Option<VmInfo> {
        let sized = |key: &String, _: &mut Node| {
            key.split_once('.').is_some_and(|(table, _)| SIZED.contains(&table))
        };
        let beside: Vec<_> = self.nodes.extract_if(.., sized).collect();
        let Node::Table(table) = node else {
            self.wrong("annotations", &node);
            return None;
        };
        for (key, node) in beside {
            self.errors.push(FieldError::new(key, node, "must not stand beside annotations"));
        }
        let unread = self.errors.len();
        let texts = self.texts(table);
        let mut said = Annotations::default();
        let mut errors = said.update(&texts, defaults.memory_slot);
        // What a broken annotation was to say is not missing: its own error is enough.
        let broken = self.errors.len() > unread || errors.iter().any(is_about_bounds);
        errors.extend(said.beside(defaults));
        let info = said.info(name, defaults);
        let info = info.map_err(|wrong| errors.extend(wrong.into_iter().filter(|_| !broken))).ok();
        let within = |error: FieldError| FieldError {
            field: format!("annotations.{}", error.field),
            ..error
        };
        self.errors.extend(errors.into_iter().map(within));
        info
    }

    fn texts(&mut self, table: BTreeMap<String, Node>) -> BTreeMap<String, String> {
        let mut texts = BTreeMap::new();
        for (key, node) in table {
            match node.text() {
                Some(text) => {
                    texts.insert(key, text.to_owned());
                }
                None => {
                    let key = format!("annotations.{key}");
                    self.errors.push(FieldError::new(key, node, "must be a text"));
                }
            }
        }
        texts
    }

    fn required<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&Node) -> Option<T>,
    ) -> Option<T> {
        if !self.nodes.contains_key(name) {
            self.errors.push(FieldError::new(name, "", format!("is missing: {}", range(name))));
        }
        self.get(name, read)
    }

    fn get<T>(&mut self, name: &'static str, read: impl FnOnce(&Node) -> Option<T>) -> Option<T> {
        let node = self.nodes.remove(name)?;
        let value = read(&node);
        if value.is_none() {
            self.wrong(name, &node);
        }
        value
    }

    fn wrong(&mut self, name: &'static str, node: &Node) {
        self.errors.push(FieldError::new(name, node, key(name).complaint(node)));
    }

    /// What nobody looked at is not a key.
    fn unknown(&mut self) {
        for (name, node) in std::mem::take(&mut self.nodes) {
            let known: Vec<_> = KEYS.iter().map(|key| key.name).collect();
            let limit = format!("is not a key; the keys are {}", known.join(", "));
            self.errors.push(FieldError::new(name, node, limit));
        }
    }
}

fn range(name: &'static str) -> &'static str {
    key(name).range
}

fn key(name: &'static str) -> &'static Key {
    Key::find(name).expect("every key that is read stands in the list of keys")
}

fn is_about_bounds(error: &FieldError) -> bool {
    [BOUNDS, THEIR_BOUNDS].iter().any(|name| error.field.starts_with(name))
}

fn path(node: &Node) -> Option<PathBuf> {
    let text = node.text()?;
    let good = text.starts_with('/') && text.len() <= LONGEST_SOCKET && !text.contains('\0');
    good.then(|| PathBuf::from(text))
}

fn socket(node: &Node) -> Option<SocketAddr> {
    let socket: SocketAddr = node.text()?.parse().ok()?;
    (socket.port() != 0 && !socket.ip().is_unspecified()).then_some(socket)
}

fn address(node: &Node) -> Option<IpAddr> {
    let address: IpAddr = node.text()?.parse().ok()?;
    (!address.is_unspecified()).then_some(address)
}

fn mode(node: &Node) -> Option<Mode> {
    limits::mode(node.text()?)
}

fn policy(node: &Node) -> Option<Policy> {
    limits::policy(node.text()?)
}

fn load_window(node: &Node) -> Option<LoadWindow> {
    limits::load_window(node.text()?)
}

fn priority(node: &Node) -> Option<i32> {
    i32::try_from(node.whole()?).ok()
}

/// Seconds, or a text.
fn scale_down(node: &Node) -> Option<Duration> {
    match node.whole() {
        Some(seconds) => limits::scale_down_seconds(u64::try_from(seconds).ok()?),
        None => limits::scale_down(node.text()?),
    }
}
