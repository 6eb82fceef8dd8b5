//! One plugin leads by a Lease, and the others stand by.

use crate::between::Fate;
use crate::plane;
use crate::plugin::Plugin;
use futures_util::future::{Either, join, select};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::rbac::v1::Role;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use std::collections::BTreeSet;
use std::pin::{Pin, pin};
use std::time::Instant;
use tokio_util::sync::CancellationToken;
use windlass_kit::watchdog::Watchdog;
use windlass_plugin_cluster::books::ClusterBooks;
use windlass_plugin_cluster::lease::LostLease;
use windlass_plugin_cluster::metrics::Leases;
use windlass_plugin_cluster::rebuild::NotYet;
use windlass_plugin_cluster::role::{self, OwnPod};
use windlass_plugin_cluster::{Election, Epoch, Leadership};
use windlass_testkit::wait;

const NAMESPACE: &str = "windlass";
const NAME: &str = "windlass-plugin";
const LABEL: &str = "windlass.dev/role";

#[tokio::test]
async fn one_plugin_leads_at_a_time_and_uses_the_rights_of_its_role() {
    let plane = plane().await;
    let standby = Leadership::standby;
    Plugin::led_by(plane, standby(), async |first| {
        Plugin::led_by(plane, standby(), async |second| {
            Plugin::led_by(plane, standby(), async |third| {
                tell_of(first, second, third).await;
            })
            .await;
        })
        .await;
    })
    .await;
}

async fn tell_of(first: &Plugin<'_>, second: &Plugin<'_>, third: &Plugin<'_>) {
    let node = first.node().await;
    let stop = CancellationToken::new();
    // The Lease is one of those that we ship, so it is taken at once.
    let leads = beside(run(first, "first", &stop), first.answers()).await;
    let epoch = first.books.serves().unwrap();

    let second_runs = run(second, "second", &CancellationToken::new());
    let third_runs = run(third, "third", &CancellationToken::new());
    let (mut leads, mut second_runs, mut third_runs) =
        (Box::pin(leads), Box::pin(second_runs), Box::pin(third_runs));
    let stands_by = async {
        let pod = first.vm("vm", 3).await;
        until_known(second, &node).await;
        assert_eq!(second.books.serves(), Err(NotYet::NotLeading));
        let refused = "this plugin does not lead: another one may hold the lease";
        assert_eq!(second.bind(&pod, &node).await, refused);
        assert_eq!(first.bind(&pod, &node).await, "");
    };
    let all = select(&mut leads, select(&mut second_runs, &mut third_runs));
    beside_none(all, stands_by).await;

    // Told to end: the second or the third leads at once.
    stop.cancel();
    let released = Instant::now();
    assert!(leads.await.is_ok());
    assert_eq!(first.books.serves(), Err(NotYet::NotLeading));
    let mut next = None;
    let begins = async {
        let answers = async || {
            next = [second, third].into_iter().position(|it| it.books.serves().is_ok());
            next.is_some()
        };
        wait::until_async("another leads", answers).await;
    };
    beside_none(select(&mut second_runs, &mut third_runs), begins).await;
    let seconds = released.elapsed().as_secs_f64();
    assert!(seconds < 10.0, "the lease was free: {seconds}");
    let (leader, other, mut leader_runs, mut other_runs) = match next {
        Some(0) => (second, third, second_runs, third_runs),
        _ => (third, second, third_runs, second_runs),
    };
    let Epoch(next) = leader.books.serves().unwrap();
    assert_eq!(next, epoch.0 + 1);
    let labelled = beside_none(select(&mut leader_runs, &mut other_runs), labels(leader));
    labelled.await;

    // An operator deletes the Lease: its holder ends, and the other waits until it has.
    let leases: Api<Lease> = Api::namespaced(first.space.client().clone(), NAMESPACE);
    let deleted = Instant::now();
    leases.delete(NAME, &DeleteParams::default()).await.unwrap();
    let lost = beside_none(&mut other_runs, &mut leader_runs).await;
    assert!(matches!(lost, Err(LostLease::Gone)), "{lost:?}");
    assert_eq!(leader.books.serves(), Err(NotYet::NotLeading));
    beside_none(&mut other_runs, other.answers()).await;
    let seconds = deleted.elapsed().as_secs_f64();
    assert!(seconds > 14.0, "{seconds}");
    assert_eq!(other.books.serves(), Ok(Epoch(next + 1)));

    let plugins = [first, second, third];
    let used: BTreeSet<_> = plugins.iter().flat_map(|it| it.between.used()).collect();
    let of_leases = used.into_iter().filter(|(resource, _)| resource == "leases").collect();
    assert_eq!(granted(first).await, of_leases);
    assert_eq!(plugins.map(|it| it.between.denied()), [const { Vec::<String>::new() }; 3]);
}

/// The leader's pod has the label, and a pod that has it of an earlier leader loses it.
async fn labels(leader: &Plugin<'_>) {
    let space = &leader.space;
    for name in ["earlier", "own"] {
        space.pod(name, json!({"cpu": "1"}), json!({"schedulerName": "none"})).await;
    }
    let own = |name: &str| OwnPod {
        client: leader.between.client(),
        namespace: space.name().to_owned(),
        name: name.to_owned(),
        label: (LABEL.to_owned(), "leader".to_owned()),
    };
    for name in ["earlier", "own"] {
        let pulse = Watchdog::default().watch("role");
        let runs = role::run(own(name), leader.books.clone(), pulse, CancellationToken::new());
        let labelled = |pod: &k8s_openapi::api::core::v1::Pod| {
            pod.labels().get(LABEL).is_some_and(|value| value == "leader")
        };
        beside_none(pin!(runs), space.until_pod(name, "labelled", labelled)).await;
    }
    space.until_pod("earlier", "without the label", |pod| !pod.labels().contains_key(LABEL)).await;
}

#[tokio::test]
async fn a_leader_whose_lease_ends_while_it_binds_sends_no_binding() {
    Plugin::beside(plane().await, async |plugin| {
        let (node, pod) = (plugin.node().await, plugin.vm("vm", 3).await);
        let leadership = plugin.books.leadership().clone();
        plugin.between.on_next_read(move || leadership.resign());
        let error = plugin.bind(&pod, &node).await;
        assert!(error.contains("does not lead"), "{error}");
        assert_eq!((plugin.place_of(&pod).await, plugin.open(&node)), (None, 0));
        assert!(!plugin.between.used().contains(&("pods/binding".to_owned(), "create".to_owned())));
    })
    .await;
}

#[tokio::test]
async fn a_lease_is_released_when_no_request_of_its_holder_is_under_way() {
    Plugin::led_by(plane().await, Leadership::standby(), async |plugin| {
        let stop = CancellationToken::new();
        let (leases, mut runs) = leads(plugin, &stop).await;

        let (node, pod) = (plugin.node().await, plugin.vm("vm", 3).await);
        plugin.between.next_binding(Fate::IsHeldUp);
        let (bound, told) = (plugin.bind(&pod, &node), async {
            let is_sent = async || plugin.open(&node) == 1;
            wait::until_async("the binding is sent", is_sent).await;
            stop.cancel();
            let resigned = async || plugin.books.serves().is_err();
            wait::until_async("it answers no more", resigned).await;
            assert!(holder(&leases).await.starts_with("own_"), "a binding is under way");
            plugin.between.let_go();
        });
        let (error, ()) = beside_none(&mut runs, join(bound, told)).await;
        assert_eq!(error, "");
        assert!(runs.await.is_ok());
        assert_eq!(holder(&leases).await, "");
    })
    .await;
}

/// A request ends by its deadline long before the lease is released, unless its process could not run meanwhile.
#[tokio::test]
async fn a_lease_is_kept_where_a_request_of_its_holder_stays_under_way() {
    Plugin::led_by(plane().await, Leadership::standby(), async |plugin| {
        let stop = CancellationToken::new();
        let (leases, runs) = leads(plugin, &stop).await;
        let request = plugin.books.leadership().act().expect("it leads");
        stop.cancel();
        assert!(runs.await.is_ok());
        assert!(holder(&leases).await.starts_with("own_"));
        drop(request);
    })
    .await;
}

/// Has a plugin lead by a Lease of its own namespace: that Lease, and the election, of a process that ends with `stop`.
async fn leads(
    plugin: &Plugin<'_>,
    stop: &CancellationToken,
) -> (Api<Lease>, Pin<Box<impl Future<Output = Result<(), LostLease>> + use<>>>) {
    let (client, space) = (plugin.space.client().clone(), plugin.space.name());
    let leases: Api<Lease> = Api::namespaced(client.clone(), space);
    let mut lease = Lease::default();
    lease.metadata.name = Some(NAME.to_owned());
    leases.create(&PostParams::default(), &lease).await.expect("a lease");
    let runs = elect(plugin, Election::new(client, space, NAME, "own"), stop);
    (leases, beside(runs, plugin.answers()).await)
}

/// Who holds this Lease.
async fn holder(leases: &Api<Lease>) -> String {
    let spec = leases.get(NAME).await.expect("the lease").spec.unwrap_or_default();
    spec.holder_identity.unwrap_or_default()
}

/// An election in the Lease that we ship, of a process that ends with `stop`.
fn run(
    plugin: &Plugin<'_>,
    process: &str,
    stop: &CancellationToken,
) -> impl Future<Output = Result<(), LostLease>> + use<> {
    elect(plugin, Election::new(plugin.between.client(), NAMESPACE, NAME, process), stop)
}

/// An election for the books of this plugin, until `stop`.
fn elect(
    plugin: &Plugin<'_>,
    election: Election,
    stop: &CancellationToken,
) -> impl Future<Output = Result<(), LostLease>> + use<> {
    let books: ClusterBooks = plugin.books.clone();
    let pulse = Watchdog::default().watch("lease");
    election.run(books, Leases::default(), pulse, stop.clone())
}

/// Runs something until something else is done, and gives it back.
async fn beside<R: Future>(runs: R, done: impl Future<Output = ()>) -> Pin<Box<R>>
where
    R::Output: std::fmt::Debug,
{
    let mut runs = Box::pin(runs);
    beside_none(&mut runs, done).await;
    runs
}

/// Runs something that does not end until something else is done.
async fn beside_none<T>(runs: impl Future + Unpin, done: impl Future<Output = T>) -> T {
    match select(runs, pin!(done)).await {
        Either::Left(_) => panic!("an election ended"),
        Either::Right((done, _)) => done,
    }
}

async fn until_known(plugin: &Plugin<'_>, node: &str) {
    let is_known = async || plugin.knows(node);
    wait::until_async("the standby knows the node", is_known).await;
}

/// What the Role grants, as resource and verb.
async fn granted(plugin: &Plugin<'_>) -> BTreeSet<(String, String)> {
    let roles: Api<Role> = Api::namespaced(plugin.space.client().clone(), NAMESPACE);
    let rules = roles.get("windlass-plugin").await.unwrap().rules.unwrap();
    let pairs = rules.into_iter().flat_map(|rule| {
        assert_eq!(rule.api_groups.unwrap(), ["coordination.k8s.io"]);
        let verbs = rule.verbs;
        let all = rule.resources.unwrap().into_iter();
        all.flat_map(move |it| verbs.clone().into_iter().map(move |verb| (it.clone(), verb)))
    });
    pairs.collect()
}
