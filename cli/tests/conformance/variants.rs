//! Agents that are broken on purpose: the kit must notice each by the case that names it.
//!
//! A variant is our agent with a change between it and one of its peers: what it says, what it is
//! told, and what it answers when it is called.

#[path = "variants/changes.rs"]
mod changes;

use crate::agent::Library;
use changes::VARIANTS;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use windlass_conformance::Listed;
use windlass_conformance::agent::{
    Options, Ready, Start, Stop, informant_catalogue, plugin_catalogue, run,
};
use windlass_conformance::http::{self, Answer, Reply, Request};
use windlass_conformance::tamper::{Forward, Tamper, reply};
use windlass_conformance::versions::{INFORMANT, PLUGIN, Version, select};

/// What a broken agent does otherwise.
pub(crate) type Act = fn(Request, &Way<'_>) -> Reply;

/// Where the change is.
#[derive(Clone, Copy)]
pub(crate) enum Change {
    /// Nowhere.
    None,
    /// In what the agent says to its informant.
    Says(Act),
    /// In what it asks of the plugin.
    Asks(Act),
    /// In what it answers its informant.
    Answers(Act),
}

/// What is broken, the version, the case that must fail, and how.
pub(crate) struct Variant {
    pub(crate) what: &'static str,
    pub(crate) version: &'static str,
    pub(crate) case: &'static str,
    pub(crate) change: Change,
}

/// The way on to the peer for which a request was meant.
pub(crate) struct Way<'a> {
    forward: Forward<'a>,
    to: SocketAddr,
    pub(crate) informant: SocketAddr,
}

struct Broken(Change);

/// An agent, and what stands between. The agent ends first.
struct Between {
    agent: Box<dyn Stop>,
    _tampers: Vec<Tamper>,
}

#[test]
fn each_broken_agent_is_caught_by_the_case_that_names_it() {
    let missed = tried(|variant| (variant.change, false));
    assert!(missed.is_empty(), "nobody noticed: {missed:?}");
}

/// Only a change of its driver could make an agent fail this, and that speaks to no tamper.
const NO_VARIANT: [&str; 1] = ["a-low-permit-takes-nothing"];

#[test]
fn each_case_has_an_agent_that_fails_it() {
    for Listed { name, .. } in [informant_catalogue(), plugin_catalogue()].concat() {
        let broken = VARIANTS.iter().any(|variant| variant.case == name);
        assert_ne!(broken, NO_VARIANT.contains(&name), "{name}");
    }
}

/// What stands between is not what is noticed.
#[test]
fn an_agent_that_is_not_broken_passes_the_same_cases() {
    let failed = tried(|_| (Change::None, true));
    assert!(failed.is_empty(), "these failed: {failed:?}");
}

/// The variants for which the case did not come out so.
fn tried(of: impl Fn(&Variant) -> (Change, bool) + Sync) -> Vec<&'static str> {
    let next = AtomicUsize::new(0);
    let wrong = Mutex::new(Vec::new());
    let work = || {
        while let Some(variant) = VARIANTS.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (change, holds) = of(variant);
            let report = run(&options(variant, change), &mut |_| {});
            eprintln!("{}:\n{report}", variant.what);
            let right = if holds { report.holds() } else { report.failing() == [variant.case] };
            if !right {
                wrong.lock().unwrap().push(variant.what);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(work);
        }
    });
    wrong.into_inner().unwrap()
}

fn options(variant: &Variant, change: Change) -> Options {
    let asks = matches!(variant.change, Change::Asks(_));
    let chosen = |table: &[Version]| select(table, variant.version).unwrap();
    Options {
        informant: if asks { Vec::new() } else { chosen(&INFORMANT) },
        plugin: if asks { chosen(&PLUGIN) } else { Vec::new() },
        only: vec![variant.case.to_owned()],
        at_once: 1,
        ..crate::options(Arc::new(Broken(change)))
    }
}

// === impl Way ===

impl Way<'_> {
    pub(crate) fn pass(&self, request: &Request) -> Option<Answer> {
        (self.forward)(request)
    }

    pub(crate) fn on(&self, request: &Request) -> Reply {
        reply(self.pass(request))
    }

    /// For so long at most; `None` also where a peer says nothing.
    pub(crate) fn pass_within(&self, request: &Request, limit: Duration) -> Option<Answer> {
        http::ask(self.to, &request.method, &request.path, &request.body, limit).ok()
    }

    /// What an agent answers that is asked for its id: the answer to all its calls.
    pub(crate) fn id(&self, request: &Request) -> Reply {
        let (method, path, body) = ("GET".to_owned(), "/id".to_owned(), b"{}".to_vec());
        self.on(&Request { method, path, body, ..request.clone() })
    }
}

// === impl Start, Stop ===

impl Start for Broken {
    fn start(&self, ready: &Ready) -> Result<Box<dyn Stop>, String> {
        let (mut ready, mut tampers) = (ready.clone(), Vec::new());
        let informant = ready.informant;
        match self.0 {
            Change::None => {}
            Change::Asks(act) => {
                let plugin = between(ready.plugin, informant, act);
                ready.plugin = plugin.addr();
                tampers.push(plugin);
            }
            Change::Says(act) => tampers.push(between(informant, informant, act)),
            Change::Answers(act) => tampers.push(announced(informant, act)),
        }
        if !matches!(self.0, Change::Asks(_) | Change::None) {
            let file = ready.folder.join("vms.d/a.toml");
            let text = std::fs::read_to_string(&file).unwrap();
            let other = tampers[0].addr().to_string();
            std::fs::write(&file, text.replace(&informant.to_string(), &other)).unwrap();
        }
        let agent = Library.start(&ready)?;
        Ok(Box::new(Between { agent, _tampers: tampers }))
    }
}

/// Before `to`, with this change.
fn between(to: SocketAddr, informant: SocketAddr, act: Act) -> Tamper {
    Tamper::before(to, move |request, forward| act(request, &Way { forward, to, informant }))
        .unwrap()
}

/// Before the informant, which is told of another address: one before the agent, with this change.
fn announced(informant: SocketAddr, act: Act) -> Tamper {
    let known: Mutex<BTreeMap<SocketAddr, Tamper>> = Mutex::default();
    Tamper::before(informant, move |mut request, forward| {
        if let Some(real) = address(&request.text()) {
            let mut known = known.lock().unwrap();
            let tamper = known.entry(real).or_insert_with(|| between(real, informant, act));
            let (from, to) = (real.to_string(), tamper.addr().to_string());
            request.body = request.text().replace(&from, &to).into_bytes();
        }
        reply(forward(&request))
    })
    .unwrap()
}

/// The address that a body announces.
pub(crate) fn address(text: &str) -> Option<SocketAddr> {
    let (_, rest) = text.split_once("\"agentServeAddr\":\"")?;
    rest.split('"').next()?.parse().ok()
}

impl Stop for Between {
    fn stop(&mut self) {
        self.agent.stop();
    }

    fn ended(&mut self) -> Option<String> {
        self.agent.ended()
    }
}
