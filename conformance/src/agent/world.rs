//! What the peers of an agent know: how they are to behave, and what they heard.

use crate::http::Answer;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Bytes of memory that the VM was started with.
pub(super) const BOOT: u64 = 256 << 20;

/// Bytes of a slot of memory on the plugin's wire.
pub(super) const SLOT: u64 = 128 << 20;

/// How a peer treats a request.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Manner {
    /// As it should.
    Works,
    /// The same, so much later.
    Late(Duration),
    /// No answer comes.
    Silent,
    /// Refuses with this status and text.
    Refuses(u16, &'static str),
    /// Answers 200 with this.
    Says(&'static str),
}

/// Something that a peer of the agent heard.
#[derive(Clone, Debug)]
pub(super) struct Heard {
    pub(super) at: Instant,
    pub(super) what: What,
}

#[derive(Clone, Debug)]
pub(super) enum What {
    /// The informant was asked.
    Guest { path: String, body: Value },
    /// The plugin was asked.
    Permit { body: Value },
    /// And answered, 200.
    Permitted { body: Value },
    /// The hypervisor was told to change the VM.
    Monitor { command: String, arguments: Value },
}

/// The peers, as one.
pub(super) struct World {
    /// The informant's version.
    pub(super) version: u32,
    /// The informant takes the highest that is offered instead.
    pub(super) any_version: bool,
    /// The only version that the plugin takes.
    pub(super) plugin_only: Option<u32>,
    /// How the informant treats each path.
    pub(super) manners: BTreeMap<&'static str, Manner>,
    /// Whether an agent that registered is resumed.
    pub(super) resumes: bool,
    /// Whether the guest agrees to have less.
    pub(super) agrees: bool,
    /// The load of the guest, and memory in use, in bytes.
    pub(super) load: f64,
    pub(super) used: u64,
    pub(super) plugin: Manner,
    /// The most that is permitted: thousandths of a vCPU, bytes.
    pub(super) most: (u64, u64),
    /// Whether the plugin says that the VM is about to be moved.
    pub(super) migrate: bool,
    /// Everything that was heard, the oldest first.
    pub(super) heard: Vec<Heard>,
    /// The session that registered last: its id, and where it is called.
    pub(super) session: Option<(String, SocketAddr)>,
    /// What the agent answered to `/id` while it registered.
    pub(super) identified: Option<Answer>,
    /// The session that was resumed last, and the status of its answer.
    pub(super) resumed: Option<(String, Option<u16>)>,
    /// Where the guest's metrics are.
    pub(super) metrics_port: u16,
    /// vCPUs of the machine, and memory above [`BOOT`].
    pub(super) cpus: u64,
    pub(super) plugged: u64,
    /// The most vCPUs that the guest was told to use.
    pub(super) allowed: u64,
}

// === impl World ===

impl World {
    pub(super) fn new() -> Self {
        Self {
            version: 4,
            any_version: false,
            plugin_only: None,
            manners: BTreeMap::new(),
            resumes: true,
            agrees: true,
            load: 0.1,
            used: 64 << 20,
            plugin: Manner::Works,
            most: (u64::MAX, u64::MAX),
            migrate: false,
            heard: Vec::new(),
            session: None,
            identified: None,
            resumed: None,
            metrics_port: 0,
            cpus: 1,
            plugged: 0,
            allowed: u64::MAX,
        }
    }

    pub(super) fn hear(&mut self, what: What) {
        self.heard.push(Heard { at: Instant::now(), what });
    }

    /// The load of a guest that could use all vCPUs.
    pub(super) fn busy(&mut self) {
        self.load = 3.4;
    }

    /// The bodies of what the informant was asked at this path, with their times.
    pub(super) fn asked(&self, path: &str) -> Vec<(Instant, Value)> {
        let of = |heard: &Heard| match &heard.what {
            What::Guest { path: found, body, .. } if found == path => {
                Some((heard.at, body.clone()))
            }
            What::Guest { .. }
            | What::Permit { .. }
            | What::Permitted { .. }
            | What::Monitor { .. } => None,
        };
        self.heard.iter().filter_map(of).collect()
    }

    /// The requests for permits, with their times.
    pub(super) fn permits(&self) -> Vec<(Instant, Value)> {
        let of = |heard: &Heard| match &heard.what {
            What::Permit { body } => Some((heard.at, body.clone())),
            What::Guest { .. } | What::Permitted { .. } | What::Monitor { .. } => None,
        };
        self.heard.iter().filter_map(of).collect()
    }

    /// The permits that were given, with their times.
    pub(super) fn permitted(&self) -> Vec<(Instant, Value)> {
        let of = |heard: &Heard| match &heard.what {
            What::Permitted { body } => Some((heard.at, body.clone())),
            What::Guest { .. } | What::Permit { .. } | What::Monitor { .. } => None,
        };
        self.heard.iter().filter_map(of).collect()
    }

    /// What the hypervisor was told, with its times.
    pub(super) fn changes(&self) -> Vec<(Instant, String)> {
        let of = |heard: &Heard| match &heard.what {
            What::Monitor { command, arguments } => {
                Some((heard.at, format!("{command} {arguments}")))
            }
            What::Guest { .. } | What::Permit { .. } | What::Permitted { .. } => None,
        };
        self.heard.iter().filter_map(of).collect()
    }

    /// The memory beyond that of the boot that was asked for, with its times.
    pub(super) fn memory_requested(&self) -> Vec<(Instant, u64)> {
        let of = |heard: &Heard| match &heard.what {
            What::Monitor { arguments, .. } if arguments["property"] == "requested-size" => {
                Some((heard.at, arguments["value"].as_u64()?))
            }
            What::Monitor { .. }
            | What::Guest { .. }
            | What::Permit { .. }
            | What::Permitted { .. } => None,
        };
        self.heard.iter().filter_map(of).collect()
    }

    /// The same, without times.
    pub(super) fn commands(&self) -> Vec<String> {
        self.changes().into_iter().map(|(_, command)| command).collect()
    }

    /// How many amounts the informant was told or asked for.
    pub(super) fn amounts(&self) -> usize {
        self.asked("/downscale").len() + self.asked("/upscale").len()
    }

    /// What the guest reports, as Prometheus text.
    pub(super) fn metrics(&self) -> String {
        let (load, total) = (self.load, BOOT + self.plugged);
        let online = self.cpus.min(self.allowed).max(1);
        let available = total.saturating_sub(self.used);
        format!(
            "host_load1 {load}\nhost_load5 {load}\nwindlass_load{{window=\"5s\"}} {load}\n\
             windlass_load{{window=\"15s\"}} {load}\nwindlass_cpus_online {online}\n\
             windlass_cpus_reach {online}\nwindlass_memory_total_bytes {total}\n\
             windlass_memory_available_bytes {available}\n"
        )
    }

    /// What the plugin answers to a request: what was asked for, up to the most.
    pub(super) fn permit(&self, asked: &Value) -> Value {
        let number = asked["protoVersion"].as_u64().unwrap_or_default();
        let wanted =
            (milli(&asked["resources"]["vCPUs"]), memory(&asked["resources"]["mem"], number));
        let (cpu, mem) = (wanted.0.min(self.most.0), wanted.1.min(self.most.1));
        let cpu =
            if cpu.is_multiple_of(1000) { json!(cpu / 1000) } else { json!(format!("{cpu}m")) };
        let mem = if number < 6 { json!(mem / SLOT) } else { json!(format!("{}Mi", mem >> 20)) };
        let mut answer = json!({ "permit": { "vCPUs": cpu, "mem": mem } });
        if self.migrate {
            answer["migrate"] = json!({});
        }
        if number < 5 {
            answer["resourceUnit"] = json!({ "vCPUs": 1, "mem": 2 });
        }
        answer
    }
}

/// CPU on the plugin's wire, in thousandths.
pub(super) fn milli(found: &Value) -> u64 {
    match found.as_str() {
        Some(text) => text.trim_end_matches('m').parse().unwrap_or_default(),
        None => found.as_u64().unwrap_or_default().saturating_mul(1000),
    }
}

/// Memory on the plugin's wire, in bytes.
pub(super) fn memory(found: &Value, number: u64) -> u64 {
    if number < 6 {
        return found.as_u64().unwrap_or_default().saturating_mul(SLOT);
    }
    let Some(text) = found.as_str() else { return found.as_u64().unwrap_or_default() };
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match &text[digits.len()..] {
        "Ki" => 10,
        "Mi" => 20,
        "Gi" => 30,
        _ => 0,
    };
    digits.parse::<u64>().unwrap_or_default() << shift
}
