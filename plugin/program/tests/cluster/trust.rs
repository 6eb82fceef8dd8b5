//! TLS at both ports: a scheduler that shows a certificate, agents that show tokens of the API server, and others.
//!
//! These tests share a control plane, a plugin and a scheduler, which have no port without TLS.

use crate::SCHEDULER;
use crate::agent::request;
use crate::plugin::Plugin;
use crate::vms::Vms;
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;
use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use tokio::sync::OnceCell;
use windlass_control_plane::{ControlPlane, Identity, Scheduler, Space, neonvm};
use windlass_testkit::tls::{Ca, Client, Pair, Valid};
use windlass_testkit::{http, wait};

/// The account of agents, in the namespace of Windlass.
const AGENT: &str = "windlass-agent";
const AUDIENCE: &str = "windlass-plugin";

#[tokio::test]
async fn an_agent_is_answered_for_the_vms_of_its_node_by_its_token() {
    let trusted = trusted().await;
    let vms = Vms::of(&trusted.plane).await;
    let node = vms.space.node("one", "4", "16Gi").await;
    vms.vm("vm", 4).await;
    assert_eq!(vms.bound("vm").await, node, "the scheduler asks over TLS");
    let (agents, other) = (trusted.agents().await, vms.space.node("other", "4", "16Gi").await);
    let agent = agents.pod_of(AGENT, &format!("on-{node}"), &node).await;
    let token = agents.token(AGENT, AUDIENCE, Some(&agent)).await;
    let permitted = |token: &str, size| trusted.permit(&vms, token, size);
    assert_eq!(permitted(&token, 1), (200, String::new()));
    assert_eq!(permitted(&token, 3), (200, String::new()));
    assert_eq!(trusted.plugin.node(&node)["reserved"]["cpu"], 3000);

    // Each of these is another way not to be the agent of this node.
    let elsewhere = agents.pod_of(AGENT, &format!("on-{other}"), &other).await;
    let gone = agents.pod_of(AGENT, &format!("gone-{node}"), &node).await;
    let of_gone = agents.token(AGENT, AUDIENCE, Some(&gone)).await;
    delete(&agents, &gone).await;
    vms.space.account(AGENT).await;
    let tenant = vms.space.pod_of(AGENT, "tenant", &node).await;
    let mut forged = token.clone();
    forged.replace_range(token.len() - 8.., "AAAAAAAA");
    for (token, status, reason, words) in [
        ("", 401, "no-token", "no bearer token"),
        ("nonsense", 401, "not-valid", "the API server refuses the token"),
        (&forged, 401, "not-valid", "the API server refuses the token"),
        (
            &agents.token(AGENT, "https://kubernetes.default.svc", Some(&agent)).await,
            401,
            "not-valid",
            "the API server refuses the token",
        ),
        (&of_gone, 401, "not-valid", "the API server refuses the token"),
        (
            &agents.token(AGENT, AUDIENCE, Some(&elsewhere)).await,
            403,
            "other-node",
            "the VM is not on",
        ),
        (&agents.token(AGENT, AUDIENCE, None).await, 403, "no-node", "the token names no node"),
        (
            &vms.space.token(AGENT, AUDIENCE, Some(&tenant)).await,
            403,
            "other-account",
            "is not the account of agents",
        ),
    ] {
        let (answered, said) = trusted.permit(&vms, token, 4);
        assert_eq!(answered, status, "{reason}: {said}");
        assert!(said.contains(words), "{reason}: {said}");
        let count = format!(r#"windlass_plugin_denied_total{{port="permits",reason="{reason}"}} "#);
        assert!(trusted.plugin.metrics().contains(&count), "{count}");
        let is_logged = || trusted.plugin.has_logged(&["a caller was denied", reason]);
        wait::until(&format!("the log says {reason}"), is_logged);
        assert!(token.len() < 20 || !trusted.plugin.has_logged(&[token]), "a token was logged");
    }
    assert_eq!(trusted.plugin.node(&node)["reserved"]["cpu"], 3000, "nobody changed it");
    assert_eq!(permitted(&token, 4), (200, String::new()));
}

#[tokio::test]
async fn the_extender_answers_the_certificate_of_the_scheduler_alone() {
    let trusted = trusted().await;
    let ask = |ca: &Ca, shown: Option<&Pair>| {
        let client = Client::new(ca, shown);
        client.ask(trusted.extender(), "POST", "/filter", "", "{}")
    };
    let (ca, metrics) = (&trusted.ca, || trusted.plugin.metrics());
    assert_eq!(ask(ca, Some(&trusted.scheduler)).unwrap().status, 400, "understood");
    for (shown, status, reason) in [
        (None, 401, "no-certificate"),
        (Some(ca.signs("system:node:n1", Valid::Now)), 403, "other-certificate"),
    ] {
        let answer = ask(ca, shown.as_ref()).unwrap();
        assert_eq!(answer.status, status, "{}", answer.body);
        let count =
            format!(r#"windlass_plugin_denied_total{{port="extender",reason="{reason}"}} "#);
        assert!(metrics().contains(&count), "{count}");
        let is_logged = || trusted.plugin.has_logged(&["a caller was denied", reason]);
        wait::until(&format!("the log says {reason}"), is_logged);
    }
    let (other, name) = (Ca::new("other"), "system:kube-scheduler");
    for (shown, reason) in [
        (other.signs(name, Valid::Now), "tls-unknown-ca"),
        (ca.signs(name, Valid::NoMore), "tls-expired"),
        (ca.signs(name, Valid::NotYet), "tls-not-yet-valid"),
    ] {
        ask(ca, Some(&shown)).unwrap_err();
        trusted.until_counted(reason);
    }
    ask(&other, Some(&trusted.scheduler)).unwrap_err();
    trusted.until_counted("tls-distrusted");
    for at in [trusted.extender(), trusted.permits()] {
        let answer = http::ask(at, "POST", "/filter", "{}");
        assert_eq!(
            (answer.status, answer.body.as_str()),
            (400, "this port speaks TLS, and nothing else\n")
        );
    }
    trusted.until_counted("tls-plain-text");
    assert_eq!(ask(ca, Some(&trusted.scheduler)).unwrap().status, 400, "others go on");
}

#[tokio::test]
async fn a_certificate_is_renewed_while_connections_are_open() {
    let trusted = trusted().await;
    let client = Client::new(&trusted.ca, Some(&trusted.scheduler));
    let mut open = client.connect(trusted.extender()).unwrap();
    let reloaded = |answer: &str| {
        let metrics = trusted.plugin.metrics();
        metrics.contains(&format!(
            r#"windlass_plugin_certificate_reloads_total{{answer="{answer}"}} 2"#
        ))
    };
    let (one, two) = (trusted.ca.signs("one", Valid::Now), trusted.ca.signs("two", Valid::Now));
    trusted.plugin.renew(&Pair { certificate: one.certificate, key: "no key".to_owned() });
    wait::until("both ports have seen a pair that does not fit", || reloaded("failed"));
    let asked = || client.ask(trusted.extender(), "POST", "/filter", "", "{}").unwrap().status;
    assert_eq!(asked(), 400, "the last valid pair stays in force");
    trusted.plugin.renew(&two);
    wait::until("both ports have read the new one", || reloaded("done"));
    open.write_all(http::request("POST", "/filter", "{}").as_bytes()).unwrap();
    assert!(http::rest(open).starts_with("HTTP/1.1 400 "), "the open connection goes on");
    assert_eq!(asked(), 400);
}

/// A control plane with a plugin and a scheduler that have certificates.
pub(crate) struct Trusted {
    pub(crate) plane: ControlPlane,
    pub(crate) plugin: Plugin,
    pub(crate) ca: Ca,
    scheduler: Pair,
    _scheduler: Scheduler,
}

pub(crate) async fn trusted() -> &'static Trusted {
    static TRUSTED: OnceCell<Trusted> = OnceCell::const_new();
    TRUSTED.get_or_init(Trusted::start).await
}

// === impl Trusted ===

impl Trusted {
    async fn start() -> Self {
        let plane = ControlPlane::start().await;
        neonvm::kinds(&plane).await;
        for folder in ["plugin", "plugin-conditions", "plugin-neonvm"] {
            plane.apply(Path::new(&format!("../../deploy/kustomize/{folder}"))).await;
        }
        Space::named(&plane, "windlass").await.account(AGENT).await;
        let ca = Ca::new("ca");
        let pair = ca.signs("windlass-plugin", Valid::Now);
        let plugin = Plugin::start_with_tls(&plane.kubeconfig(Identity::Plugin), &pair, &ca);
        let scheduler = ca.signs("system:kube-scheduler", Valid::Now);
        let folder = plane.folder();
        let mut config = plugin.scheduler_config();
        config["urlPrefix"] = json!(format!("https://{}", plugin.extender));
        config["enableHTTPS"] = json!(true);
        config["tlsConfig"] = json!({
            "caFile": folder.put("extender-ca.pem", ca.pem()),
            "certFile": folder.put("scheduler.pem", &scheduler.certificate),
            "keyFile": folder.put("scheduler.key", &scheduler.key),
        });
        let _scheduler = Scheduler::start(&plane, SCHEDULER, &[config]).await;
        Self { plane, plugin, ca, scheduler, _scheduler }
    }

    /// The namespace of the agents.
    pub(crate) async fn agents(&self) -> Space<'_> {
        Space::named(&self.plane, "windlass").await
    }

    /// Asks for a size of the VM `vm` of a test, with this token; the status, and the words of a refusal.
    fn permit(&self, vms: &Vms<'_>, token: &str, size: u64) -> (u16, String) {
        let pod = json!({"namespace": vms.space.name(), "name": "vm"});
        let header = if token.is_empty() {
            String::new()
        } else {
            format!("authorization: Bearer {token}\r\n")
        };
        let client = Client::new(&self.ca, None);
        let last = Some(json!({"vCPUs": 1, "mem": "1Gi"})).filter(|_| size > 1);
        let body = request(&pod, size, &last);
        let answer = client.ask(self.permits(), "POST", "/", &header, &body).unwrap();
        let words = if answer.status == 200 { String::new() } else { answer.body };
        (answer.status, words)
    }

    pub(crate) fn permits(&self) -> SocketAddr {
        self.plugin.permits.parse().unwrap()
    }

    fn extender(&self) -> SocketAddr {
        self.plugin.extender.parse().unwrap()
    }

    /// Waits until a handshake was counted and logged by this reason.
    fn until_counted(&self, reason: &str) {
        let count = format!(r#"windlass_plugin_http_refusals_total{{reason="{reason}"}} "#);
        wait::until(&count, || {
            let is_logged = self.plugin.has_logged(&["a TLS connection was refused", reason]);
            is_logged && self.plugin.metrics().contains(&count)
        });
    }
}

async fn delete(space: &Space<'_>, pod: &Pod) {
    let name = pod.metadata.name.as_deref().unwrap();
    let now = kube::api::DeleteParams { grace_period_seconds: Some(0), ..Default::default() };
    space.pods().delete(name, &now).await.unwrap();
    space.until_gone(name).await;
}
