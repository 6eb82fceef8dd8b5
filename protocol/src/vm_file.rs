//! The checked content of a VM file, in which people describe a VM.
//!
//! [`VM`] is the table of its keys. [`VmFile::with_usual`] reads a file by that table and reports all
//! problems at once. `kit::config` reads the TOML.

mod keys;

pub use keys::{MAX_CPU, MAX_MEMORY, MEMORY_SLOT, MIN_CPU, MIN_MEMORY, PRIORITY, VM};

use crate::annotations::{Annotations, BOUNDS, Defaults, THEIR_BOUNDS};
use crate::config::{Node, Problem, Reader};
use crate::{
    Bounds, Bytes, MilliCpu, Resources, ScaleDownSaid, Target, Usual, VmInfo, VmName, limits, words,
};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

const LONGEST_NAME: usize = 63;
/// The tables that annotations replace.
const SIZED: [&str; 3] = ["min", "max", "target"];

/// The content of a VM file.
#[derive(Clone, Debug, PartialEq)]
pub struct VmFile {
    /// The desired state of the VM.
    pub info: VmInfo,
    /// The hypervisor's monitor.
    pub qmp: PathBuf,
    /// The address of the guest's informant.
    pub informant: SocketAddr,
    /// The host's address for the guest. Default: 10.0.2.2 for a loopback informant, else the local address
    /// that reaches the informant.
    pub advertise: Option<IpAddr>,
    /// The address of the guest's metrics, if not at the port that the informant announces.
    pub metrics: Option<SocketAddr>,
    /// Whether the hypervisor may unplug vCPUs.
    pub vcpu_removal: bool,
}

// === impl VmFile ===

impl VmFile {
    /// Checks a VM file; `stem` is the file's name without `.toml`, and `usual` are the defaults.
    ///
    /// # Errors
    /// All problems of the file.
    pub fn with_usual(
        stem: &str,
        nodes: BTreeMap<String, Node>,
        usual: &Usual,
    ) -> Result<Self, Vec<Problem>> {
        let mut file = Reader::of(&VM, nodes);
        let read = read(&mut file, stem, usual);
        file.finish(read)
    }
}

/// Reads every key, even after an invalid one.
fn read(file: &mut Reader, stem: &str, usual: &Usual) -> Option<VmFile> {
    let name = name(file, stem);
    let qmp = file.required("qmp");
    let informant = file.required_with("informant", socket);
    let advertise = file.find_with("advertise", address);
    let metrics = file.find_with("metrics", socket);
    let vcpu_removal = file.get("vcpu_removal");
    let memory_slot = memory_slot(file, VmInfo::DEFAULT_MEMORY_SLOT);
    let defaults = Defaults {
        bounds: None,
        policy: file.find_with("policy", |node| words::named(node.text()?)),
        load_window: file.find_with("load_window", |node| words::named(node.text()?)),
        priority: file.find("priority"),
        mode: file.find_with("mode", |node| words::named(node.text()?)),
        memory_slot: memory_slot.unwrap_or(VmInfo::DEFAULT_MEMORY_SLOT),
        scale_down: ScaleDownSaid {
            cpu: file.find_with("scale_down.cpu", scale_down),
            memory: file.find_with("scale_down.memory", scale_down),
        },
        cpu_limit: file.find("cpu_limit"),
        usual: *usual,
    };
    // Even with an invalid name, the rest is checked.
    let named = name.clone().unwrap_or_else(|| VmName::on_host(""));
    let info = match file.peek("annotations") {
        Some(_) => annotated(file, named, &defaults),
        None => plain(file, named, &defaults, memory_slot),
    };
    let (info, _) = (info?, name?);
    Some(VmFile { info, qmp: qmp?, informant: informant?, advertise, metrics, vcpu_removal })
}

fn name(file: &mut Reader, stem: &str) -> Option<VmName> {
    let plain = |c: char| c.is_ascii_alphanumeric() || ['-', '_', '.'].contains(&c);
    let good = stem.len() <= LONGEST_NAME
        && stem.starts_with(|c: char| c.is_ascii_alphanumeric())
        && stem.chars().all(plain);
    if !good {
        let limit = "must be 1 to 63 letters, digits, dots, dashes and underscores, a letter or \
                     digit first";
        file.wrong("the file's name", format!("{stem:?}"), limit);
    }
    good.then(|| VmName::on_host(stem))
}

/// The file's slot, or `usual` if the file has no slot; `None` if its slot is invalid.
pub fn memory_slot(file: &mut Reader, usual: Bytes) -> Option<Bytes> {
    let slot = file.find("memory_slot");
    file.are_sound(&["memory_slot"]).then_some(slot.unwrap_or(usual))
}

/// The bounds of a file with `min` and `max`, in slots of this size if it is known.
pub fn bounds(file: &mut Reader, slot: Option<Bytes>) -> Option<Bounds> {
    let kind = limits::slots(slot.unwrap_or_default());
    let mut size = |[cpu, mem]: [&str; 2]| {
        let cpu: Option<MilliCpu> = file.required(cpu);
        file.require(mem);
        let is_whole = |memory: &Bytes| slot.is_none() || kind.has_memory(*memory);
        let mem = file.find_as(mem, kind, |node| node.memory().filter(is_whole));
        Some(Resources { cpu: cpu?, mem: mem? })
    };
    let (min, max) = (size(["min.cpu", "min.memory"]), size(["max.cpu", "max.memory"]));
    let bounds = limits::bounds(min?, max?, ["max.cpu", "max.memory"]);
    bounds.map_err(|problems| file.add(problems)).ok()
}

/// The desired state from the file's own keys.
fn plain(
    file: &mut Reader,
    name: VmName,
    defaults: &Defaults,
    slot: Option<Bytes>,
) -> Option<VmInfo> {
    let bounds = bounds(file, slot);
    let Target { load_average, memory } = defaults.usual.target;
    let load_average = file.find("target.load_average").unwrap_or(load_average);
    let memory = file.find("target.memory").unwrap_or(memory);
    let usual = Usual { target: Target { load_average, memory }, ..defaults.usual };
    let defaults = Defaults { bounds: Some(bounds?), usual, ..*defaults };
    Annotations::default().info(name, &defaults).ok()
}

/// The desired state from annotations, and from the file's own keys where annotations are silent.
fn annotated(file: &mut Reader, name: VmName, defaults: &Defaults) -> Option<VmInfo> {
    let table = file.find_with("annotations", |node| node.table().cloned())?;
    file.forbid(&SIZED, "must not stand beside annotations");
    let (count, texts) = (table.len(), texts(file, table));
    // The bounds of a broken annotation are not reported as missing: its own problem is enough.
    let unread = texts.len() < count;
    let mut said = Annotations::default();
    let mut problems = said.update(&texts, defaults.memory_slot);
    let broken = unread || problems.iter().any(is_about_bounds);
    problems.extend(said.beside(defaults));
    let info = said.info(name, defaults);
    let info = info.map_err(|wrong| problems.extend(wrong.into_iter().filter(|_| !broken))).ok();
    file.add(problems.into_iter().map(|problem| problem.within("annotations")));
    info
}

/// The annotations that are texts.
fn texts(file: &mut Reader, table: BTreeMap<String, Node>) -> BTreeMap<String, String> {
    let mut texts = BTreeMap::new();
    for (key, node) in table {
        match node.text() {
            Some(text) => drop(texts.insert(key, text.to_owned())),
            None => file.wrong(&format!("annotations.{key}"), node, "must be a text"),
        }
    }
    texts
}

fn is_about_bounds(problem: &Problem) -> bool {
    [BOUNDS, THEIR_BOUNDS].iter().any(|name| problem.field.starts_with(name))
}

fn socket(node: &Node) -> Option<SocketAddr> {
    let socket: SocketAddr = node.text()?.parse().ok()?;
    (socket.port() != 0 && !socket.ip().is_unspecified()).then_some(socket)
}

fn address(node: &Node) -> Option<IpAddr> {
    let address: IpAddr = node.text()?.parse().ok()?;
    (!address.is_unspecified()).then_some(address)
}

/// Seconds, or a text.
fn scale_down(node: &Node) -> Option<Duration> {
    match node.whole() {
        Some(seconds) => limits::scale_down_seconds(u64::try_from(seconds).ok()?),
        None => limits::scale_down(node.text()?),
    }
}
