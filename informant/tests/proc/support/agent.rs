//! An agent to call back: answers as the reference's does, on a thread of its own.

use super::program::Program;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use windlass_protocol::AgentId;
use windlass_testkit::http::{self, Answer, Request, Server};
use windlass_testkit::wait;

/// Goes deaf when dropped.
pub(crate) struct Agent {
    pub(crate) id: AgentId,
    pub(crate) addr: SocketAddr,
    state: Arc<State>,
    _server: Server,
}

#[derive(Default)]
struct State {
    said: AtomicU64,
    calls: Mutex<Vec<String>>,
}

impl Agent {
    /// One that answers as `id`.
    pub(crate) fn start(id: u128) -> Self {
        let (state, id) = (Arc::<State>::default(), AgentId::from_u128(id));
        let shared = Arc::clone(&state);
        let server = Server::start(move |request| answer(&shared, id, request));
        Self { id, addr: server.address(), state, _server: server }
    }

    /// How often this was called.
    pub(crate) fn called(&self, path: &str) -> usize {
        self.state.calls.lock().unwrap().iter().filter(|call| *call == path).count()
    }

    pub(crate) fn register(&self, program: &Program) -> Answer {
        program.ask("POST", "/register", &self.desc())
    }

    /// Registers, and waits until it is told to run.
    pub(crate) fn take_over(&self, program: &Program) {
        let answer = self.register(program);
        assert_eq!(answer.status, 200, "{}", answer.body);
        wait::until("resumed", || self.called("/resume") > 0);
    }

    pub(crate) fn desc(&self) -> String {
        let (id, addr) = (self.id, self.addr);
        format!(
            r#"{{"agentID":"{id}","agentServeAddr":"{addr}","minProtoVersion":1,"maxProtoVersion":4}}"#
        )
    }

    /// `/downscale` or `/upscale`, with the next number.
    pub(crate) fn resize(&self, program: &Program, path: &str, cpu: &str, memory: &str) -> Answer {
        let number = self.state.said.fetch_add(1, Ordering::SeqCst) + 1;
        let id = self.id;
        let body = format!(
            r#"{{"data":{{"cpu":"{cpu}","memory":"{memory}","id":{{"agentID":"{id}"}}}},"sequenceNumber":{number}}}"#
        );
        program.ask("PUT", path, &body)
    }
}

fn answer(state: &State, id: AgentId, request: &Request) -> String {
    state.calls.lock().unwrap().push(request.path.clone());
    let number = state.said.fetch_add(1, Ordering::SeqCst) + 1;
    http::answer(200, &format!(r#"{{"data":{{"agentID":"{id}"}},"sequenceNumber":{number}}}"#))
}
