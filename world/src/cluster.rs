//! A Kubernetes cluster in virtual time: its API server, schedulers and kubelets, plugins that lead one after the other, and
//! the agents of VMs.
//!
//! A [`ClusterWorld`] runs the plugin's real core (pods, books, ceilings, lease, rebuild) in one thread. It knows the truth:
//! the API server's objects and what each hypervisor has. It loses, delays and repeats what is said, stops and kills
//! processes whose clocks run apart, and notes each law that is [`Broken`] when it happens. Everything follows from one seed.
//!
//! Where to look: `api` has the objects, `pods` what pods are like, `call` what is asked of it, [`network`] what becomes of requests; `plugin` is the shell of the plugin's
//! core, `agent` and `agents` the VMs, [`nodes`], `kubelet` and `machines` the nodes, `scheduler` who places pods; `vm_objects` and `neonvm` are
//! the VMs that have objects of their own, `migrations` the objects by which they move, `node_agent` and `node_agents` the agents that find those;
//! [`laws`] what is checked, `takeover` what rebuilt books come to, `ending` what a kind world comes to; [`steps`] what happens.

mod agent;
mod agents;
mod api;
mod call;
mod changes;
mod ending;
mod events;
mod kubelet;
pub mod laws;
mod machines;
pub mod met;
mod migrations;
mod neonvm;
pub mod network;
mod node_agent;
mod node_agents;
pub mod nodes;
mod plugin;
mod pods;
mod scheduler;
pub mod steps;
mod takeover;
mod vm_objects;

pub use laws::{Broken, Law};
pub use met::Met;
pub use network::Network;
pub use nodes::{Sharing, Spare};
pub use steps::Step;

use crate::chance::Chance;
use agent::Agent;
use api::Api;
use call::{Answer, Call, Kind};
use kubelet::Kubelet;
use laws::{Judge, Life};
use neonvm::NeonVm;
use node_agents::{NodeProcess, NodeReaching, NodeRequest};
use plugin::{Asks, Clock, Held, Plugin};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use windlass_plugin_core::Pods;
use windlass_plugin_core::pods::Pools;
use windlass_protocol::node::Node;
use windlass_protocol::{Moment, Resources, VmName};

/// The plugin's own namespace.
const OWN: &str = "own";
/// A plugin takes a turn this often, in milliseconds of true time.
const TURN: u64 = 200;

/// What a cluster is like at its beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// All chance follows from it.
    pub seed: u64,
    /// The size of each node, in compute units, and how it shares its room.
    pub nodes: Vec<(u64, Sharing)>,
    /// How fast the clock of each plugin goes, in thousandths.
    pub rates: Vec<u64>,
    /// Some VMs have objects of their own, and each node has an agent that finds them.
    pub has_objects: bool,
    /// VMs that have objects leave nodes that are cordoned.
    pub empties_cordoned: bool,
}

/// A cluster.
#[derive(Debug)]
pub struct ClusterWorld {
    now: Moment,
    chance: Chance,
    network: Network,
    api: Api,
    pools: Pools,
    plugins: Vec<Process>,
    agents: BTreeMap<String, Agent>,
    kubelets: BTreeMap<String, Kubelet>,
    /// The VMs that have objects of their own, by the uids of these, and the agents of the nodes.
    neonvms: BTreeMap<String, NeonVm>,
    node_agents: Vec<NodeProcess>,
    /// What the object of a write was before it.
    meant: Option<Meant>,
    /// Nodes whose kubelet will look.
    looks: BTreeSet<String>,
    queue: BTreeMap<(u64, u64), Due>,
    arranged: u64,
    /// The revision up to which watches and kubelets were told to look.
    noticed: u64,
    down_until: Moment,
    /// The API server went back: until then a plugin is to remember what that lost.
    remembers_until: Moment,
    /// The books that answered last, once their process is gone, and its clock.
    lost: Option<(Pods<Held>, Clock)>,
    /// The plugin that answered last.
    last: Option<usize>,
    judge: Judge,
    met: Met,
    events: u64,
    story: Option<Vec<String>>,
}

/// The uid, the generation and the pod of an object.
type Meant = (String, i64, Option<String>);

/// A plugin and its process.
#[derive(Debug)]
struct Process {
    plugin: Plugin,
    clock: Clock,
    /// How often it has started.
    life: u64,
    state: State,
    /// What has come while it was stopped.
    inbox: Vec<Reaching>,
    cut_off_until: Moment,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Runs,
    Stopped,
    Dead,
}

/// Something that is going to happen.
#[derive(Clone, Debug)]
enum Due {
    Starts {
        nth: usize,
    },
    GoesOn {
        nth: usize,
        life: u64,
    },
    /// Something reaches a plugin, if it still lives this life.
    Reaches {
        nth: usize,
        life: u64,
        what: Reaching,
    },
    /// A request arrives at the API server.
    Arrives(Box<Request>),
    AgentWakes {
        uid: String,
        alarm: u64,
    },
    Permitted {
        asks: Asks,
        by: Life,
        permit: Option<Resources>,
    },
    NodeComes(Box<Node>),
    /// Something reaches the agent of a node, if it still lives this life.
    NodeReaches {
        nth: usize,
        life: u64,
        what: NodeReaching,
    },
    NodeArrives(Box<NodeRequest>),
    NodeStarts {
        nth: usize,
    },
    NodeGoesOn {
        nth: usize,
        life: u64,
    },
    /// NeonVM's controller looks at the object with this uid.
    Reconciles(String),
    Looks(String),
    Uncordons(String),
    Reports(String),
    Schedules {
        pod: VmName,
        uid: String,
    },
    Ends {
        pod: VmName,
        uid: String,
    },
    Removes {
        pod: VmName,
        uid: String,
    },
}

/// What reaches a plugin.
#[derive(Clone, Debug)]
enum Reaching {
    Turn,
    Answer { id: u64, answer: Answer },
    Watch { kind: Kind, upto: u64 },
    Asks(Asks),
    Binds { pod: VmName, uid: String, node: String },
}

/// A request of a plugin on its way to the API server.
#[derive(Clone, Debug)]
struct Request {
    nth: usize,
    life: u64,
    id: u64,
    call: Call,
    /// Milliseconds that the answer takes; `None`: it is lost.
    back: Option<u64>,
    half_done: bool,
    sent: Moment,
}

// === impl ClusterWorld ===

impl ClusterWorld {
    /// A cluster without pods, whose plugins start.
    pub fn new(setup: &Setup) -> Self {
        let mut world = Self {
            now: Moment::from_millis(1),
            chance: Chance::new(setup.seed),
            network: Network::default(),
            api: Api::default(),
            pools: nodes::pools(setup),
            plugins: Vec::new(),
            agents: BTreeMap::new(),
            kubelets: BTreeMap::new(),
            neonvms: BTreeMap::new(),
            node_agents: Vec::new(),
            meant: None,
            looks: BTreeSet::new(),
            queue: BTreeMap::new(),
            arranged: 0,
            noticed: 0,
            down_until: Moment::default(),
            remembers_until: Moment::default(),
            lost: None,
            last: None,
            judge: Judge::default(),
            met: Met::default(),
            events: 0,
            story: None,
        };
        world.api.make_lease();
        for (nth, (units, sharing)) in setup.nodes.iter().enumerate() {
            world.api.put_node(nodes::node(nth, *units, *sharing));
        }
        for (nth, rate) in setup.rates.iter().enumerate() {
            let clock = Clock { offset: 1_000_000 * (nth as u64 + 1), rate: *rate };
            let plugin = Plugin::start(format!("p{nth}.1"), world.pools.clone());
            let state = State::Runs;
            let (inbox, cut_off_until) = (Vec::new(), Moment::default());
            world.plugins.push(Process { plugin, clock, life: 1, state, inbox, cut_off_until });
            let first = world.chance.below(TURN);
            world.arrange(first, Due::Reaches { nth, life: 1, what: Reaching::Turn });
        }
        if setup.has_objects {
            world.start_node_agents(setup.nodes.len());
        }
        world
    }

    /// Has what happens told from here on.
    pub fn tell_story(&mut self) {
        self.story = Some(Vec::new());
    }

    /// A line per event, if it was to be told.
    pub fn story(&self) -> &[String] {
        self.story.as_deref().unwrap_or_default()
    }

    /// This moment, in true time.
    pub const fn now(&self) -> Moment {
        self.now
    }

    /// How much has happened.
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// What it met.
    pub const fn met(&self) -> &Met {
        &self.met
    }

    /// The laws that were broken, the first one first.
    pub fn broken(&self) -> &[Broken] {
        &self.judge.broken
    }

    /// Time goes by, unless a law is broken.
    pub fn run(&mut self, time: Duration) {
        let until = self.now.after(time);
        while self.judge.broken.is_empty()
            && let Some(entry) = self.queue.first_entry()
            && entry.key().0 <= until.millis()
        {
            let ((at, _), due) = entry.remove_entry();
            self.now = Moment::from_millis(at);
            self.events += 1;
            self.happen(due);
            self.notice();
            self.check();
        }
        self.now = until;
    }

    fn arrange(&mut self, after: u64, due: Due) {
        self.arranged += 1;
        self.queue.insert((self.now.millis() + after, self.arranged), due);
    }

    fn tell(&mut self, line: impl FnOnce() -> String) {
        if let Some(story) = &mut self.story {
            story.push(format!("{:8} {}", self.now.millis(), line()));
        }
    }

    /// What changed at the API server reaches watches and kubelets.
    fn notice(&mut self) {
        if self.api.revision == self.noticed {
            return;
        }
        let (before, upto) = (self.noticed, self.api.revision);
        self.noticed = upto;
        for kind in Kind::ALL {
            if self.api.has_news(kind, before) {
                for nth in 0..self.plugins.len() {
                    self.watch_later(nth, kind, upto);
                }
                if kind == Kind::Pods || kind == Kind::Objects {
                    for nth in 0..self.node_agents.len() {
                        self.node_watch_later(nth, kind, upto);
                    }
                }
            }
        }
        for node in self.api.take_touched() {
            self.look_soon(node);
        }
    }

    fn look_soon(&mut self, node: String) {
        if self.looks.insert(node.clone()) {
            let wait = 20 + self.chance.below(800);
            self.arrange(wait, Due::Looks(node));
        }
    }

    /// A watch tells, after its lag, what came up to a revision.
    fn watch_later(&mut self, nth: usize, kind: Kind, upto: u64) {
        let (life, lag) = (self.plugins[nth].life, self.network.lag(&mut self.chance));
        self.arrange(lag, Due::Reaches { nth, life, what: Reaching::Watch { kind, upto } });
    }

    fn check(&mut self) {
        self.size_vms();
        let serve: Vec<(usize, u32)> = self.serving().collect();
        let lives = serve.iter().map(|(nth, epoch)| ((*nth, self.plugins[*nth].life), *epoch));
        self.judge.leaders(self.now, &lives.collect::<Vec<_>>());
        if let [(nth, _)] = serve[..]
            && (self.last != Some(nth) || self.lost.is_some())
        {
            self.compare_with_the_last(nth);
            (self.last, self.lost) = (Some(nth), None);
        }
        if self.judge.is_outside {
            return;
        }
        if let [(nth, _)] = serve[..] {
            self.judge.covered(self.now, &self.plugins[nth].plugin, &self.agents);
        }
        self.settle_nodes();
        self.judge.nodes(self.now, (&self.api, &self.kubelets), &self.agents);
        self.judge.allocated(self.now, (&self.api, &self.kubelets), &self.agents);
        if let (Some(broken), [(nth, _)]) = (self.judge.broken.first(), &serve[..]) {
            let status = self.plugins[*nth].plugin.books.status();
            let line = format!("{broken}, by the books of plugin {nth}: {status:?}");
            self.tell(|| line);
        }
        if !self.judge.has_lost_records {
            self.judge.recorded(self.now, &self.api, &self.agents);
        }
    }

    /// The plugins that would answer now, with their epochs.
    fn serving(&self) -> impl Iterator<Item = (usize, u32)> {
        self.plugins.iter().enumerate().filter_map(|(nth, process)| {
            let clock = process.clock.at(self.now);
            let runs = process.state == State::Runs;
            Some((nth, process.plugin.serves(clock).ok().filter(|_| runs)?))
        })
    }
}
