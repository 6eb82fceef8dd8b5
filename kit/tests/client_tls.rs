//! A client over TLS: whom it trusts, what it shows, and what a person is told of a server that it does not trust.

#![expect(clippy::unwrap_used, reason = "tests")]

use axum::Router;
use axum::routing::post;
use http::{HeaderMap, Method, header};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use windlass_kit::client::{
    Ask, ClientError, Pool, TlsWay, Trust, TrustFile, TrustFiles, with_causes,
};
use windlass_kit::server::{Counts, Limits, Reloads, Tls, TlsListener, TlsPem, TlsPlaces, serve};
use windlass_kit::tasks::Tasks;
use windlass_kit::watchdog::Watchdog;
use windlass_testkit::log::Log;
use windlass_testkit::tls::{Ca, Pair, Valid};
use windlass_testkit::{Folder, wait};

#[tokio::test]
async fn a_request_shows_the_token_to_a_server_that_is_trusted() {
    let (server, client) = started("t1").await;
    assert_eq!(client.ask().await.unwrap(), "Bearer t1");
    // Connections are kept: a token that is read anew goes over the same one.
    client.folder.put("token", "t2\n");
    client.trust.look();
    assert_eq!(client.ask().await.unwrap(), "Bearer t2");
    assert!(!format!("{:?}", client.pool).contains("t2"), "nothing prints a token");
    drop(server);
}

#[tokio::test]
async fn a_server_that_is_not_trusted_hears_nothing() {
    let log = Log::kept();
    let (server, client) = started("t1").await;
    let other = Ca::new("other");
    for (pair, words) in [
        (other.signs("server", Valid::Now), "of another CA than the one that is trusted"),
        (server.ca.signs("server", Valid::NoMore), "has ended"),
        (server.ca.signs("server", Valid::NotYet), "is not valid yet"),
    ] {
        server.shows(&pair);
        client.pool.forget();
        let error = client.ask().await.unwrap_err();
        assert!(matches!(error, ClientError::Handshake(..)));
        assert!(with_causes(&error).contains(words), "{}", with_causes(&error));
    }
    // The certificate is for the address, and the client means a name.
    server.shows(&server.ca.signs("server", Valid::Now));
    let way = TlsWay::new("localhost", server.at.port(), client.trust.clone()).unwrap();
    let error = ask(&Pool::new(way, 1), &client.trust).await.unwrap_err();
    let words = with_causes(&error);
    assert!(words.contains("no TLS connection to localhost:"), "{words}");
    assert!(words.contains("its certificate is for other hosts"), "{words}");
    // The CA changes, and the server with it: nothing is started anew.
    server.shows(&other.signs("server", Valid::Now));
    client.folder.put("ca.pem", other.pem());
    client.trust.look();
    client.pool.forget();
    assert_eq!(client.ask().await.unwrap(), "Bearer t1");
    // Files of no use change nothing, and are told of once.
    for (file, text) in [("ca.pem", "no ca"), ("token", "two words")] {
        client.folder.put(file, text);
        client.trust.look();
        client.trust.look();
    }
    client.pool.forget();
    assert_eq!(client.ask().await.unwrap(), "Bearer t1");
    let told = "ERROR a changed CA or token cannot be used; the last valid one stays in force";
    assert_eq!(log.count(told), 2);
}

#[tokio::test]
async fn files_that_change_are_followed() {
    let (_server, client) = started("t1").await;
    let (tasks, watchdog) = (Tasks::default(), Watchdog::default());
    let stop = CancellationToken::new();
    let followed = client.trust.clone().follow(watchdog.watch("trust"), stop.clone());
    tasks.minor("trust", followed);
    client.folder.put("token", "t2");
    let is_read = async || client.ask().await.unwrap() == "Bearer t2";
    wait::until_async("the token is read again", is_read).await;
    stop.cancel();
    tasks.drain(Duration::from_secs(5)).await.unwrap();
}

#[test]
fn files_of_no_use_are_named() {
    let (folder, ca) = (Folder::create().unwrap(), Ca::new("ca"));
    let (good, token) = (folder.put("ca.pem", ca.pem()), folder.put("token", " t1\n"));
    let load = |ca, token| Trust::load(TrustFiles { ca, token });
    let trust = load(good.clone(), Some(token)).unwrap();
    assert_eq!(trust.authorization().unwrap(), "Bearer t1");
    assert_eq!(load(good.clone(), None).unwrap().authorization(), None);
    let empty = folder.put("empty", "");
    for (ca, token, file, why) in [
        (empty.clone(), None, TrustFile::Ca, "must hold a certificate in PEM"),
        (folder.at("none"), None, TrustFile::Ca, "No such file"),
        (good.clone(), Some(empty), TrustFile::Token, "must hold one token"),
        (good, Some(folder.put("bytes", "\u{1}")), TrustFile::Token, "must hold a token"),
    ] {
        let error = load(ca, token).unwrap_err();
        assert_eq!(error.file, file);
        assert!(error.to_string().contains(why), "{error}");
    }
}

/// A server that says which token it was shown.
struct Server {
    at: SocketAddr,
    tls: Tls,
    ca: Ca,
    _tasks: Tasks,
}

/// A client of it.
struct Client {
    pool: Pool<TlsWay>,
    trust: Trust,
    folder: Folder,
}

async fn started(token: &str) -> (Server, Client) {
    let (ca, tls) = (Ca::new("ca"), Tls::awaiting(Reloads::default()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let (tasks, listener) = (Tasks::default(), TlsListener::new(listener, tls.clone()));
    let router = Router::new().route("/", post(shown));
    let limits = Limits::small(Counts::default());
    tasks.vital("server", serve(listener, router, limits, tasks.stopping()));
    let folder = Folder::create().unwrap();
    let files =
        TrustFiles { ca: folder.put("ca.pem", ca.pem()), token: Some(folder.put("token", token)) };
    let trust = Trust::load(files).unwrap();
    let way = TlsWay::new("127.0.0.1", at.port(), trust.clone()).unwrap();
    let server = Server { at, tls, ca, _tasks: tasks };
    server.shows(&server.ca.signs("server", Valid::Now));
    (server, Client { pool: Pool::new(way, 2), trust, folder })
}

async fn shown(headers: HeaderMap) -> String {
    headers[header::AUTHORIZATION].to_str().unwrap().to_owned()
}

// === impl Server ===

impl Server {
    fn shows(&self, pair: &Pair) {
        let (certificate, key) = (pair.certificate.clone().into(), pair.key.clone().into());
        let place = || "given".to_owned();
        let places = TlsPlaces { certificate: place(), key: place(), client_ca: place() };
        self.tls.give(TlsPem { certificate, key, client_ca: None }, &places).unwrap();
    }
}

// === impl Client ===

impl Client {
    async fn ask(&self) -> Result<String, ClientError> {
        ask(&self.pool, &self.trust).await
    }
}

async fn ask(pool: &Pool<TlsWay>, trust: &Trust) -> Result<String, ClientError> {
    let request = Ask::new(Method::POST, "/", "{}");
    let request = request.with(header::AUTHORIZATION, trust.authorization().unwrap());
    let answer = pool.ask(request.within(Duration::from_secs(10))).await?;
    Ok(answer.text())
}
