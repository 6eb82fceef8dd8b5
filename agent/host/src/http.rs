//! The host's socket as HTTP: each handler reads its request, asks one question, and writes.
//!
//! Requests are read strictly: the client has the same release, or its user made a mistake. Every
//! answer is JSON, also a refusal, which names the field, the value and the limit.

mod request;

use crate::api::{
    Changed, Check, Checked, Done, Explained, HostFacts, LogFilter, Pause, Release, Releasing,
    VmFindings,
};
use crate::checked_attach::Findings;
use crate::commands::{By, HostCommands, Reply, Sender};
use crate::composition::NodeBooks;
use crate::controller::HostController;
use crate::disk::{SILENT, unread};
use crate::refused::Refused;
use crate::vm_check;
use axum::extract::{Path, State};
use axum::http::{Method, Uri};
use axum::routing::{get, post};
use axum::{Json, Router};
use bytes::Bytes;
use request::{minutes, moment, nothing, read};
use serde::Serialize;
use std::collections::BTreeMap;
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;
use tracing::info;
use windlass_agent::{Agent, Config, NullLedger, Remote};
use windlass_kit::blocking::Work;
use windlass_kit::clock::Clock;
use windlass_kit::tasks::Tasks;
use windlass_kit::telemetry::LogLevel;
use windlass_protocol::status::{HostStatus, Ordered};
use windlass_protocol::{ComputeUnit, VmName};
use windlass_vm_files::folder::Look;

/// What the disk may take to say what the VM files are while one is checked.
const LOOKED_WITHIN: Duration = Duration::from_secs(4);

/// What the handlers answer from.
#[derive(Clone)]
pub struct ApiState {
    pub(crate) agent: Agent,
    pub(crate) books: Option<Arc<dyn NodeBooks>>,
    pub(crate) commands: Arc<HostCommands<HostController>>,
    pub(crate) clock: Clock,
    pub(crate) facts: HostFacts,
    pub(crate) findings: Findings,
    pub(crate) log_level: LogLevel,
    /// What the VM files are at this moment.
    pub(crate) looks: Looks,
    /// The last order to freeze or thaw.
    pub(crate) ordered: watch::Receiver<Option<Ordered>>,
}

/// A way to look at the VM files, apart.
pub(crate) type Looks = Arc<dyn Fn() -> Work<Look> + Send + Sync>;

type Api = State<ApiState>;
type Vm = Path<String>;

/// An answer, or why the request is refused.
type Answer<T> = Result<Json<T>, Refused>;

/// The socket of a host without VMs and books whose controller takes no orders: what is asked of it is
/// answered from nothing, and an order that is understood is refused as not taken. For trying
/// what is sent to a socket; must be made within a runtime.
pub fn idle(tasks: &Tasks, unit: ComputeUnit) -> Router {
    let clock = Clock::system();
    let nowhere = "http://127.0.0.1:1".parse().expect("this is an address");
    let permits = Remote::new(nowhere, None, Duration::from_secs(1)).expect("it has no TLS");
    let agent =
        Agent::new(Config::new(unit), Arc::new(permits), Arc::new(NullLedger), tasks, clock);
    let facts = HostFacts {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started: clock.now(),
        ..HostFacts::default()
    };
    router(ApiState {
        agent,
        books: None,
        commands: Arc::new(HostCommands::new(clock).0),
        clock,
        facts,
        findings: Findings::default(),
        log_level: LogLevel::ended(),
        looks: Arc::new(|| Box::pin(ready(Ok(BTreeMap::new())))),
        ordered: watch::channel(None).1,
    })
}

/// Every path of the socket.
pub fn router(api: ApiState) -> Router {
    Router::new()
        .route("/v1/state", get(state))
        .route("/v1/host", get(host))
        .route("/v1/problems", get(problems))
        .route("/v1/vms", get(vms))
        .route("/v1/changes", get(changes))
        .route("/v1/explain/{vm}", get(explain))
        .route("/v1/freeze", post(freeze))
        .route("/v1/thaw", post(thaw))
        .route("/v1/vm/{vm}/release", post(release).get(releasing))
        .route("/v1/vm/{vm}/pause", post(pause))
        .route("/v1/vm/{vm}/resume", post(resume))
        .route("/v1/vm/{vm}/findings", get(findings))
        .route("/v1/check", post(check))
        .route("/v1/log-level", get(log_level).put(set_log_level))
        .fallback(no_such_path)
        .method_not_allowed_fallback(wrong_method)
        .with_state(api)
}

async fn state(State(api): Api) -> Json<HostStatus> {
    let now = api.clock.now();
    Json(HostStatus {
        at: now,
        frozen: api.agent.is_frozen(),
        ordered: *api.ordered.borrow(),
        host_available: api.agent.host_available(),
        node: api.books.as_ref().map(|books| books.status(now)),
        vms: api.agent.status(),
    })
}

async fn host(State(api): Api) -> Json<HostFacts> {
    Json(api.facts)
}

async fn problems(State(api): Api) -> Answer<impl Serialize> {
    Ok(Json(api.commands.ask(|host| host.problems()).await?))
}

async fn vms(State(api): Api) -> Answer<impl Serialize> {
    Ok(Json(api.commands.ask(|host| host.list()).await?))
}

async fn changes(State(api): Api) -> Json<Vec<Changed>> {
    let last = api.agent.last_decisions(|decision| Changed::by(decision).is_some());
    Json(last.iter().filter_map(Changed::by).collect())
}

async fn explain(State(api): Api, Path(vm): Vm, uri: Uri) -> Answer<Explained> {
    let (vm, minutes) = (VmName::on_host(vm), minutes(uri.query())?);
    let explained = api.commands.ask(move |host| host.explain(vm, minutes)).await??;
    Ok(Json(Explained { cpu_limit: api.facts.cpu_limit, ..explained }))
}

async fn freeze(State(api): Api, sender: Sender, body: Bytes) -> Answer<Done> {
    nothing(&body)?;
    api.obeyed(&sender, |host, by| Ok(host.freeze(true, by))).await
}

async fn thaw(State(api): Api, sender: Sender, body: Bytes) -> Answer<Done> {
    nothing(&body)?;
    api.obeyed(&sender, |host, by| Ok(host.freeze(false, by))).await
}

async fn release(State(api): Api, Path(vm): Vm, sender: Sender, body: Bytes) -> Answer<Done> {
    let release: Release = read(&body)?;
    api.obeyed(&sender, move |host, by| host.release(&vm, release, by)).await
}

async fn releasing(State(api): Api, Path(vm): Vm) -> Answer<Releasing> {
    Ok(Json(api.commands.ask(move |host| host.releasing(&vm)).await??))
}

async fn pause(State(api): Api, Path(vm): Vm, sender: Sender, body: Bytes) -> Answer<Done> {
    let Pause { until } = read(&body)?;
    let until = moment(&until, api.clock.now())?;
    api.obeyed(&sender, move |host, by| host.pause(&vm, until, by)).await
}

async fn resume(State(api): Api, Path(vm): Vm, sender: Sender, body: Bytes) -> Answer<Done> {
    nothing(&body)?;
    api.obeyed(&sender, move |host, by| host.resume(&vm, by)).await
}

async fn findings(State(api): Api, Path(vm): Vm) -> Answer<VmFindings> {
    let name = VmName::on_host(vm.as_str());
    let (at, findings) = api.findings.of(&vm).ok_or_else(|| unasked(&api, &name))?;
    let status = api.agent.status().into_iter().find(|status| status.name == name);
    let findings = vm_check::as_of_now(findings, status.as_ref());
    let informant = move |host: &mut HostController| Some(host.folder.get(&vm)?.informant);
    let place = api.commands.ask(informant).await?;
    let informant = Some(vm_check::informant(place, status.as_ref()).await);
    Ok(Json(VmFindings { vm: name, at, findings, informant, status }))
}

async fn check(State(api): Api, sender: Sender, body: Bytes) -> Answer<Checked> {
    let (check, by): (Check, By) = (read(&body)?, sender.by);
    let look = timeout(LOOKED_WITHIN, (api.looks)()).await;
    let look = look.unwrap_or_else(|_| Err(unread(&SILENT)));
    let order = move |host: &mut HostController, reply: Reply<Checked>| {
        drop(reply.send(Ok(host.check(&check, &look, by))));
    };
    Ok(Json(api.commands.order(&sender, order).await?))
}

async fn log_level(State(api): Api) -> Answer<LogFilter> {
    Ok(Json(LogFilter { filter: api.log_level.get()? }))
}

async fn set_log_level(State(api): Api, sender: Sender, body: Bytes) -> Answer<Done> {
    let LogFilter { filter } = read(&body)?;
    let before = api.log_level.get()?;
    api.log_level.set(&filter).map_err(|error| Refused::Senseless(error.to_string()))?;
    let after = api.log_level.get()?;
    let by = sender.by;
    let (uid, pid) = (by.map(|by| by.uid), by.and_then(|by| by.pid));
    info!(order = "log-level", filter = after, uid, pid, "ordered");
    let changed = before != after;
    Ok(Json(Done { message: format!("the log level is {after}, until the next start"), changed }))
}

async fn no_such_path(uri: Uri) -> Refused {
    let path: String = uri.path().chars().take(100).collect();
    Refused::NoSuchPath(format!("there is nothing at {path}; try /v1/state or /v1/host"))
}

async fn wrong_method(method: Method, uri: Uri) -> Refused {
    let path: String = uri.path().chars().take(100).collect();
    let method: String = method.as_str().chars().take(20).collect();
    Refused::WrongMethod(format!(
        "{method} is not for {path}; what is read takes GET, an order takes POST, and only the log \
         level PUT"
    ))
}

/// A VM whose monitor has said nothing so far, not even by its silence.
fn unasked(api: &ApiState, vm: &VmName) -> Refused {
    if !api.agent.lifecycles().iter().any(|(known, ..)| known == vm) {
        return Refused::nothing_is_known_of(vm);
    }
    let name = &vm.name;
    Refused::NotNow(format!("the monitor of {name} is being asked; try again in a few seconds"))
}

// === impl ApiState ===

impl ApiState {
    /// Has an order carried out, which is answered once it is written down.
    async fn obeyed(
        &self,
        sender: &Sender,
        order: impl FnOnce(&mut HostController, By) -> Result<Done, Refused> + Send + 'static,
    ) -> Answer<Done> {
        let by = sender.by;
        let order = move |host: &mut HostController, reply: Reply<Done>| {
            let done = order(host, by);
            host.answer(done, reply);
        };
        Ok(Json(self.commands.order(sender, order).await?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;
    use axum::http::Request;
    use tower::ServiceExt;
    use windlass_protocol::UnitChoice;

    #[tokio::test]
    async fn an_idle_socket_answers_and_takes_no_order() {
        let tasks = Tasks::default();
        let socket = idle(&tasks, UnitChoice::default().usual());
        for (method, path, status) in [("GET", "/v1/state", 200), ("POST", "/v1/freeze", 503)] {
            let request = Request::builder().method(method).uri(path).body(Body::empty());
            let answer = socket.clone().oneshot(request.unwrap()).await.unwrap();
            assert_eq!(answer.status(), status, "{path}");
        }
    }
}
