//! A plugin that is reached over TLS: the token that it is shown, and what the log says where it is not trusted or denies the agent.

use axum::Router;
use axum::routing::post;
use http::{HeaderMap, StatusCode, header};
use std::time::Duration;
use tokio::net::TcpListener;
use windlass_agent::{NoTrust, Permits, Remote};
use windlass_kit::client::{Trust, TrustFiles};
use windlass_kit::server::{Counts, Limits, Reloads, Tls, TlsFiles, TlsListener, serve};
use windlass_kit::tasks::Tasks;
use windlass_testkit::Folder;
use windlass_testkit::tls::{Ca, Valid};

const LIMIT: Duration = Duration::from_secs(10);

#[tokio::test]
async fn a_plugin_over_tls_is_shown_the_token_and_has_to_be_trusted() {
    let (folder, ca, other) = (Folder::create().unwrap(), Ca::new("ca"), Ca::new("other"));
    let pair = ca.signs("plugin", Valid::Now);
    let files = TlsFiles {
        certificate: folder.put("tls.crt", &pair.certificate),
        key: folder.put("tls.key", &pair.key),
        client_ca: None,
    };
    let tls = Tls::load(files, Reloads::default()).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = format!("https://{}/permits", listener.local_addr().unwrap());
    let (tasks, listener) = (Tasks::default(), TlsListener::new(listener, tls));
    let router = Router::new().route("/permits", post(known));
    let limits = Limits::small(Counts::default());
    tasks.vital("server", serve(listener, router, limits, tasks.stopping()));

    let files =
        TrustFiles { ca: folder.put("ca.crt", ca.pem()), token: Some(folder.put("token", "t1")) };
    let trust = Trust::load(files).unwrap();
    let remote = Remote::new(at.parse().unwrap(), Some(trust.clone()), LIMIT).unwrap();
    assert_eq!(remote.place(), at);
    let ask = async || remote.ask("{}".into()).await.map(|(status, _)| status);
    assert_eq!(ask().await, Ok(200));
    folder.put("token", "t2");
    trust.look();
    assert_eq!(ask().await, Ok(401), "a token that is renewed is shown with the next request");

    let ca = folder.put("other.crt", other.pem());
    let trust = Trust::load(TrustFiles { ca, token: None }).unwrap();
    let remote = Remote::new(at.parse().unwrap(), Some(trust), LIMIT).unwrap();
    let why = remote.ask("{}".into()).await.unwrap_err();
    assert!(why.contains("its certificate is of another CA than the one that is trusted"), "{why}");
    assert_eq!(Remote::new(at.parse().unwrap(), None, LIMIT).unwrap_err(), NoTrust);
}

async fn known(headers: HeaderMap) -> StatusCode {
    let is_known = headers[header::AUTHORIZATION] == "Bearer t1";
    if is_known { StatusCode::OK } else { StatusCode::UNAUTHORIZED }
}
