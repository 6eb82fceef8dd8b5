//! A way to the API server on which requests go wrong, for whole programs.
//!
//! A program that is given [`Way::kubeconfig`] speaks HTTP to it, and it speaks TLS to the API server; who asks is
//! known by the token that the program sends. What becomes of a request is drawn from its kind and its number among
//! those of its kind, so that a seed plays the same faults on a slow machine as on a fast one.

mod fate;

pub use fate::{Fate, Kind};

use crate::identity::{self, Identity};
use crate::plane::ControlPlane;
use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use futures_util::StreamExt;
use futures_util::stream::{empty, once};
use http::header::{CONNECTION, HOST, TRANSFER_ENCODING};
use kube::Client;
use kube::config::{AuthInfo, Config, KubeConfigOptions, Kubeconfig};
use serde_json::json;
use std::collections::BTreeMap;
use std::future::{Future, pending};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::task::JoinSet;
use windlass_testkit::Folder;

/// No request of the plugin is longer.
const LONGEST_BODY: usize = 1 << 20;

/// What goes wrong on a way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Of a thousand requests of each kind so many are answered wrong, or not at all.
    pub of_thousand: u64,
    /// A watch is cut after this; every other one within an event.
    pub watches_last: Option<Duration>,
}

/// A way; its clones are the same. It ends with the last of them, and what is under way on it.
#[derive(Clone, Debug)]
pub struct Way {
    address: SocketAddr,
    inner: Arc<Inner>,
    folder: Arc<Folder>,
    _work: Arc<JoinSet<()>>,
}

#[derive(Debug)]
struct Inner {
    api_server: Address,
    seed: u64,
    faults: Mutex<Faults>,
    counts: Mutex<Counts>,
    /// Requests that take effect, and whose senders may have given up.
    unheard: Mutex<JoinSet<()>>,
}

/// A client that adds no identity of its own.
struct Address(Client);

#[derive(Debug, Default)]
struct Counts {
    asked: BTreeMap<Kind, u64>,
    met: BTreeMap<(Kind, Fate), u64>,
}

// === impl Way ===

impl Way {
    /// A way on which everything passes until [`Self::set`] says otherwise. It is for the runtime of the test that asks for it.
    pub async fn to(plane: &ControlPlane, seed: u64) -> Self {
        let config = Kubeconfig::read_from(plane.kubeconfig(Identity::Admin)).unwrap();
        let options = KubeConfigOptions::default();
        let mut config = Config::from_custom_kubeconfig(config, &options).await.unwrap();
        (config.auth_info, config.default_retry) = (AuthInfo::default(), false);
        let api_server = Address(Client::try_from(config).unwrap());
        let (faults, counts, unheard) = (Mutex::default(), Mutex::default(), Mutex::default());
        let inner = Arc::new(Inner { api_server, seed, faults, counts, unheard });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().fallback(carry).with_state(Arc::clone(&inner));
        let serves = async move { axum::serve(listener, router).await.unwrap() };
        let folder = Arc::new(Folder::create().unwrap());
        Self { address, inner, folder, _work: Arc::new(JoinSet::from_iter([serves])) }
    }

    /// The file by which a program goes this way and is this identity.
    pub fn kubeconfig(&self, who: Identity) -> PathBuf {
        identity::put_kubeconfig(&self.folder, who, &format!("http://{}", self.address), None)
    }

    /// The file, of this name, by which a program goes this way and shows this token.
    pub fn kubeconfig_with(&self, name: &str, token: &str) -> PathBuf {
        let stranger = self.kubeconfig(Identity::Stranger);
        identity::put_token(&self.folder, &stranger, name, token)
    }

    /// What goes wrong from here on.
    pub fn set(&self, faults: Faults) {
        *lock(&self.inner.faults) = faults;
    }

    /// How many requests of each kind came.
    pub fn asked(&self) -> BTreeMap<Kind, u64> {
        lock(&self.inner.counts).asked.clone()
    }

    /// How often each kind of request met each fate but to pass.
    pub fn met(&self) -> BTreeMap<(Kind, Fate), u64> {
        lock(&self.inner.counts).met.clone()
    }

    /// How many requests of this kind went wrong.
    pub fn struck(&self, kind: Kind) -> u64 {
        let met = self.met().into_iter().filter(|((of, _), _)| *of == kind);
        met.map(|(_, many)| many).sum()
    }
}

/// Carries one request.
async fn carry(State(way): State<Arc<Inner>>, request: Request) -> Response {
    let kind = Kind::of(&request);
    let faults = *lock(&way.faults);
    let (fate, nth) = way.draw(kind, faults);
    let (mut head, body) = request.into_parts();
    for name in [HOST, CONNECTION, TRANSFER_ENCODING] {
        head.headers.remove(name);
    }
    let body = to_bytes(body, LONGEST_BODY).await.unwrap();
    let request = http::Request::from_parts(head, kube::client::Body::from(body));
    match fate {
        Fate::Passes => {}
        Fate::Throttled | Fate::Fails | Fate::Conflicts => return fate.answer(),
        Fate::IsLost => return pending().await,
        Fate::IsNotAnswered => {
            // It takes effect, however soon its sender gives up.
            let sender = Arc::clone(&way);
            let sent = async move { drop(sender.api_server.0.send(request).await) };
            lock(&way.unheard).spawn(sent);
            return pending().await;
        }
    }
    let (mut head, body) = match way.api_server.0.send(request).await {
        Ok(answer) => answer.into_parts(),
        // The API server hung up, or is not there: so does this way.
        Err(_) => return cut(empty(), pending(), true),
    };
    for name in [CONNECTION, TRANSFER_ENCODING] {
        head.headers.remove(name);
    }
    let body = Body::new(body);
    match faults.watches_last {
        Some(lasts) if kind == Kind::Watch => {
            let events = body.into_data_stream().map(|part| part.map_err(io::Error::other));
            let mut answer = cut(events, tokio::time::sleep(lasts), nth % 2 == 0);
            (*answer.status_mut(), *answer.headers_mut()) = (head.status, head.headers);
            answer
        }
        Some(_) | None => Response::from_parts(head, body),
    }
}

/// An answer that ends after a while, as if the peer had died or as if it had said all.
fn cut(
    parts: impl futures_util::Stream<Item = io::Result<Bytes>> + Send + 'static,
    after: impl Future<Output = ()> + Send + 'static,
    dies: bool,
) -> Response {
    let end = once(async { Err(io::Error::from(io::ErrorKind::ConnectionReset)) });
    let parts = parts.take_until(after);
    if dies {
        return Response::new(Body::from_stream(parts.chain(end)));
    }
    Response::new(Body::from_stream(parts))
}

// === impl Inner ===

impl Inner {
    /// What becomes of the next request of this kind, and its number.
    fn draw(&self, kind: Kind, faults: Faults) -> (Fate, u64) {
        let mut counts = lock(&self.counts);
        let asked = counts.asked.entry(kind).or_default();
        let nth = *asked;
        *asked += 1;
        let fate = Fate::draw(self.seed, kind, nth, faults.of_thousand);
        if fate != Fate::Passes {
            *counts.met.entry((kind, fate)).or_default() += 1;
        }
        (fate, nth)
    }
}

// === impl Fate ===

impl Fate {
    /// In the words of the API server.
    fn answer(self) -> Response {
        let (code, reason) = match self {
            Self::Throttled => (429, "TooManyRequests"),
            Self::Conflicts => (409, "Conflict"),
            Self::Passes | Self::Fails | Self::IsLost | Self::IsNotAnswered => {
                (500, "InternalError")
            }
        };
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "reason": reason, "message": "as a test wants it", "code": code,
        });
        let answer = Response::builder().status(code).header("content-type", "application/json");
        answer.header("retry-after", "1").body(Body::from(status.to_string())).unwrap()
    }
}

impl std::fmt::Debug for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the API server")
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap()
}
