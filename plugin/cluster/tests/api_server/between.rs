//! What stands between the plugin and the API server: it records requests, and has its way with bindings, ceilings and migrations.

use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::json;
use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::Notify;
use tower::BoxError;

/// What becomes of the next binding, of the next write of a ceiling, or of the next resize. Those that follow pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It passes.
    #[default]
    Passes,
    /// It is kept, and may be sent on later; its sender hears nothing.
    IsKept,
    /// It waits until it is let go.
    IsHeldUp,
    /// It takes effect, and its answer is lost.
    IsNotAnswered,
    /// It takes effect, and is answered with 504.
    IsTimedOut,
    /// The pod, or what else the ceiling is on, gets another revision first, or another ceiling.
    ComesAfterAChange,
    /// The API server is busy.
    IsThrottled,
}

/// The way of one plugin to the API server. Clones are the same way.
#[derive(Clone)]
pub(crate) struct Between {
    plugin: Client,
    admin: Client,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    next: Fate,
    /// Done when the next pod was read.
    on_read: Option<Box<dyn FnOnce() + Send>>,
    next_ceiling: Fate,
    next_resize: Fate,
    ceilings: usize,
    next_migration: Fate,
    kept: Option<Request<Body>>,
    let_go: Arc<Notify>,
    used: BTreeSet<(String, String)>,
    sent: usize,
    denied: Vec<String>,
    /// Reviews of tokens are lost on their way.
    loses_reviews: bool,
    reviews: usize,
}

// === impl Between ===

impl Between {
    /// Requests go on with the plugin's rights.
    pub(crate) fn new(plugin: Client, admin: Client) -> Self {
        Self { plugin, admin, state: Arc::default() }
    }

    /// The client that the plugin is given.
    pub(crate) fn client(&self) -> Client {
        let between = self.clone();
        let carry = move |request| {
            let between = between.clone();
            async move { between.carry(request).await }
        };
        Client::new(tower::service_fn(carry), "default")
    }

    /// What becomes of the next binding.
    pub(crate) fn next_binding(&self, fate: Fate) {
        self.state().next = fate;
    }

    /// What happens once the next pod was read, before its reader hears of it.
    pub(crate) fn on_next_read(&self, happens: impl FnOnce() + Send + 'static) {
        self.state().on_read = Some(Box::new(happens));
    }

    /// What becomes of the next write of a ceiling that replaces another.
    pub(crate) fn next_ceiling(&self, fate: Fate) {
        self.state().next_ceiling = fate;
    }

    /// What becomes of the next migration that is made.
    pub(crate) fn next_migration(&self, fate: Fate) {
        self.state().next_migration = fate;
    }

    /// What becomes of the next resize of a VM's pod.
    pub(crate) fn next_resize(&self, fate: Fate) {
        self.state().next_resize = fate;
    }

    /// Whether a request is kept.
    pub(crate) fn keeps(&self) -> bool {
        self.state().kept.is_some()
    }

    /// How many writes of ceilings that replace others were sent.
    pub(crate) fn ceilings(&self) -> usize {
        self.state().ceilings
    }

    /// Sends the request on that was kept; the status of its answer.
    pub(crate) async fn send_what_was_kept(&self) -> u16 {
        let request = self.state().kept.take().unwrap();
        self.plugin.send(request).await.unwrap().status().as_u16()
    }

    /// Whether reviews of tokens are lost on their way.
    pub(crate) fn lose_reviews(&self, are_lost: bool) {
        self.state().loses_reviews = are_lost;
    }

    /// How many reviews of tokens were sent.
    pub(crate) fn reviews(&self) -> usize {
        self.state().reviews
    }

    /// A binding that is held up goes on.
    pub(crate) fn let_go(&self) {
        self.state().let_go.notify_one();
    }

    /// The verbs that were used, each with its resource, as a role has them.
    pub(crate) fn used(&self) -> BTreeSet<(String, String)> {
        self.state().used.clone()
    }

    /// How many requests were sent.
    pub(crate) fn sent(&self) -> usize {
        self.state().sent
    }

    /// What the API server did not allow.
    pub(crate) fn denied(&self) -> Vec<String> {
        self.state().denied.clone()
    }

    async fn carry(&self, request: Request<Body>) -> Result<Response<Body>, BoxError> {
        let line = format!("{} {}", request.method(), request.uri());
        let right = right(&request);
        let is_read = right == ("pods".to_owned(), "get".to_owned());
        let fate = match right.0.as_str() {
            "pods/binding" => std::mem::take(&mut self.state().next),
            "tokenreviews" => self.state().review(),
            MIGRATIONS if right.1 == "create" => std::mem::take(&mut self.state().next_migration),
            "pods/resize" if !line.contains("/headroom-") => {
                std::mem::take(&mut self.state().next_resize)
            }
            "pods" | OBJECTS if is_ceiling(&request) => {
                let mut state = self.state();
                state.ceilings += 1;
                std::mem::take(&mut state.next_ceiling)
            }
            _ => Fate::Passes,
        };
        {
            let mut state = self.state();
            state.used.insert(right);
            state.sent += 1;
        }
        match fate {
            Fate::Passes | Fate::IsNotAnswered | Fate::IsTimedOut => {}
            Fate::IsKept => {
                self.state().kept = Some(request);
                return Err(lost());
            }
            Fate::IsHeldUp => {
                let let_go = self.state().let_go.clone();
                let_go.notified().await;
            }
            Fate::ComesAfterAChange => self.change(request.uri().path()).await,
            Fate::IsThrottled => return Ok(status(429, "TooManyRequests")),
        }
        let answer = self.plugin.send(request).await?;
        let on_read = if is_read { self.state().on_read.take() } else { None };
        if let Some(happens) = on_read {
            happens();
        }
        if answer.status() == 403 {
            self.state().denied.push(line);
        }
        match fate {
            Fate::IsNotAnswered => Err(lost()),
            Fate::IsTimedOut => Ok(status(504, "Timeout")),
            Fate::Passes
            | Fate::IsKept
            | Fate::IsHeldUp
            | Fate::ComesAfterAChange
            | Fate::IsThrottled => Ok(answer),
        }
    }

    /// Somebody changes the object of a request.
    async fn change(&self, path: &str) {
        let path = path.trim_end_matches("/binding");
        let patch = json!({"metadata": {
            "labels": {"changed": "yes"}, "annotations": {"windlass.dev/ceiling": "a person's"},
        }});
        let patch = patch.to_string().into_bytes();
        let request = Request::patch(path).header("content-type", "application/merge-patch+json");
        let answer = self.admin.send(request.body(Body::from(patch)).unwrap()).await.unwrap();
        assert_eq!(answer.status(), 200);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

// === impl State ===

impl State {
    fn review(&mut self) -> Fate {
        self.reviews += 1;
        if self.loses_reviews { Fate::IsNotAnswered } else { Fate::Passes }
    }
}

/// The resource of migrations.
pub(crate) const MIGRATIONS: &str = "virtualmachinemigrations";

/// The resource of NeonVM's VMs.
pub(crate) const OBJECTS: &str = "virtualmachines";

/// Only the replacement of a ceiling is a JSON patch.
fn is_ceiling(request: &Request<Body>) -> bool {
    request.headers().get("content-type").is_some_and(|it| it == "application/json-patch+json")
}

fn status(code: u16, reason: &str) -> Response<Body> {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure",
        "reason": reason, "message": "busy", "code": code,
    });
    let body = Body::from(status.to_string().into_bytes());
    Response::builder().status(code).body(body).unwrap()
}

fn lost() -> BoxError {
    io::Error::from(io::ErrorKind::ConnectionReset).into()
}

/// The resource and the verb of a request, as of `/api/v1/nodes` or `/api/v1/namespaces/NAMESPACE/pods/NAME/binding`.
fn right(request: &Request<Body>) -> (String, String) {
    let path: Vec<&str> = request.uri().path().trim_start_matches('/').split('/').collect();
    let (resource, name, sub) = match path[..] {
        ["api", "v1", "namespaces", _, kind, name, sub] => (kind, Some(name), Some(sub)),
        ["api", "v1", "namespaces", _, kind, name] => (kind, Some(name), None),
        ["api", "v1", "namespaces", _, kind]
        | ["api", "v1", kind]
        | ["apis", "authentication.k8s.io" | "authorization.k8s.io", "v1", kind] => {
            (kind, None, None)
        }
        ["apis", "vm.neon.tech", "v1", kind] => (kind, None, None),
        ["apis", "coordination.k8s.io" | "vm.neon.tech", "v1", "namespaces", _, kind] => {
            (kind, None, None)
        }
        ["apis", "coordination.k8s.io" | "vm.neon.tech", "v1", "namespaces", _, kind, name] => {
            (kind, Some(name), None)
        }
        _ => panic!("{path:?}"),
    };
    let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
    let verb = match (request.method(), name) {
        (&Method::GET, Some(_)) => "get",
        (&Method::GET, None) if is_watch => "watch",
        (&Method::GET, None) => "list",
        (&Method::POST, _) => "create",
        (&Method::PATCH, _) => "patch",
        (&Method::PUT, _) => "update",
        (&Method::DELETE, Some(_)) => "delete",
        (method, _) => panic!("{method} {path:?}"),
    };
    let resource = sub.map_or_else(|| resource.to_owned(), |sub| format!("{resource}/{sub}"));
    (resource, verb.to_owned())
}

/// An API server without pods: the pods of other tests are left alone.
pub(crate) fn without_pods() -> Client {
    Client::new(tower::service_fn(|_: Request<Body>| async { none() }), "default")
}

/// An API server with the pods of this namespace alone.
pub(crate) fn pods_of(space: &str, client: Client) -> Client {
    let own = format!("/namespaces/{space}/");
    let carry = move |request: Request<Body>| {
        let (client, is_own) = (client.clone(), request.uri().path().contains(&own));
        async move { if is_own { client.send(request).await.map_err(BoxError::from) } else { none() } }
    };
    Client::new(tower::service_fn(carry), "default")
}

fn none() -> Result<Response<Body>, BoxError> {
    Ok(status(404, "NotFound"))
}
