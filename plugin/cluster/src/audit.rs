//! Looks now and then whether the API server's objects are those that the watches told of.
//!
//! A watch that lost an event does not say so, and one that goes on from a revision that the API server does not have
//! any more, after its store was replaced by an earlier copy, is silent for ever. Metadata of
//! all objects is read, in pages, and compared with what is known. Where something is off, everything is listed anew, and it is counted.

use crate::books::ClusterBooks;
use crate::metrics::Audits;
use kube::api::ListParams;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use std::convert::Infallible;
use std::fmt::{Debug, Display};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};
use windlass_kit::watchdog::Pulse;
use windlass_kit_kubernetes::Followed;
use windlass_kit_kubernetes::connect::within;
use windlass_kit_kubernetes::objects::{MachineObject, NodeObject, PodObject};
use windlass_plugin_core::pods::audit::{Audit, Looked, Page};
use windlass_protocol::VmName;
use windlass_protocol::timing::API_SERVER_ANSWERS;

/// Objects of a page.
pub const PAGE: u32 = 500;

/// A pass over many pages is made less often.
const PER_PAGE: Duration = Duration::from_secs(1);

/// What an audit needs besides the books.
pub struct Auditing {
    /// How the API server is reached.
    pub client: Client,
    /// What came of looks is counted there.
    pub audits: Audits,
    /// The watch that is looked at.
    pub followed: Followed,
    /// Between two looks: [`AUDIT_EVERY`](windlass_plugin_core::pods::audit::AUDIT_EVERY), but in tests.
    pub every: Duration,
    /// Objects of a page: [`PAGE`], but in tests.
    pub page: u32,
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
    look::<PodObject, _>("pods", auditing, named, |audit, page| books.audit_pods(audit, page)).await
}

/// Looks at the objects of VMs until told to stop.
///
/// # Errors
/// None.
pub async fn objects(books: ClusterBooks, auditing: Auditing) -> Result<(), Infallible> {
    let compare = |audit: &mut Audit<VmName>, page| books.audit_objects(audit, page);
    look::<MachineObject, _>("objects", auditing, named, compare).await
}

fn named(namespace: &str, name: &str) -> VmName {
    VmName { namespace: namespace.to_owned(), name: name.to_owned() }
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
    let Auditing { client, audits, followed, every, page, pulse, stop } = auditing;
    let api = Api::<O>::all(client);
    let (mut audit, mut next_pass) = (Audit::default(), Instant::now());
    while pulse.rest("the next look at what the watch told", every, &stop).await {
        let is_pass = Instant::now() >= next_pass;
        if is_pass {
            audit.begin_pass();
        }
        let (mut from, mut pages) = (None, 0);
        // What is listed anew says all by itself.
        while !stop.is_cancelled() && followed.is_listed() {
            pulse.turn("the API server, for a page of objects");
            let highest = followed.highest();
            let params =
                ListParams { continue_token: from.clone(), ..ListParams::default().limit(page) };
            let list = match within(API_SERVER_ANSWERS, api.list_metadata(&params)).await {
                Ok(list) => list,
                Err(failed) => {
                    debug!(of, why = %failed, "a page was not read");
                    audits.count(of, "failed");
                    break;
                }
            };
            // Later pages are of the moment of the first.
            let at = list.metadata.resource_version.as_deref().and_then(|at| at.parse().ok());
            if from.is_none()
                && let Some(at) = at.filter(|at: &u64| *at < highest)
            {
                warn!(
                    of,
                    highest, at, "the API server went back to an earlier state: all is listed anew"
                );
                audits.count(of, "back");
                audit.begin();
                followed.list_again();
                break;
            }
            if !is_pass {
                break;
            }
            let objects = list.items.iter().map(|object| {
                let text = |text: &Option<String>| text.clone().unwrap_or_default();
                let meta = &object.metadata;
                let key = name(&text(&meta.namespace), &text(&meta.name));
                (key, text(&meta.resource_version))
            });
            let objects: Vec<(K, String)> = objects.collect();
            let more = list.metadata.remaining_item_count.unwrap_or(0);
            let all = from.is_none().then(|| objects.len() + usize::try_from(more).unwrap_or(0));
            let looked = compare(&mut audit, Page { objects, all });
            pages += 1;
            from = list.metadata.continue_.filter(|token| !token.is_empty());
            let what = match looked {
                Looked::Same | Looked::Differs if from.is_some() => continue,
                Looked::Same => {
                    audits.count(of, "same");
                    break;
                }
                Looked::Differs => {
                    audits.count(of, "differs");
                    break;
                }
                Looked::Off(name) => name.to_string(),
                Looked::Miscounted { said, known } => format!("{said} there, {known} known"),
            };
            warn!(of, what, "the watch lost an event: all is listed anew");
            audits.count(of, "off");
            audit.begin();
            followed.list_again();
            break;
        }
        if is_pass {
            next_pass = Instant::now() + PER_PAGE.saturating_mul(pages);
        }
    }
    Ok(())
}
