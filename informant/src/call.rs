//! One call to an agent: connect, ask, read the answer, hang up; all within one deadline.

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper::{Request, header};
use hyper_util::rt::TokioIo;
use std::net::SocketAddr;
use tokio::net::TcpStream;
use tokio::time::timeout;
use windlass_informant_core::{Ask, Event, Failure, wire};
use windlass_protocol::AgentId;
use windlass_protocol::timing::CALL_LIMIT;

/// An answer is an id and a number. The reference's are below 100 bytes.
const ANSWER_LIMIT: usize = 4096;

/// Calls an agent; what it answered, or how it failed.
pub async fn call(agent: AgentId, at: SocketAddr, ask: Ask) -> Event {
    match timeout(CALL_LIMIT, exchange(agent, at, ask)).await {
        Ok(Ok(event)) => event,
        Ok(Err(failure)) => Event::Failed(agent, failure),
        Err(_) => Event::Failed(agent, Failure::NoAnswer),
    }
}

async fn exchange(agent: AgentId, at: SocketAddr, ask: Ask) -> Result<Event, Failure> {
    let (endpoint, body) = wire::to_agent(agent, ask);
    let stream = TcpStream::connect(at).await.map_err(lost)?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(lost)?;
    let request = Request::builder()
        .method(endpoint.method)
        .uri(endpoint.path)
        .header(header::HOST, at.to_string())
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::CONNECTION, "close")
        .body(Full::new(Bytes::from(body)))
        .map_err(lost)?;
    let answer = async {
        let response = sender.send_request(request).await.map_err(lost)?;
        let status = response.status().as_u16();
        let body = if status == 200 {
            let body = Limited::new(response.into_body(), ANSWER_LIMIT).collect().await;
            body.map_err(lost)?.to_bytes()
        } else {
            // The body of a refusal is not waited for.
            Bytes::new()
        };
        Ok(wire::from_agent(agent, status, &body))
    };
    // The connection makes progress only while it is polled, and ends with the answer.
    tokio::pin!(connection);
    tokio::pin!(answer);
    tokio::select! {
        answer = &mut answer => answer,
        _ = &mut connection => answer.await,
    }
}

/// Whatever went wrong on the way, the agent may or may not have acted.
fn lost<E>(_: E) -> Failure {
    Failure::NoAnswer
}
