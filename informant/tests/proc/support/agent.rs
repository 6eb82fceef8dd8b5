//! An agent to call back: answers as the reference's does, on a thread of its own.

use super::client::Answer;
use super::program::Program;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use windlass_protocol::AgentId;

/// Goes deaf when dropped.
pub(crate) struct Agent {
    pub(crate) id: AgentId,
    pub(crate) addr: SocketAddr,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    ended: AtomicBool,
    said: AtomicU64,
    calls: Mutex<Vec<String>>,
}

impl Agent {
    /// One that answers as `id`.
    pub(crate) fn start(id: u128) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let state = Arc::new(State::default());
        let (shared, id) = (Arc::clone(&state), AgentId::from_u128(id));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if shared.ended.load(Ordering::SeqCst) {
                    return;
                }
                answer(&shared, id, stream.unwrap());
            }
        });
        Self { id, addr, state }
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
        super::program::wait_for("resumed", || self.called("/resume") > 0);
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

impl Drop for Agent {
    fn drop(&mut self) {
        self.state.ended.store(true, Ordering::SeqCst);
        // Wakes the thread, which then lets go of its port.
        let _ = TcpStream::connect(self.addr);
    }
}

fn answer(state: &State, id: AgentId, mut stream: TcpStream) {
    let mut text = String::new();
    let mut buffer = [0; 1024];
    // Bodies are one object without braces in strings.
    while !text.contains('}') {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(length) => text.push_str(std::str::from_utf8(&buffer[..length]).unwrap()),
        }
    }
    let path = text.split(' ').nth(1).unwrap().to_owned();
    state.calls.lock().unwrap().push(path);
    let number = state.said.fetch_add(1, Ordering::SeqCst) + 1;
    let body = format!(r#"{{"data":{{"agentID":"{id}"}},"sequenceNumber":{number}}}"#);
    let length = body.len();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
    let _ = stream.write_all((head + &body).as_bytes());
}
