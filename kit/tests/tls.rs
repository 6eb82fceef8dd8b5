//! A listener with TLS over real loopback sockets, against peers with certificates that are wrong, and without any.

#![expect(clippy::unwrap_used, reason = "tests")]

use axum::{Extension, Router, routing::get};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::spawn_blocking;
use windlass_kit::server::{
    Counts, Handshake, Limits, Peer, Refusal, Reloads, Tls, TlsFile, TlsFiles, TlsListener, TlsPem,
    TlsPlaces, serve,
};
use windlass_kit::tasks::Tasks;
use windlass_testkit::http::{self, Answer};
use windlass_testkit::log::Log;
use windlass_testkit::tls::{Ca, Client, Pair, Valid};
use windlass_testkit::{Folder, wait::until_async};

const REFUSED: &str = "WARN a TLS connection was refused";
const UNUSABLE: &str =
    "ERROR a changed certificate cannot be used; the last valid one stays in force";

#[tokio::test]
async fn a_service_learns_the_common_name_of_a_certificate() {
    let server = Server::start(Limits::small(Counts::default())).await;
    let scheduler = server.ca.signs("system:kube-scheduler", Valid::Now);
    assert_eq!(server.ask(Some(scheduler)).await.unwrap(), "system:kube-scheduler");
    assert_eq!(server.ask(None).await.unwrap(), "no certificate");
}

#[tokio::test]
async fn a_certificate_that_is_not_to_be_trusted_is_refused_by_its_reason() {
    let (server, log) = (Server::start(Limits::small(Counts::default())).await, Log::kept());
    let (other, namesake) = (Ca::new("other"), Ca::new("ca"));
    for (nth, (shown, why)) in [
        (other.signs("system:kube-scheduler", Valid::Now), Handshake::UnknownCa),
        (namesake.signs("system:kube-scheduler", Valid::Now), Handshake::UnknownCa),
        (server.ca.signs("system:kube-scheduler", Valid::NoMore), Handshake::Expired),
        (server.ca.signs("system:kube-scheduler", Valid::NotYet), Handshake::NotYetValid),
    ]
    .into_iter()
    .enumerate()
    {
        let before = server.refused(why);
        server.ask(Some(shown)).await.unwrap_err();
        let is_counted = async || server.refused(why) == before + 1;
        until_async(&format!("{nth} is counted"), is_counted).await;
    }
    assert_eq!(log.count(REFUSED), 3, "each reason once, of one address in a minute");
    assert_eq!(server.ask(None).await.unwrap(), "no certificate", "others go on");
}

#[tokio::test]
async fn a_peer_that_does_not_trust_the_listener_is_counted() {
    let server = Server::start(Limits::small(Counts::default())).await;
    let client = Client::new(&Ca::new("other"), None);
    let address = server.address;
    spawn_blocking(move || client.connect(address).map(drop)).await.unwrap().unwrap_err();
    let is_counted = async || server.refused(Handshake::Distrusted) == 1;
    until_async("it is counted", is_counted).await;
}

#[tokio::test]
async fn plain_text_is_refused_in_plain_text() {
    let (server, log) = (Server::start(Limits::small(Counts::default())).await, Log::kept());
    let address = server.address;
    for text in [http::request("POST", "/", "{}"), "\n".to_owned(), "\u{15}".repeat(9000)] {
        let said = spawn_blocking(move || http::raw(http::connect(address), text.as_bytes()));
        let said = said.await.unwrap();
        // What was not read may cut the answer off.
        let Answer { status, body, .. } = match http::parse(&said) {
            Some(answer) => answer,
            None => continue,
        };
        assert_eq!((status, body.as_str()), (400, "this port speaks TLS, and nothing else\n"));
    }
    let are_counted = async || server.refused(Handshake::PlainText) == 3;
    until_async("all are counted", are_counted).await;
    assert_eq!(log.count(REFUSED), 1);
}

#[tokio::test]
async fn a_slow_handshake_ends_and_holds_up_nobody() {
    let limits = Limits {
        connections: 3,
        head_time: Duration::from_millis(500),
        ..Limits::small(Counts::default())
    };
    let server = Server::start(limits).await;
    let silent = TcpStream::connect(server.address).await.unwrap();
    let mut half = TcpStream::connect(server.address).await.unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut half, &[0x16, 3, 1]).await.unwrap();
    assert_eq!(server.ask(None).await.unwrap(), "no certificate", "both are still waited for");
    let are_counted = async || server.refused(Handshake::Slow) == 2;
    until_async("both are given up", are_counted).await;
    drop((silent, half));
}

#[tokio::test]
async fn handshakes_make_room_for_the_next_connection() {
    let limits = Limits {
        connections: 2,
        head_time: Duration::from_secs(600),
        ..Limits::small(Counts::default())
    };
    let server = Server::start(limits).await;
    let mut silent = Vec::new();
    for _ in 0..10 {
        silent.push(TcpStream::connect(server.address).await.unwrap());
    }
    until_async("there is room", async || server.ask(None).await.is_ok()).await;
}

#[tokio::test]
async fn a_new_certificate_is_for_new_connections() {
    let server = Server::start(Limits::small(Counts::default())).await;
    let (client, address) = (Client::new(&server.ca, None), server.address);
    let trusting = client.clone();
    let mut open = spawn_blocking(move || trusting.connect(address)).await.unwrap().unwrap();
    let other = Ca::new("other");
    server.put(&other.signs("server", Valid::Now), other.pem());
    server.tls.look();
    server.ask(None).await.unwrap_err();
    let renewed = Client::new(&other, None);
    assert!(spawn_blocking(move || renewed.connect(address)).await.unwrap().is_ok());
    let answer = spawn_blocking(move || {
        open.write_all(http::request("GET", "/", "").as_bytes()).unwrap();
        http::rest(open)
    });
    assert!(answer.await.unwrap().starts_with("HTTP/1.1 200 "), "the open connection goes on");
}

#[tokio::test]
async fn a_new_authority_of_clients_counts_at_once() {
    let server = Server::start(Limits::small(Counts::default())).await;
    let other = Ca::new("other");
    let (old, new) = (server.ca.signs("old", Valid::Now), other.signs("new", Valid::Now));
    server.folder.put("ca.pem", format!("{}{}", server.ca.pem(), other.pem()));
    server.tls.look();
    assert_eq!(server.ask(Some(old.clone())).await.unwrap(), "old");
    assert_eq!(server.ask(Some(new.clone())).await.unwrap(), "new");
    server.folder.put("ca.pem", other.pem());
    server.tls.look();
    server.ask(Some(old)).await.unwrap_err();
    assert_eq!(server.ask(Some(new)).await.unwrap(), "new");
}

#[tokio::test]
async fn files_that_cannot_be_used_change_nothing_and_are_logged_once() {
    let (server, log) = (Server::start(Limits::small(Counts::default())).await, Log::kept());
    let new = server.ca.signs("server", Valid::Now);
    for (nth, (file, text)) in [
        ("key.pem", new.key.as_str()),
        ("key.pem", "no key"),
        ("certificate.pem", "-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n"),
        ("ca.pem", ""),
    ]
    .into_iter()
    .enumerate()
    {
        server.folder.put(file, text);
        for _ in 0..3 {
            server.tls.look();
        }
        assert_eq!(log.count(UNUSABLE), nth + 1, "{file}: {text}");
        assert_eq!(server.ask(None).await.unwrap(), "no certificate");
    }
    std::fs::remove_file(server.folder.at("key.pem")).unwrap();
    server.tls.look();
    server.tls.look();
    assert_eq!(log.count(UNUSABLE), 5);
    server.put(&new, server.ca.pem());
    server.tls.look();
    assert_eq!(log.count("INFO certificate read again: new connections use it"), 1);
    assert_eq!(server.ask(None).await.unwrap(), "no certificate");
}

#[test]
fn a_listener_without_its_files_does_not_start() {
    let (folder, ca) = (Folder::create().unwrap(), Ca::new("ca"));
    let (one, two) = (ca.signs("one", Valid::Now), ca.signs("two", Valid::Now));
    let files = TlsFiles {
        certificate: folder.put("one.pem", &one.certificate),
        key: folder.put("one.key", &one.key),
        client_ca: Some(folder.put("ca.pem", ca.pem())),
    };
    let refused = |files: &TlsFiles| Tls::load(files.clone(), Reloads::default()).unwrap_err();
    assert!(Tls::load(files.clone(), Reloads::default()).is_ok());
    let empty = folder.put("empty.pem", "");
    let other = folder.put("two.key", &two.key);
    for (bad, file, why) in [
        (
            TlsFiles { certificate: empty.clone(), ..files.clone() },
            TlsFile::Certificate,
            "must hold a",
        ),
        (TlsFiles { key: empty.clone(), ..files.clone() }, TlsFile::Key, "must hold a private key"),
        (TlsFiles { client_ca: Some(empty), ..files.clone() }, TlsFile::ClientCa, "must hold a"),
        (TlsFiles { key: folder.at("none"), ..files.clone() }, TlsFile::Key, "No such file"),
        (TlsFiles { key: other, ..files }, TlsFile::Key, "does not go with"),
    ] {
        let error = refused(&bad);
        assert_eq!(error.file, file, "{error}");
        assert!(error.to_string().contains(why), "{error}");
    }
}

#[tokio::test]
async fn a_listener_without_a_certificate_yet_closes_and_says_why() {
    let (log, ca, tls) = (Log::kept(), Ca::new("ca"), Tls::awaiting(Reloads::default()));
    let (limits, listener) =
        (Limits::small(Counts::default()), TcpListener::bind("127.0.0.1:0").await.unwrap());
    let (address, counts) = (listener.local_addr().unwrap(), limits.counts.clone());
    let (tasks, listener) = (Tasks::default(), TlsListener::new(listener, tls.clone()));
    let router = Router::new().route("/", get(name));
    tasks.vital("server", serve(listener, router, limits, tasks.stopping()));
    let client = Client::new(&ca, None);
    let ask = async || {
        let client = client.clone();
        spawn_blocking(move || client.ask(address, "GET", "/", "", "")).await.unwrap()
    };
    ask().await.unwrap_err();
    let is_counted = async || counts.of(Refusal::Tls(Handshake::NoCertificate)) == 1;
    until_async("it is counted", is_counted).await;
    let pair = ca.signs("server", Valid::Now);
    let pem = |key: &str| TlsPem {
        certificate: pair.certificate.clone().into(),
        key: key.into(),
        client_ca: None,
    };
    let place = |part: &str| format!("secret a/b: {part}");
    let places =
        TlsPlaces { certificate: place("crt"), key: place("key"), client_ca: String::new() };
    for _ in 0..2 {
        let error = tls.give(pem("no key"), &places).unwrap_err();
        assert_eq!(error.to_string(), "secret a/b: key: must hold a private key in PEM");
    }
    assert_eq!(log.count(UNUSABLE), 1, "what is given again is not told of again");
    assert!(!tls.is_in_force());
    tls.give(pem(&pair.key), &places).unwrap();
    assert_eq!(ask().await.unwrap().body, "no certificate");
}

/// A server that asks for certificates of its own authority.
struct Server {
    address: SocketAddr,
    counts: Counts,
    tls: Tls,
    ca: Ca,
    folder: Folder,
    _tasks: Tasks,
}

// === impl Server ===

impl Server {
    async fn start(limits: Limits) -> Self {
        let (folder, ca) = (Folder::create().unwrap(), Ca::new("ca"));
        let pair = ca.signs("server", Valid::Now);
        let files = TlsFiles {
            certificate: folder.put("certificate.pem", &pair.certificate),
            key: folder.put("key.pem", &pair.key),
            client_ca: Some(folder.put("ca.pem", ca.pem())),
        };
        let tls = Tls::load(files, Reloads::default()).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, counts) = (listener.local_addr().unwrap(), limits.counts.clone());
        let (tasks, listener) = (Tasks::default(), TlsListener::new(listener, tls.clone()));
        let router = Router::new().route("/", get(name));
        tasks.vital("server", serve(listener, router, limits, tasks.stopping()));
        Self { address, counts, tls, ca, folder, _tasks: tasks }
    }

    fn put(&self, pair: &Pair, ca: &str) {
        self.folder.put("certificate.pem", &pair.certificate);
        self.folder.put("key.pem", &pair.key);
        self.folder.put("ca.pem", ca);
    }

    fn refused(&self, why: Handshake) -> u64 {
        self.counts.of(Refusal::Tls(why))
    }

    /// What the service says to a client that shows this.
    async fn ask(&self, shows: Option<Pair>) -> io::Result<String> {
        let (client, address) = (Client::new(&self.ca, shows.as_ref()), self.address);
        let asked = spawn_blocking(move || client.ask(address, "GET", "/", "", ""));
        asked.await.unwrap().map(|answer| answer.body)
    }
}

async fn name(Extension(peer): Extension<Peer>) -> String {
    assert!(peer.address.ip().is_loopback());
    peer.common_name.unwrap_or_else(|| Arc::from("no certificate")).to_string()
}
