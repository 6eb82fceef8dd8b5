//! The endpoint behind a listener: senders that are slow or broken disturb nobody else.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use windlass_kit::clock::Clock;
use windlass_kit::server::{Counts, Limits, Refusal, serve};
use windlass_plugin::{Endpoint, Shared};
use windlass_plugin_core::{Books, VmRecord};
use windlass_protocol::plugin::{PermitRequest, PermitResponse};
use windlass_protocol::{
    Bytes, ComputeUnit, MilliCpu, Moment, PluginVersion, Resources, VmInfo, VmName,
};

#[tokio::test]
async fn a_slow_sender_keeps_nobody_waiting() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let limits =
        Limits { request_time: Duration::from_millis(500), ..Limits::small(Counts::default()) };
    let server = serve(listener, Endpoint(node()), limits, stop.clone());
    let client = async {
        let mut slow = Vec::new();
        for begun in
            ["POST / HT", "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 50\r\n\r\n{\"pod\":"]
        {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(begun.as_bytes()).await.unwrap();
            slow.push(stream);
        }
        let answer = ask(address).await;
        assert_eq!(answer.permit, cu(2), "while the others still send");

        // The one with a head is told; neither is kept.
        let mut last = String::new();
        slow.pop().unwrap().read_to_string(&mut last).await.unwrap();
        assert!(last.starts_with("HTTP/1.1 4"), "{last}");
        assert_eq!(ask(address).await.permit, cu(2));
        stop.cancel();
    };
    let (served, ()) = tokio::join!(server, client);
    served.unwrap();
}

#[tokio::test]
async fn a_body_that_breaks_off_is_refused_and_counted() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, counts) = (CancellationToken::new(), Counts::default());
    let server = serve(listener, Endpoint(node()), Limits::small(counts.clone()), stop.clone());
    let client = async {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let begun = "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 50\r\n\r\n{\"pod\":";
        stream.write_all(begun.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut last = String::new();
        stream.read_to_string(&mut last).await.unwrap();
        assert!(last.starts_with("HTTP/1.1 400 "), "{last}");
        assert!(last.ends_with("the request's body broke off\n"), "{last}");
        assert_eq!(counts.of(Refusal::BodyBroken), 1);
        assert_eq!(ask(address).await.permit, cu(2));
        stop.cancel();
    };
    let (served, ()) = tokio::join!(server, client);
    served.unwrap();
}

async fn ask(address: SocketAddr) -> PermitResponse {
    let slot = VmInfo::DEFAULT_MEMORY_SLOT;
    let request = PermitRequest {
        version: PluginVersion::V5_0,
        vm: VmName::on_host("a"),
        unit: Some(cu(1)),
        resources: cu(2),
        last_permit: None,
        metrics: None,
        told: None,
    };
    let body = request.encode(slot).unwrap();
    let head = format!(
        "POST /x HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&body).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
    PermitResponse::decode(PluginVersion::V5_0, body.as_bytes(), slot).unwrap()
}

fn node() -> Shared {
    let mut books = Books::new(cu(4));
    books.enter(VmName::on_host("a"), VmRecord::default(), cu(1));
    let unit = ComputeUnit::try_from(cu(1)).unwrap();
    Shared::new(books, unit, Clock::starting_at(Moment::from_millis(1_000_000)))
}

fn cu(count: u64) -> Resources {
    Resources { cpu: MilliCpu::from_cores(count), mem: Bytes::from_gib(count) }
}
