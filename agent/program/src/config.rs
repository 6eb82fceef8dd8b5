//! What an agent is told about itself: our agent.toml, or the reference's JSON.
//!
//! All problems of a file are reported together, each with the field, what stands there and what
//! may. An unknown key is a problem. What the command line says wins.

use crate::keys::{AGENT_KEYS, BILLING, JSON_KEYS};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;
use windlass_agent::{Periods, PluginAt, Silence, Times};
use windlass_agent_billing::Source;
use windlass_agent_billing::config::{Config as Billing, Spelling};
use windlass_kit::check::{Check, Form, address, cpu, memory, path, ports, time};
use windlass_kit::config::{parse_json, parse_toml};
use windlass_kit::problem::Problem;
use windlass_protocol::timing::LONGEST_ACT;
use windlass_protocol::vm_file::Node;
use windlass_protocol::{Bytes, MilliCpu, ScaleDown, Target, UnitChoice, Usual};

/// The shortest time that anything may take.
const SHORTEST: Duration = Duration::from_millis(100);
/// Who waits less does not hear of an informant that cannot call back: that takes it 1.5 s.
const SHORTEST_REGISTER: Duration = Duration::from_secs(2);
/// The longest wait for an informant that may be told: what is away longer is a person's matter.
const LONGEST_WAIT: Duration = Duration::from_secs(300);
/// The most of a count of seconds that nothing depends on.
const MOST_SECONDS: u64 = 86_400;

/// What an agent is told about itself.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentConfig {
    /// Where permits are asked for.
    pub plugin: PluginAt,
    /// Where it keeps what survives a restart.
    pub state_dir: PathBuf,
    /// Where it looks for VM files.
    pub vms_dir: PathBuf,
    /// Where health and metrics are served.
    pub admin: SocketAddr,
    /// Where the state is shown, and how long gathering it may take.
    pub dump_state: Option<(SocketAddr, Duration)>,
    /// Where informants call back.
    pub callback_listen: IpAddr,
    /// One port per VM.
    pub callback_ports: RangeInclusive<u16>,
    /// Whether a parked vCPU is given back.
    pub trust_guest_parking: bool,
    /// The step that sizes move in.
    pub unit: UnitChoice,
    /// How long requests may take.
    pub times: Times,
    /// How often what is asked.
    pub periods: Periods,
    /// When an informant counts as silent.
    pub silence: Silence,
    /// What VM files aim at that state nothing.
    pub usual: Usual,
    /// What counts as something else than the reference's file says.
    pub adjusted: Vec<Problem>,
    /// Where billing events go, and when; none are sent without it.
    pub billing: Option<Billing>,
    /// Where billing events say they are from; there if anything is billed.
    pub source: Option<Source>,
}

/// What the command line and the environment say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Given {
    /// In place of `plugin`.
    pub plugin: Option<PluginAt>,
    /// In place of `vms_dir`.
    pub vms_dir: Option<PathBuf>,
    /// In place of `state_dir`.
    pub state_dir: Option<PathBuf>,
    /// In place of `admin`.
    pub admin: Option<SocketAddr>,
    /// In place of `compute_unit.cpu`, in its range.
    pub unit_cpu: Option<MilliCpu>,
    /// In place of `compute_unit.memory`, in its range.
    pub unit_memory: Option<Bytes>,
    /// Where informants call back, unless the file says.
    pub pod_ip: Option<IpAddr>,
    /// The name of this node.
    pub node_name: Option<String>,
}

// === impl AgentConfig ===

impl AgentConfig {
    /// Reads agent.toml.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn from_toml(text: &str, given: &Given) -> Result<Self, Vec<Problem>> {
        let table = parse_toml(text).map_err(|problem| vec![problem.into()])?;
        let mut check = Check::of(AGENT_KEYS, table, Form::Toml);
        let read = |node: &Node| node.text()?.parse().ok();
        let plugin = match given.plugin.clone() {
            Some(plugin) => {
                check.get("plugin", read);
                Some(plugin)
            }
            None => check.required("plugin", read),
        };
        let dump = check.get("dump_state", address).unwrap_or(here(10300));
        let limits = SHORTEST..=Duration::from_secs(60);
        let limit = check.get("dump_state_timeout", |node| time(node, &limits));
        let usual = given.usual();
        let config = Self {
            plugin: plugin.unwrap_or(usual.plugin),
            state_dir: check.get("state_dir", path).unwrap_or(usual.state_dir),
            vms_dir: check.get("vms_dir", path).unwrap_or(usual.vms_dir),
            admin: check.get("admin", address).unwrap_or(usual.admin),
            dump_state: Some((dump, limit.unwrap_or(Duration::from_secs(5)))),
            callback_listen: check
                .get("callback_listen", |node| node.text()?.parse().ok())
                .unwrap_or(usual.callback_listen),
            callback_ports: check.get("callback_ports", ports).unwrap_or(usual.callback_ports),
            trust_guest_parking: check.get("trust_guest_parking", Node::truth).unwrap_or(false),
            unit: unit(&mut check),
            times: times(&mut check),
            periods: periods(&mut check),
            silence: silence(&mut check),
            usual: usual.usual,
            adjusted: usual.adjusted,
            source: given.source(&mut check),
            billing: billing(&mut check, Spelling::Snake),
        };
        let config = Self {
            state_dir: given.state_dir.clone().unwrap_or(config.state_dir),
            vms_dir: given.vms_dir.clone().unwrap_or(config.vms_dir),
            admin: given.admin.unwrap_or(config.admin),
            unit: given.unit(config.unit),
            ..config
        };
        check.unknown();
        config.combinations(&mut check);
        check.finish(config)
    }

    /// Reads the reference's JSON, as its v0.12.2 does.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn from_json(text: &str, given: &Given) -> Result<Self, Vec<Problem>> {
        let table = parse_json(text).map_err(|problem| vec![problem.into()])?;
        let mut check = Check::of(JSON_KEYS, table, Form::Json);
        if given.plugin.is_none() {
            let limit = "is needed: this file does not say where the plugin is";
            check.add([Problem::without_value("--plugin", limit)]);
        }
        let usual = given.usual();
        let mut adjusted = Vec::new();
        let mut seconds = |name, from, range| {
            clamped(&mut check, &mut adjusted, name, from, range).map(Duration::from_secs)
        };
        let times = Times {
            register: seconds(
                "informant.registerTimeoutSeconds",
                1,
                SHORTEST_REGISTER.as_secs()..=30,
            )
            .unwrap_or(usual.times.register),
            health: seconds("informant.requestTimeoutSeconds", 1, 1..=5)
                .unwrap_or(usual.times.health),
            size: seconds("informant.downscaleTimeoutSeconds", 1, 1..=LONGEST_ACT.as_secs())
                .unwrap_or(usual.times.size),
            // The reference does not look at it, and takes zero.
            metrics: seconds("metrics.requestTimeoutSeconds", 0, 1..=10)
                .unwrap_or(usual.times.metrics),
            permit: seconds("scheduler.requestTimeoutSeconds", 1, 1..=LONGEST_ACT.as_secs())
                .unwrap_or(usual.times.permit),
            unregister: usual.times.unregister,
        };
        let own = Periods::REFERENCE;
        let wait = 1..=LONGEST_WAIT.as_secs();
        let periods = Periods {
            metrics: seconds(
                "metrics.secondsBetweenRequests",
                1,
                1..=Periods::LONGEST_METRICS.as_secs(),
            )
            .unwrap_or(own.metrics),
            register_retry: seconds("informant.registerRetrySeconds", 1, wait.clone())
                .unwrap_or(own.register_retry),
            session_retry: seconds("informant.retryServerNormalWaitSeconds", 1, wait.clone())
                .unwrap_or(own.session_retry),
            session_gap: seconds("informant.retryServerMinWaitSeconds", 1, wait)
                .unwrap_or(own.session_gap),
            health: own.health,
        };
        let silent = 1..=MOST_SECONDS;
        let silence = Silence {
            after: seconds("informant.unhealthyAfterSilenceDurationSeconds", 1, silent.clone())
                .unwrap_or(usual.silence.after),
            grace: seconds("informant.unhealthyStartupGracePeriodSeconds", 1, silent)
                .unwrap_or(usual.silence.grace),
        };
        let dump_state = check.has_table("dumpState").then(|| {
            let port = check.get("dumpState.port", |node| whole(node, 65_535));
            let limit = clamped(&mut check, &mut adjusted, "dumpState.timeoutSeconds", 1, 1..=60);
            let limit = limit.unwrap_or(5);
            let port = port.and_then(|port| u16::try_from(port).ok()).unwrap_or(10_300);
            (SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)), Duration::from_secs(limit))
        });
        // The reference gives back at once.
        let vms =
            Usual { target: target(&mut check, &mut adjusted), scale_down: ScaleDown::AT_ONCE };
        unused(&mut check, &mut adjusted);
        let source = given.source(&mut check);
        let billing = billing(&mut check, Spelling::Camel);
        let config = Self {
            times,
            periods,
            silence,
            dump_state,
            usual: vms,
            adjusted,
            billing,
            source,
            ..usual
        };
        check.unknown();
        config.combinations(&mut check);
        check.finish(config)
    }

    /// What differs from `other`; all of it is only read at the start.
    pub fn needs_restart(&self, other: &Self) -> Vec<&'static str> {
        [
            ("plugin", self.plugin != other.plugin),
            ("state_dir", self.state_dir != other.state_dir),
            ("vms_dir", self.vms_dir != other.vms_dir),
            ("admin", self.admin != other.admin),
            ("dump_state", self.dump_state != other.dump_state),
            ("callback_listen", self.callback_listen != other.callback_listen),
            ("callback_ports", self.callback_ports != other.callback_ports),
            ("trust_guest_parking", self.trust_guest_parking != other.trust_guest_parking),
            ("compute_unit", self.unit != other.unit),
            ("times", self.times != other.times),
            ("periods", self.periods != other.periods),
            ("silence", self.silence != other.silence),
            ("scaling.defaultConfig", self.usual != other.usual),
            ("billing", self.billing != other.billing),
        ]
        .into_iter()
        .filter_map(|(name, differs)| differs.then_some(name))
        .collect()
    }

    /// What is right by itself and wrong together.
    fn combinations(&self, check: &mut Check) {
        if self.state_dir == self.vms_dir {
            let dir = self.vms_dir.display().to_string();
            check.wrong("vms_dir", &dir, "must not be the same folder as state_dir");
        }
        let dump = self.dump_state.map(|(at, _)| ("dump_state", at));
        for (name, at) in [Some(("admin", self.admin)), dump].into_iter().flatten() {
            let (ports, ip) = (&self.callback_ports, self.callback_listen);
            if overlap(at.ip(), ip) && ports.contains(&at.port()) {
                let ports = format!("{}-{}", ports.start(), ports.end());
                let limit = format!("must not contain {}, the port of {name}", at.port());
                check.wrong("callback_ports", &ports, &limit);
            }
        }
        if let Some((_, at)) = dump
            && overlap(at.ip(), self.admin.ip())
            && at.port() == self.admin.port()
            && at.port() != 0
        {
            check.wrong("admin", &self.admin, "must not be the address of dump_state");
        }
    }
}

// === impl Given ===

impl Given {
    /// What holds where a file says nothing.
    fn usual(&self) -> AgentConfig {
        // Replaced, or a problem.
        let nowhere = "http://127.0.0.1:10299".parse().expect("this is an address");
        AgentConfig {
            plugin: self.plugin.clone().unwrap_or(nowhere),
            state_dir: self.state_dir.clone().unwrap_or("/var/lib/windlass-agent".into()),
            vms_dir: self.vms_dir.clone().unwrap_or("/etc/windlass/vms.d".into()),
            admin: self.admin.unwrap_or(here(10304)),
            dump_state: None,
            callback_listen: self.pod_ip.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            callback_ports: 10310..=10399,
            trust_guest_parking: false,
            unit: self.unit(UnitChoice::default()),
            times: Times::default(),
            periods: Periods::default(),
            silence: Silence::default(),
            usual: Usual::default(),
            adjusted: Vec::new(),
            billing: None,
            source: None,
        }
    }

    /// The name of this node, if anything is to be billed: then it is needed.
    fn source(&self, check: &mut Check) -> Option<Source> {
        if !check.has_table("billing") {
            return None;
        }
        let Some(name) = self.node_name.clone() else {
            let limit = "is needed with billing: events say where they are from";
            check.add([Problem::without_value("--node-name", limit)]);
            return None;
        };
        let source = Source::try_from(name.clone());
        let limit = "must be 1 to 253 letters, digits and punctuation of ASCII";
        let quoted = format!("{name:?}");
        source.map_err(|_| check.wrong("--node-name", &quoted, limit)).ok()
    }

    /// The unit, but for what the command line says of it.
    fn unit(&self, unit: UnitChoice) -> UnitChoice {
        UnitChoice { cpu: self.unit_cpu.or(unit.cpu), mem: self.unit_memory.or(unit.mem) }
    }
}

/// vCPUs of a compute unit.
pub fn unit_cpu(node: &Node) -> Option<MilliCpu> {
    cpu(node, 64)
}

/// Memory of a compute unit.
pub fn unit_memory(node: &Node) -> Option<Bytes> {
    memory(node, Bytes::from_mib(1), Bytes::from_gib(1024))
}

fn unit(check: &mut Check) -> UnitChoice {
    UnitChoice {
        cpu: check.get("compute_unit.cpu", unit_cpu),
        mem: check.get("compute_unit.memory", unit_memory),
    }
}

fn times(check: &mut Check) -> Times {
    let usual = Times::default();
    let seconds = Duration::from_secs;
    let register = SHORTEST_REGISTER..=seconds(30);
    let register = check.get("times.register", |node| time(node, &register));
    let mut within =
        |name, most, usual| check.get(name, |node| time(node, &(SHORTEST..=most))).unwrap_or(usual);
    Times {
        register: register.unwrap_or(usual.register),
        unregister: within("times.unregister", seconds(10), usual.unregister),
        health: within("times.health", seconds(5), usual.health),
        size: within("times.size", LONGEST_ACT, usual.size),
        metrics: within("times.metrics", seconds(10), usual.metrics),
        permit: within("times.permit", LONGEST_ACT, usual.permit),
    }
}

fn periods(check: &mut Check) -> Periods {
    let usual = Periods::default();
    let second = Duration::from_secs(1);
    let mut within = |name, least, most, usual| {
        check.get(name, |node| time(node, &(least..=most))).unwrap_or(usual)
    };
    Periods {
        health: within("periods.health", second, Periods::LONGEST_HEALTH, usual.health),
        metrics: within("periods.metrics", second, Periods::LONGEST_METRICS, usual.metrics),
        register_retry: within(
            "periods.register_retry",
            second,
            LONGEST_WAIT,
            usual.register_retry,
        ),
        session_retry: within("periods.session_retry", SHORTEST, LONGEST_WAIT, usual.session_retry),
        session_gap: within("periods.session_gap", SHORTEST, LONGEST_WAIT, usual.session_gap),
    }
}

fn silence(check: &mut Check) -> Silence {
    let usual = Silence::default();
    let limits = Duration::from_secs(1)..=Duration::from_secs(MOST_SECONDS);
    let mut within = |name, usual| check.get(name, |node| time(node, &limits)).unwrap_or(usual);
    Silence {
        after: within("silence.after", usual.after),
        grace: within("silence.grace", usual.grace),
    }
}

/// What is billed, if anything is said of it.
fn billing(check: &mut Check, spelling: Spelling) -> Option<Billing> {
    if !check.has_table("billing") {
        return None;
    }
    let mut table = BTreeMap::new();
    for [snake, camel] in BILLING {
        let name = match spelling {
            Spelling::Snake => snake,
            Spelling::Camel => camel,
        };
        if let Some(node) = check.get(name, |node| Some(node.clone())) {
            table.insert(name.trim_start_matches("billing.").to_owned(), node);
        }
    }
    Billing::from_table(table, spelling)
        .map_err(|problems| check.add(problems.into_iter().map(Problem::from)))
        .ok()
}

/// What the reference aims at where a VM states nothing. It takes zero, at which nothing can be
/// aimed: then the default counts.
fn target(check: &mut Check, adjusted: &mut Vec<Problem>) -> Target {
    let (name, usual) = ("scaling.defaultConfig.loadAverageFractionTarget", Target::default());
    let given = check.get(name, |node| node.number().filter(|aim| (0.0..2.0).contains(aim)));
    match given {
        Some(0.0) => {
            let limit =
                format!("counts as {}, since no load cannot be aimed at", usual.load_average);
            adjusted.push(Problem::new(name, 0, limit));
            usual
        }
        Some(load_average) => Target { load_average, ..usual },
        None => usual,
    }
}

/// What the reference uses and this agent does not: it is still to be what it should.
fn unused(check: &mut Check, adjusted: &mut Vec<Problem>) {
    check.get("scaling.requestTimeoutSeconds", |node| whole(node, u64::MAX));
    for name in ["informant.serverPort", "scheduler.requestPort"] {
        check.get(name, |node| whole(node, 65_535));
    }
    let text = |node: &Node| node.text().filter(|text| !text.is_empty()).map(str::to_owned);
    check.get("scheduler.schedulerName", text);
    let prefix = check.get("metrics.loadMetricPrefix", text);
    if let Some(prefix) = prefix.filter(|prefix| !["host_", "node_"].contains(&prefix.as_str())) {
        let limit = "is not read; host_ and node_ are, whichever the guest has";
        adjusted.push(Problem::new("metrics.loadMetricPrefix", format!("{prefix:?}"), limit));
    }
}

/// A whole number of the reference's file, which knows no limit but the least: what is beyond the
/// range counts as its end.
fn clamped(
    check: &mut Check,
    adjusted: &mut Vec<Problem>,
    name: &'static str,
    least: u64,
    range: RangeInclusive<u64>,
) -> Option<u64> {
    let read = |node: &Node| u64::try_from(node.whole()?).ok();
    let given = check.get(name, |node| read(node).filter(|given| *given >= least))?;
    let counts = given.clamp(*range.start(), *range.end());
    if given != counts {
        let end = if given > counts { "most" } else { "least" };
        let limit = format!("counts as {counts}, the {end} that is taken");
        adjusted.push(Problem::new(name, given, limit));
    }
    Some(counts)
}

/// A whole number from 1 to `most`.
fn whole(node: &Node, most: u64) -> Option<u64> {
    u64::try_from(node.whole()?).ok().filter(|number| (1..=most).contains(number))
}

fn overlap(a: IpAddr, b: IpAddr) -> bool {
    a == b || a.is_unspecified() || b.is_unspecified()
}

const fn here(port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)
}
