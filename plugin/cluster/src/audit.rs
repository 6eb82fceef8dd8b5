//! Looks now and then whether the API server's objects are those that the watches told of.
//!
//! A watch that lost an event does not say so, and one that goes on from a revision that the API server does not have
//! any more, after its store was replaced by an earlier copy, is silent for ever. One page of metadata is read per
//! look and compared with what is known. Where something is off, everything is listed anew, and it is counted.

use crate::books::ClusterBooks;
use crate::connect::{ANSWERS_WITHIN, chain};
use crate::metrics::Audits;
use crate::objects::{NodeObject, PodObject};
use crate::watch::Followed;
use kube::api::ListParams;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use std::convert::Infallible;
use std::fmt::{Debug, Display};
use std::time::Duration;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};
use windlass_kit::watchdog::Pulse;
use windlass_plugin_core::pods::audit::{Audit, Looked, Page};
use windlass_protocol::VmName;

/// Between two looks.
pub const EVERY: Duration = Duration::from_secs(15);

/// Objects of a page.
const PAGE: u32 = 500;

/// What an audit needs besides the books.
pub struct Auditing {
    /// How the API server is reached.
    pub client: Client,
    /// What came of looks is counted there.
    pub audits: Audits,
    /// The watch that is looked at.
    pub followed: Followed,
    /// Between two looks: [`EVERY`], but in tests.
    pub every: Duration,
    /// Shows that the audit is alive.
    pub pulse: Pulse,
    /// Ends it.
    pub stop: CancellationToken,
}

/// Looks at the nodes until told to stop.
///
/// # Errors
/// None.
pub async fn nodes(books: ClusterBooks, auditing: Auditing) -> Result<(), Infallible> {
    let name = |_: &str, name: &str| name.to_owned();
    look::<NodeObject, _>("nodes", auditing, name, |audit, page| books.audit_nodes(audit, page))
        .await
}

/// Looks at the pods until told to stop.
///
/// # Errors
/// None.
pub async fn pods(books: ClusterBooks, auditing: Auditing) -> Result<(), Infallible> {
    let name = |namespace: &str, name: &str| VmName {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    };
    look::<PodObject, _>("pods", auditing, name, |audit, page| books.audit_pods(audit, page)).await
}

async fn look<O, K>(
    of: &'static str,
    auditing: Auditing,
    name: impl Fn(&str, &str) -> K,
    compare: impl Fn(&mut Audit<K>, Page<K>) -> Looked<K>,
) -> Result<(), Infallible>
where
    O: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
    K: Ord + Clone + Display,
{
    let Auditing { client, audits, followed, every, pulse, stop } = auditing;
    let api = Api::<O>::all(client);
    let (mut audit, mut from) = (Audit::default(), None::<String>);
    loop {
        pulse.turn("the next look at what the watch told");
        tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(()),
            () = tokio::time::sleep(every) => {}
        }
        let highest = followed.highest();
        if highest == 0 {
            continue;
        }
        pulse.turn("the API server, for a page of objects");
        let params =
            ListParams { continue_token: from.clone(), ..ListParams::default().limit(PAGE) };
        let list = match timeout(ANSWERS_WITHIN, api.list_metadata(&params)).await {
            Ok(Ok(list)) => list,
            Ok(Err(error)) => {
                debug!(of, why = chain(&error), "a page was not read");
                audits.count(of, "failed");
                // A page that begins where an old one ended is there for some minutes only.
                from = None;
                continue;
            }
            Err(_) => {
                audits.count(of, "failed");
                continue;
            }
        };
        let revision = list.metadata.resource_version.as_deref().and_then(|at| at.parse().ok());
        let objects = list.items.iter().map(|object| {
            let text = |text: &Option<String>| text.clone().unwrap_or_default();
            let meta = &object.metadata;
            let key = name(&text(&meta.namespace), &text(&meta.name));
            (key, text(&meta.resource_version))
        });
        let objects: Vec<(K, String)> = objects.collect();
        let more = list.metadata.remaining_item_count.unwrap_or(0);
        let all = from.is_none().then(|| objects.len() + usize::try_from(more).unwrap_or(0));
        let next = list.metadata.continue_.filter(|token| !token.is_empty());
        let looked = compare(&mut audit, Page { objects, all });
        let found: &'static str = if revision.is_some_and(|revision: u64| revision < highest) {
            warn!(
                of,
                highest,
                revision,
                "the API server went back to an earlier state: all is listed anew"
            );
            "back"
        } else {
            match looked {
                Looked::Same => {
                    from = next;
                    "same"
                }
                Looked::Differs => "differs",
                Looked::Off(name) => {
                    warn!(of, %name, "the watch lost an event: all is listed anew");
                    "off"
                }
                Looked::Miscounted { said, known } => {
                    warn!(of, said, known, "the watch lost an event: all is listed anew");
                    "off"
                }
            }
        };
        audits.count(of, found);
        if matches!(found, "back" | "off") {
            audit.begin();
            from = None;
            followed.list_again();
        }
    }
}
