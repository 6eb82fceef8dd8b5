//! What an agent is told about itself: our agent.toml, or the reference's JSON.
//!
//! All problems of a file are reported together, each with the field, what stands there and what
//! may. An unknown key is a problem. What the command line says wins.

use crate::keys::{AGENT, JSON, WITHOUT_CLUSTER};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use windlass_agent::{Periods, PluginAt, Silence, Times};
use windlass_agent_billing::{Config as Billing, Source};
use windlass_agent_host::basics::Basics;
use windlass_kit::client::TrustFiles;
use windlass_kit::config::{self, changed};
use windlass_kit::problem::Problem;
use windlass_protocol::config::Reader;
use windlass_protocol::{Bytes, MilliCpu, ScaleDown, Target, UnitChoice, Usual, unit_choice};

/// What an agent is told about itself.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentConfig {
    /// Where permits are asked for.
    pub plugin: PluginAt,
    /// How the plugin is known, and the agent to it.
    pub trust: Trusted,
    /// What host.toml says, too.
    pub basics: Basics,
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
    /// The cluster whose objects declare the VMs; without it files do.
    pub kubernetes: Option<Kubernetes>,
}

/// The cluster whose objects declare the VMs of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kubernetes {
    /// The node whose VMs they are.
    pub node: String,
    /// How the API server is reached; `None`: by the service account of the pod.
    pub kubeconfig: Option<PathBuf>,
    /// The kubelet's folder of pods; `None`: no VM of QEMU in a pod is scaled.
    pub pods_dir: Option<PathBuf>,
}

/// How a plugin over TLS is known, and the agent to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trusted {
    /// Who signs the plugin's certificate.
    pub ca: Option<PathBuf>,
    /// The token that the agent shows.
    pub token: Option<PathBuf>,
}

/// What the command line and the environment say, which overrides the file.
#[derive(Clone, Debug, Default, PartialEq, clap::Args)]
pub struct CommandLine {
    /// In place of `plugin`.
    #[arg(long, value_name = "URL", env = "WINDLASS_PLUGIN", help = help("plugin"))]
    pub plugin: Option<PluginAt>,
    /// In place of `plugin_ca`.
    #[arg(long, value_name = "FILE", env = "WINDLASS_PLUGIN_CA", help = help("plugin_ca"))]
    pub plugin_ca: Option<PathBuf>,
    /// In place of `plugin_token`.
    #[arg(long, value_name = "FILE", env = "WINDLASS_PLUGIN_TOKEN", help = help("plugin_token"))]
    pub plugin_token: Option<PathBuf>,
    /// In place of `vms_dir`.
    #[arg(long, value_name = "DIR", env = "WINDLASS_VMS_DIR", help = help("vms_dir"))]
    pub vms_dir: Option<PathBuf>,
    /// In place of `state_dir`.
    #[arg(long, value_name = "DIR", env = "WINDLASS_STATE_DIR", help = help("state_dir"))]
    pub state_dir: Option<PathBuf>,
    /// In place of `socket`.
    #[arg(long, value_name = "PATH", env = "WINDLASS_SOCKET", help = help("socket"))]
    pub socket: Option<PathBuf>,
    /// In place of `kubernetes.pods_dir`.
    #[arg(long, value_name = "DIR", env = "WINDLASS_PODS_DIR", help = help("kubernetes.pods_dir"))]
    pub pods_dir: Option<PathBuf>,
    /// In place of `admin`.
    #[arg(long, value_name = "ADDR", env = "WINDLASS_ADMIN", help = help("admin"))]
    pub admin: Option<SocketAddr>,
    /// One more unix socket at which the log level can be changed, by its owner and root alone.
    #[arg(long, value_name = "PATH", env = "WINDLASS_ADMIN_SOCKET")]
    pub admin_socket: Option<PathBuf>,
    /// In place of `compute_unit.cpu`.
    #[arg(long = "compute-unit-cpu", value_name = "N", env = "WINDLASS_COMPUTE_UNIT_CPU",
        value_parser = |text: &str| unit_choice::CPU.parse::<MilliCpu>(text),
        help = help("compute_unit.cpu"))]
    pub unit_cpu: Option<MilliCpu>,
    /// In place of `compute_unit.memory`.
    #[arg(long = "compute-unit-memory", value_name = "SIZE", env = "WINDLASS_COMPUTE_UNIT_MEMORY",
        value_parser = |text: &str| unit_choice::MEMORY.parse::<Bytes>(text),
        help = help("compute_unit.memory"))]
    pub unit_memory: Option<Bytes>,
    /// The name of this node, for the log and for billing, which needs it.
    #[arg(long, value_name = "NAME", env = "K8S_NODE_NAME")]
    pub node_name: Option<String>,
    /// Where informants call back, unless the file says.
    #[arg(long, value_name = "IP", env = "K8S_POD_IP")]
    pub pod_ip: Option<IpAddr>,
}

// === impl AgentConfig ===

impl AgentConfig {
    /// Reads agent.toml.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn from_toml(text: &str, command_line: &CommandLine) -> Result<Self, Vec<Problem>> {
        let mut file = config::read(&AGENT, text)?;
        if command_line.plugin.is_none() {
            file.require("plugin");
        }
        let config = Self::read(&mut file, command_line);
        let has_ca = file.peek("plugin_ca").is_some();
        file.add(config.distrust(has_ca));
        config.basics.check(&mut file);
        file.finish(Some(config))
    }

    /// Reads the reference's JSON, as its v0.12.2 does.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn from_json(text: &str, command_line: &CommandLine) -> Result<Self, Vec<Problem>> {
        let mut file = config::read(&JSON, text)?;
        if command_line.plugin.is_none() {
            let limit = "is needed: this file does not say where the plugin is";
            file.add([Problem::without_value("--plugin", limit)]);
        }
        // What this file has no key for is as without a file.
        let own = Self::read(&mut Reader::of(&AGENT, BTreeMap::new()), command_line);
        let times = Times {
            register: file.seconds("informant.registerTimeoutSeconds"),
            health: file.seconds("informant.requestTimeoutSeconds"),
            size: file.seconds("informant.downscaleTimeoutSeconds"),
            metrics: file.seconds("metrics.requestTimeoutSeconds"),
            permit: file.seconds("scheduler.requestTimeoutSeconds"),
            unregister: own.times.unregister,
        };
        let periods = Periods {
            metrics: file.seconds("metrics.secondsBetweenRequests"),
            register_retry: file.seconds("informant.registerRetrySeconds"),
            session_retry: file.seconds("informant.retryServerNormalWaitSeconds"),
            session_gap: file.seconds("informant.retryServerMinWaitSeconds"),
            health: Periods::REFERENCE.health,
        };
        let silence = Silence {
            after: file.seconds("informant.unhealthyAfterSilenceDurationSeconds"),
            grace: file.seconds("informant.unhealthyStartupGracePeriodSeconds"),
        };
        let dump_state = file.has_table("dumpState").then(|| {
            let at = SocketAddr::from((Ipv4Addr::UNSPECIFIED, file.get("dumpState.port")));
            (at, file.seconds("dumpState.timeoutSeconds"))
        });
        let basics = Basics { dump_state, ..own.basics };
        // The reference gives back at once.
        let usual = Usual { target: target(&mut file), scale_down: ScaleDown::AT_ONCE };
        unused(&mut file);
        let source = command_line.source(&mut file);
        let billing = Billing::read(&mut file);
        let adjusted = file.adjusted();
        let config =
            Self { basics, times, periods, silence, usual, adjusted, billing, source, ..own };
        file.add(config.distrust(false));
        config.basics.check(&mut file);
        file.finish(Some(config))
    }

    /// Every key is looked at, also when an earlier one is wrong. What the command line says wins, and
    /// has to be right in the file all the same.
    fn read(file: &mut Reader, command_line: &CommandLine) -> Self {
        let plugin = file.find_with("plugin", |node| node.text()?.parse().ok());
        // Replaced, or a problem.
        let nowhere = || "http://127.0.0.1:10299".parse().expect("this is an address");
        let (ca, token) = (file.find("plugin_ca"), file.find("plugin_token"));
        let plugin = command_line.plugin.clone().or(plugin).unwrap_or_else(nowhere);
        Self {
            plugin,
            trust: Trusted {
                ca: command_line.plugin_ca.clone().or(ca),
                token: command_line.plugin_token.clone().or(token),
            },
            basics: command_line.basics(file),
            times: Times {
                register: file.get("times.register"),
                unregister: file.get("times.unregister"),
                health: file.get("times.health"),
                size: file.get("times.size"),
                metrics: file.get("times.metrics"),
                permit: file.get("times.permit"),
            },
            periods: Periods {
                health: file.get("periods.health"),
                metrics: file.get("periods.metrics"),
                register_retry: file.get("periods.register_retry"),
                session_retry: file.get("periods.session_retry"),
                session_gap: file.get("periods.session_gap"),
            },
            silence: Silence { after: file.get("silence.after"), grace: file.get("silence.grace") },
            usual: Usual::default(),
            adjusted: Vec::new(),
            source: command_line.source(file),
            billing: Billing::read(file),
            kubernetes: command_line.kubernetes(file),
        }
    }

    /// What differs from `other`; all of it is only read at the start.
    pub fn needs_restart(&self, other: &Self) -> Vec<&'static str> {
        let of_host = self.basics.needs_restart(&other.basics);
        let own = changed(&[
            ("times", self.times != other.times),
            ("periods", self.periods != other.periods),
            ("silence", self.silence != other.silence),
            ("scaling.defaultConfig", self.usual != other.usual),
            ("billing", self.billing != other.billing),
            ("kubernetes", self.kubernetes != other.kubernetes),
        ]);
        let plugin = self.plugin != other.plugin || self.trust != other.trust;
        [changed(&[("plugin", plugin)]), of_host, own].concat()
    }

    /// What is wrong with how the plugin is known: over TLS by its CA and else not at all, where a token would
    /// be read on its way.
    fn distrust(&self, file_has_ca: bool) -> Vec<Problem> {
        let Trusted { ca, token } = &self.trust;
        let is_missing = ca.is_none() && !file_has_ca && self.plugin.has_tls();
        let missing = "is needed with https://: whose certificate the plugin shows";
        let needed = is_missing.then(|| Problem::without_value("plugin_ca", missing));
        let limit = "must not be there without https:// in plugin";
        let beside =
            [("plugin_ca", ca), ("plugin_token", token)].into_iter().filter_map(|(key, path)| {
                let path = path.as_ref().filter(|_| !self.plugin.has_tls())?;
                Some(Problem::new(key, path.display(), limit))
            });
        needed.into_iter().chain(beside).collect()
    }

    /// The files by which the plugin is known, if it is asked over TLS.
    pub fn trust_files(&self) -> Option<TrustFiles> {
        let Trusted { ca, token } = self.trust.clone();
        Some(TrustFiles { ca: ca?, token })
    }
}

// === impl CommandLine ===

impl CommandLine {
    /// What both programs say, where the file says this.
    fn basics(&self, file: &mut Reader) -> Basics {
        let of_file = Basics::read(file, self.pod_ip.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)));
        Basics {
            state_dir: self.state_dir.clone().unwrap_or(of_file.state_dir),
            vms_dir: self.vms_dir.clone().unwrap_or(of_file.vms_dir),
            socket: self.socket.clone().unwrap_or(of_file.socket),
            admin: self.admin.unwrap_or(of_file.admin),
            unit: UnitChoice {
                cpu: self.unit_cpu.or(of_file.unit.cpu),
                mem: self.unit_memory.or(of_file.unit.mem),
            },
            ..of_file
        }
    }

    /// The cluster, if VMs are declared by its objects.
    fn kubernetes(&self, file: &mut Reader) -> Option<Kubernetes> {
        if !file.has_table("kubernetes") {
            return None;
        }
        if file.has_table("billing") {
            let limit = "must not be there with [kubernetes]: nothing is billed there yet";
            file.add([Problem::without_value("billing", limit)]);
        }
        for (key, limit) in WITHOUT_CLUSTER {
            if let Some(node) = file.peek(key).cloned() {
                file.wrong(key, &node, limit);
            }
        }
        let (node, kubeconfig) = (file.find("kubernetes.node"), file.find("kubernetes.kubeconfig"));
        let pods_dir = file.find("kubernetes.pods_dir");
        let pods_dir = self.pods_dir.clone().or(pods_dir);
        let Some(node) = self.node_name.clone().or(node) else {
            if file.peek("kubernetes.node").is_none() {
                let limit = "is needed, or --node-name: the node whose VMs are scaled";
                file.add([Problem::without_value("kubernetes.node", limit)]);
            }
            return None;
        };
        Some(Kubernetes { node, kubeconfig, pods_dir })
    }

    /// The name of this node, if anything is to be billed: then it is needed.
    fn source(&self, file: &mut Reader) -> Option<Source> {
        if !file.has_table("billing") {
            return None;
        }
        let Some(name) = self.node_name.clone() else {
            let limit = "is needed with billing: events say where they are from";
            file.add([Problem::without_value("--node-name", limit)]);
            return None;
        };
        let source = Source::try_from(name.clone());
        let limit = "must be 1 to 253 letters, digits and punctuation of ASCII";
        let quoted = format!("{name:?}");
        source.map_err(|_| file.wrong("--node-name", quoted, limit)).ok()
    }
}

/// What `--help` says of an option that a key of the file has too.
fn help(key: &str) -> String {
    AGENT.field(key).help()
}

/// What the reference aims at where a VM states nothing. It takes zero, at which nothing can be
/// aimed: then the default counts.
fn target(file: &mut Reader) -> Target {
    let name = "scaling.defaultConfig.loadAverageFractionTarget";
    let load_average = file.get(name);
    if load_average == 0.0 {
        let usual = Target::USUAL;
        let limit = format!("counts as {}, since no load cannot be aimed at", usual.load_average);
        file.adjust(name, 0, limit);
        return usual;
    }
    Target { load_average, ..Target::USUAL }
}

/// What the reference uses and this agent does not: it is still to be what it should.
fn unused(file: &mut Reader) {
    for name in ["scaling.requestTimeoutSeconds", "informant.serverPort", "scheduler.requestPort"] {
        file.find::<u64>(name);
    }
    file.find::<String>("scheduler.schedulerName");
    let name = "metrics.loadMetricPrefix";
    let prefix: String = file.get(name);
    if !["host_", "node_"].contains(&prefix.as_str()) {
        let limit = "is not read; host_ and node_ are, whichever the guest has";
        file.adjust(name, format!("{prefix:?}"), limit);
    }
}
