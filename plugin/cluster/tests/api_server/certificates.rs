//! The plugin's own certificates at a real API server. Each test has a namespace of its own, with the rights that we ship.

use crate::between::Between;
use crate::plane;
use futures_util::future::join_all;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use windlass_control_plane::{Identity, Space};
use windlass_kit::admin::Readiness;
use windlass_kit::clock::Clock;
use windlass_kit::server::{Reloads, Tls};
use windlass_kit::tasks::Tasks;
use windlass_kit::watchdog::Watchdog;
use windlass_plugin_cluster::certificates::names::{BUNDLE, CLIENT, KEPT};
use windlass_plugin_cluster::certificates::{self, Certificates, Port};
use windlass_plugin_cluster::metrics::CertificateCounts;
use windlass_plugin_cluster::{Epoch, Leadership};
use windlass_testkit::log::Log;
use windlass_testkit::tls::{Ca, Valid};
use windlass_testkit::wait::until_async;

const DAY: Duration = Duration::from_secs(86_400);
const ROLE: &str = "windlass-plugin-certificates";

#[tokio::test]
async fn the_first_start_makes_certificates_and_the_next_ones_keep_them() {
    let test = Test::new().await;
    let first = test.start(leader(), Clock::system());
    first.until_shown().await;
    let made = test.until_made().await;
    assert_eq!(made.bundle, made.kept["ca.crt"]);
    assert_ne!(made.client["tls.crt"], made.kept["tls.crt"]);
    let next = test.start(leader(), Clock::system());
    next.until_shown().await;
    test.rounds().await;
    assert_eq!(test.made().await, Some(made));
    // Every right of the role was used, but that to replace, and nothing was denied.
    assert_eq!(test.between.denied(), Vec::<String>::new());
    let right = |resource: &str, verb: &str| (resource.to_owned(), verb.to_owned());
    let replaced = [right("secrets", "update"), right("configmaps", "update")];
    let granted = test.granted().await;
    let unused: BTreeSet<_> = granted.difference(&test.between.used()).cloned().collect();
    assert_eq!(unused, BTreeSet::from(replaced));
    assert!(test.between.used().is_subset(&granted));
}

#[tokio::test]
async fn a_renewal_uses_the_rest_of_the_role_and_keeps_the_ca() {
    let test = Test::new().await;
    let past = Clock::starting_at(Clock::system().now().before(DAY * 200));
    test.start(leader(), past).until_shown().await;
    let old = test.until_made().await;
    // A change of the bundle by hand is put right, too.
    test.replace_bundle("nothing").await;
    let replica = test.start(leader(), Clock::system());
    replica.until_shown().await;
    let is_renewed = async || {
        let made = test.made().await;
        made.is_some_and(|made| {
            made.kept["tls.crt"] != old.kept["tls.crt"]
                && made.client["tls.crt"] != old.client["tls.crt"]
                && made.bundle == old.bundle
        })
    };
    until_async("the certificates are renewed", is_renewed).await;
    assert_eq!(test.made().await.unwrap().kept["ca.crt"], old.kept["ca.crt"]);
    assert_eq!(test.between.denied(), Vec::<String>::new());
    assert_eq!(test.between.used(), test.granted().await);
}

#[tokio::test]
async fn two_that_write_at_once_end_with_one_ca() {
    for _ in 0..5 {
        let test = Test::new().await;
        let both = [leader(), leader()].map(|leads| test.start(leads, Clock::system()));
        join_all(both.iter().map(Replica::until_shown)).await;
        let made = test.until_made().await;
        test.rounds().await;
        assert_eq!(test.made().await, Some(made));
    }
}

#[tokio::test]
async fn a_standby_reads_what_it_shows_and_writes_nothing() {
    let test = Test::new().await;
    let standby = test.start(Leadership::standby(), Clock::system());
    test.rounds().await;
    assert!(!standby.port.tls.is_in_force());
    assert_eq!(standby.readiness.missing(), None, "an update does not wait for a leader");
    let reads = BTreeSet::from([("secrets".to_owned(), "get".to_owned())]);
    assert_eq!(test.between.used(), reads);
    let leader = test.start(leader(), Clock::system());
    leader.until_shown().await;
    standby.until_shown().await;
}

#[tokio::test]
async fn what_a_person_broke_is_told_and_made_anew() {
    let test = Test::new().await;
    let replica = test.start(leader(), Clock::system());
    replica.until_shown().await;
    let old = test.until_made().await;
    for (key, bytes) in [("tls.crt", "no certificate"), ("tls.key", &*text(&old.client["tls.key"]))]
    {
        let before = test.log.count("ERROR a certificate cannot be used");
        test.put(KEPT, key, bytes).await;
        let is_mended = async || {
            let made = test.made().await;
            made.is_some_and(|made| text(&made.kept[key]) != bytes)
        };
        until_async("the certificate is made anew", is_mended).await;
        assert_eq!(test.log.count("ERROR a certificate cannot be used"), before + 1, "{key}");
    }
    assert_eq!(test.made().await.unwrap().bundle, old.bundle, "the CA is the same");
    test.put(KEPT, "ca.key", "no key").await;
    let is_new = async || {
        let made = test.made().await;
        made.is_some_and(|made| made.bundle != old.bundle && made.bundle == made.kept["ca.crt"])
    };
    until_async("there is another CA", is_new).await;
}

#[tokio::test]
async fn a_secret_of_a_person_is_shown_and_never_written() {
    let test = Test::new().await;
    let ca = Ca::new("a person's");
    let pair = ca.signs("plugin", Valid::Now);
    let data = json!({"tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": ca.pem()});
    let secret = json!({"metadata": {"name": KEPT}, "stringData": data});
    let secret: Secret = serde_json::from_value(secret).unwrap();
    test.secrets().create(&PostParams::default(), &secret).await.unwrap();
    let replica = test.start(leader(), Clock::system());
    replica.until_shown().await;
    test.put(KEPT, "tls.key", "no key").await;
    let is_told = async || test.log.count("ERROR a certificate cannot be used") == 1;
    until_async("the log tells of it", is_told).await;
    test.rounds().await;
    let kept = test.secrets().get(KEPT).await.unwrap();
    assert_eq!(kept.data.unwrap()["tls.key"], ByteString(b"no key".to_vec()));
    assert!(replica.port.tls.is_in_force(), "the last valid pair stays in force");
    assert!(test.secrets().get_opt(CLIENT).await.unwrap().is_none(), "nothing of its own is made");
    let writes = test.between.used().iter().any(|(_, verb)| verb != "get");
    assert!(!writes);
}

/// A namespace with the rights that we ship.
struct Test<'a> {
    space: Space<'a>,
    between: Between,
    tasks: Tasks,
    /// A line that a thread without one logs first may be lost to all others.
    log: Log,
}

/// What the plugin made.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Made {
    kept: BTreeMap<String, ByteString>,
    client: BTreeMap<String, ByteString>,
    bundle: ByteString,
}

/// A plugin's part for certificates. It ends with its value.
struct Replica {
    port: Port,
    readiness: Readiness,
    stop: CancellationToken,
}

// === impl Test ===

impl<'a> Test<'a> {
    async fn new() -> Test<'a> {
        let plane = plane().await;
        let space = Space::new(plane).await;
        let (client, own, params) = (space.client().clone(), space.name(), PostParams::default());
        let mut role: Role = Api::namespaced(client.clone(), "windlass").get(ROLE).await.unwrap();
        let metadata = || serde_json::from_value(json!({"name": ROLE, "namespace": own})).unwrap();
        role.metadata = metadata();
        Api::namespaced(client.clone(), own).create(&params, &role).await.unwrap();
        let bindings: Api<RoleBinding> = Api::namespaced(client.clone(), "windlass");
        let mut binding = bindings.get(ROLE).await.unwrap();
        binding.metadata = metadata();
        Api::namespaced(client.clone(), own).create(&params, &binding).await.unwrap();
        let between = Between::new(plane.client(Identity::Plugin).await, client);
        Self { space, between, tasks: Tasks::default(), log: Log::kept() }
    }

    fn start(&self, leadership: Leadership, clock: Clock) -> Replica {
        let (tls, stop) = (Tls::awaiting(Reloads::default()), CancellationToken::new());
        let (port, readiness) = (Port { tls, asks_clients: true }, Readiness::default());
        let scheduler = Some("system:kube-scheduler".to_owned());
        let certificates = Certificates {
            client: self.between.client(),
            namespace: self.space.name().to_owned(),
            terms: certificates::terms(self.space.name(), scheduler),
            leadership,
            ports: vec![port.clone()],
            counts: CertificateCounts::default(),
            clock,
            every: Duration::from_millis(100),
            readiness: readiness.clone(),
            pulse: Watchdog::default().watch("certificates"),
            stop: stop.clone(),
        };
        self.tasks.minor("certificates", certificates::run(certificates));
        Replica { port, readiness, stop }
    }

    /// The three objects, once all of them are there.
    async fn made(&self) -> Option<Made> {
        let bundles: Api<ConfigMap> =
            Api::namespaced(self.space.client().clone(), self.space.name());
        let (kept, client, bundle) = (
            self.secrets().get_opt(KEPT).await.unwrap()?,
            self.secrets().get_opt(CLIENT).await.unwrap()?,
            bundles.get_opt(BUNDLE).await.unwrap()?,
        );
        let bundle = ByteString(bundle.data.unwrap()["ca.crt"].clone().into_bytes());
        Some(Made { kept: kept.data.unwrap(), client: client.data.unwrap(), bundle })
    }

    async fn until_made(&self) -> Made {
        until_async("all is made", async || self.made().await.is_some()).await;
        self.made().await.unwrap()
    }

    /// A person changes a Secret.
    async fn put(&self, name: &str, key: &str, text: &str) {
        let patch = json!({"stringData": {key: text}});
        let params = PatchParams::default();
        self.secrets().patch(name, &params, &Patch::Merge(patch)).await.unwrap();
    }

    async fn replace_bundle(&self, text: &str) {
        let bundles: Api<ConfigMap> =
            Api::namespaced(self.space.client().clone(), self.space.name());
        let patch = Patch::Merge(json!({"data": {"ca.crt": text}}));
        bundles.patch(BUNDLE, &PatchParams::default(), &patch).await.unwrap();
    }

    /// Waits until the objects were read several times.
    async fn rounds(&self) {
        let until = self.between.sent() + 12;
        until_async("the objects are read again", async || self.between.sent() >= until).await;
    }

    fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.space.client().clone(), self.space.name())
    }

    /// What the role grants, as resource and verb.
    async fn granted(&self) -> BTreeSet<(String, String)> {
        let client: &Client = self.space.client();
        let role: Role = Api::namespaced(client.clone(), "windlass").get(ROLE).await.unwrap();
        let mut granted = BTreeSet::new();
        for rule in role.rules.unwrap() {
            let is_create = rule.verbs == ["create"];
            assert!(is_create || rule.resource_names.is_some(), "a right without a name");
            for resource in rule.resources.unwrap() {
                granted.extend(rule.verbs.iter().map(|verb| (resource.clone(), verb.clone())));
            }
        }
        granted
    }
}

// === impl Replica ===

impl Replica {
    async fn until_shown(&self) {
        let is_shown = async || self.port.tls.is_in_force();
        until_async("a certificate is shown", is_shown).await;
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn leader() -> Leadership {
    Leadership::sole(Epoch(1))
}

fn text(bytes: &ByteString) -> String {
    String::from_utf8(bytes.0.clone()).unwrap()
}
