//! An agent, as far as an informant can tell: it registers, is called, answers as it is told to.

use super::bench::{Bench, until};
use crate::case::{Fault, Verdict, ensure};
use crate::http::{self, Answer, Lost, Reply, Request, Server};
use crate::ids;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// An agent is told to run within this time after its registration: an agent of the case before
/// that was forgotten may have a lease that must run out.
const SOON: Duration = Duration::from_secs(20);

/// An answer that was sent is read within this, also on a busy machine.
const READ: Duration = Duration::from_millis(100);

/// How the agent treats a call.
#[derive(Clone, Debug)]
pub(super) enum Manner {
    /// As it should.
    Works,
    /// The answer comes so much later.
    Late(Duration),
    /// No answer comes.
    Silent,
    /// The connection is closed.
    HangsUp,
    /// Refuses with this status.
    Refuses(u16),
    /// Answers 200 with this.
    Says(String),
    /// Answers as another.
    As(String),
    /// With this number, and not the next.
    Numbered(u64),
    /// Closes so many connections, and works then.
    HangsUpFirst(usize),
}

/// A call that came.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) request: Request,
    /// When it was there.
    pub(super) at: Instant,
    /// When its answer was sent.
    pub(super) answered: Option<Instant>,
}

/// An agent. It takes its leave when dropped.
pub(super) struct Agent<'a> {
    bench: &'a Bench,
    pub(super) id: String,
    pub(super) addr: SocketAddr,
    state: Arc<Mutex<State>>,
    server: Option<Server>,
}

#[derive(Default)]
struct State {
    manners: BTreeMap<&'static str, Manner>,
    calls: Vec<Call>,
    /// The last number that was used.
    number: u64,
}

// === impl Agent ===

impl<'a> Agent<'a> {
    /// One that listens, and has not registered.
    pub(super) fn new(bench: &'a Bench) -> Result<Self, Fault> {
        let id = ids::fresh();
        let state: Arc<Mutex<State>> = Arc::default();
        let (shared, name) = (Arc::clone(&state), id.clone());
        let server = Server::start(bench.advertise, move |request| called(&shared, &name, request))
            .map_err(|error| Fault(format!("cannot listen for call-backs: {error}")))?;
        let addr = SocketAddr::new(bench.advertise, server.port());
        Ok(Self { bench, id, addr, state, server: Some(server) })
    }

    /// One that registered and was told to run.
    pub(super) fn current(bench: &'a Bench) -> Result<Self, Fault> {
        let agent = Self::new(bench)?;
        agent.take_over()?;
        Ok(agent)
    }

    /// Treats calls to this path so from now on.
    pub(super) fn treats(&self, path: &'static str, manner: Manner) {
        self.state().manners.insert(path, manner);
    }

    /// Nothing listens at its address any more.
    pub(super) fn go_deaf(&mut self) {
        self.server = None;
    }

    /// The body of `/register` and `/unregister`, up to the version under test.
    pub(super) fn desc(&self) -> String {
        let number = self.bench.version.number;
        self.desc_with(number, number)
    }

    /// The same with another range of versions.
    pub(super) fn desc_with(&self, min: u32, max: u32) -> String {
        desc(&self.id, &self.addr.to_string(), min, max)
    }

    pub(super) fn register(&self) -> Result<Answer, Lost> {
        self.bench.ask("POST", "/register", &self.desc())
    }

    /// Registers, which must go well.
    pub(super) fn join(&self) -> Verdict {
        self.register()?.json("POST /register").map(|_| ())
    }

    /// Registers, and waits until it was told to run.
    pub(super) fn take_over(&self) -> Verdict {
        self.join()?;
        self.until_resumed(1, SOON).map(|_| ())
    }

    /// Waits until `/resume` was answered so many times; how long it took.
    pub(super) fn until_resumed(&self, times: usize, limit: Duration) -> Result<Duration, Fault> {
        let what = format!("POST /resume is sent to the agent ({times} times in all)");
        let took = until(&what, limit, || self.answered("/resume") >= times)?;
        // The agent counts once the informant has read this answer.
        std::thread::sleep(READ);
        Ok(took)
    }

    /// `/downscale` or `/upscale`, with the next number.
    pub(super) fn says(&self, path: &str, amounts: (&str, &str)) -> Result<Answer, Lost> {
        let number = self.next();
        self.says_numbered(path, amounts, number)
    }

    /// The same with this number, where the version has numbers.
    pub(super) fn says_numbered(
        &self,
        path: &str,
        amounts: (&str, &str),
        number: u64,
    ) -> Result<Answer, Lost> {
        self.bench.ask("PUT", path, &self.bench.amounts(amounts, &self.id, number))
    }

    /// The next number that it has not used.
    pub(super) fn next(&self) -> u64 {
        let mut state = self.state();
        state.number += 1;
        state.number
    }

    pub(super) fn health(&self) -> Result<Answer, Lost> {
        self.bench.ask("PUT", "/health-check", &format!(r#"{{"agentID":"{}"}}"#, self.id))
    }

    pub(super) fn leave(&self) -> Result<Answer, Lost> {
        self.bench.ask("DELETE", "/unregister", &self.desc())
    }

    /// The calls to this path, in their order.
    pub(super) fn calls(&self, path: &str) -> Vec<Call> {
        self.state().calls.iter().filter(|call| call.request.path == path).cloned().collect()
    }

    /// How many calls to this path were answered.
    pub(super) fn answered(&self, path: &str) -> usize {
        self.calls(path).iter().filter(|call| call.answered.is_some()).count()
    }

    /// The first call to this path, which must have come.
    pub(super) fn first(&self, path: &str) -> Result<Call, Fault> {
        let first = self.calls(path).into_iter().next();
        first.ok_or_else(|| Fault(format!("the agent was never called at {path}")))
    }

    /// Whether every call to this path had this method and body.
    pub(super) fn each_call_is(&self, path: &str, method: &str, body: &str) -> Verdict {
        let expected: Option<serde_json::Value> = serde_json::from_str(body).ok();
        for Call { request, .. } in self.calls(path) {
            let found = serde_json::from_slice(&request.body).ok();
            ensure(request.method == method && found == expected, || {
                let (found, text) = (&request.method, request.text());
                format!("called with {found} {path} {text}, expected {method} {path} {body}")
            })?;
        }
        Ok(())
    }

    /// What `/resume` and `/suspend` say to it.
    pub(super) fn expected(&self) -> String {
        format!(r#"{{"expectedID":"{}"}}"#, self.id)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl Drop for Agent<'_> {
    fn drop(&mut self) {
        // One that never registered, or is not known any more, is refused.
        let _ = self.leave();
    }
}

/// The body of `/register`.
pub(super) fn desc(id: &str, addr: &str, min: u32, max: u32) -> String {
    format!(
        r#"{{"agentID":"{id}","agentServeAddr":"{addr}","minProtoVersion":{min},"maxProtoVersion":{max}}}"#
    )
}

fn called(state: &Mutex<State>, id: &str, request: Request) -> Reply {
    let (manner, index) = {
        let mut state = lock(state);
        let found = state.manners.iter().find(|(path, _)| **path == request.path);
        let manner = found.map_or(Manner::Works, |(_, manner)| manner.clone());
        state.calls.push(Call { request, at: Instant::now(), answered: None });
        (manner, state.calls.len() - 1)
    };
    if let Manner::Late(by) = manner {
        std::thread::sleep(by);
    }
    let mut state = lock(state);
    let reply = state.reply(&manner, index, id);
    if let Reply::Bytes(_) = reply {
        state.calls[index].answered = Some(Instant::now());
    }
    reply
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

// === impl State ===

impl State {
    fn reply(&mut self, manner: &Manner, index: usize, id: &str) -> Reply {
        match manner {
            Manner::Works | Manner::Late(_) => self.identified(id),
            Manner::As(other) => self.identified(other),
            Manner::Numbered(number) => {
                Reply::Bytes(http::answer(200, identified(id, *number).as_bytes()))
            }
            Manner::Silent => Reply::Silence,
            Manner::HangsUp => Reply::HangUp,
            Manner::HangsUpFirst(times) => {
                let path = &self.calls[index].request.path;
                let calls = self.calls.iter().filter(|call| call.request.path == *path);
                if calls.count() <= *times { Reply::HangUp } else { self.identified(id) }
            }
            Manner::Refuses(status) => Reply::Bytes(http::answer(*status, b"no")),
            Manner::Says(text) => Reply::Bytes(http::answer(200, text.as_bytes())),
        }
    }

    fn identified(&mut self, id: &str) -> Reply {
        self.number += 1;
        Reply::Bytes(http::answer(200, identified(id, self.number).as_bytes()))
    }
}

fn identified(id: &str, number: u64) -> String {
    format!(r#"{{"data":{{"agentID":"{id}"}},"sequenceNumber":{number}}}"#)
}
