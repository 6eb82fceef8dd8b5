//! Shows the VMs of the cluster to people: what `windlass top`, `explain` and `check` ask with `--server`.
//!
//! | GET | answer |
//! |---|---|
//! | `/v1/vms` | all VMs, for callers who may get pods in all namespaces |
//! | `/v1/namespaces/NAMESPACE/vms` | the VMs of a namespace, for callers who may get pods there |
//! | `/v1/namespaces/NAMESPACE/vms/NAME` | the VM whose pod, or whose object, has this name |
//! | `/v1/findings`, `/v1/namespaces/NAMESPACE/findings` | what other programs do to the pods of VMs, for the same callers |
//!
//! The port is that of permits, so the caller shows a token with the plugin's audience. Nothing can be changed here, and everything else
//! is denied.

use crate::access::Access;
use crate::books::ClusterBooks;
use crate::neighbours::Neighbours;
use crate::rebuild::NotYet;
use crate::tokens::{Tokens, bearer};
use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use http::{Request, StatusCode, header};
use kube::Client;
use serde::Serialize;
use windlass_kit::clock::Clock;
use windlass_plugin_core::trust::Denied;
use windlass_protocol::VmName;

/// Shows VMs to people. Clones share what is known.
#[derive(Clone)]
pub struct Operators {
    books: ClusterBooks,
    tokens: Tokens,
    access: Access,
    neighbours: Neighbours,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked<'a> {
    All,
    Of(&'a str),
    One(&'a str, &'a str),
    /// What other programs do to the VMs of a namespace, or of all.
    Findings(Option<&'a str>),
}

// === impl Operators ===

impl Operators {
    /// From these books, for callers that the API server of this client knows.
    pub fn new(client: Client, clock: Clock, books: ClusterBooks, tokens: Tokens) -> Self {
        let neighbours = Neighbours::new(client.clone());
        Self { books, tokens, access: Access::new(client, clock), neighbours }
    }

    /// The answer to a person.
    ///
    /// # Errors
    /// The caller may not see that.
    pub async fn show(&self, request: &Request<Bytes>) -> Result<Response, Denied> {
        let caller = self.tokens.caller(request.headers()).await?;
        let token = bearer(request.headers()).ok_or(Denied::NoToken)?;
        let Some(asked) = Asked::at(request.uri().path()) else {
            return Ok(text(StatusCode::NOT_FOUND, "nothing is shown at this path"));
        };
        self.access.may_see(&caller, token, asked.namespace()).await?;
        let views = match asked {
            Asked::All => self.books.views(None),
            Asked::Of(namespace) => self.books.views(Some(namespace)),
            Asked::One(namespace, name) => {
                self.books.views_of(&VmName { namespace: namespace.into(), name: name.into() })
            }
            Asked::Findings(namespace) => {
                return Ok(match self.books.neighbourhood() {
                    Ok(nodes) => match self.neighbours.look(namespace, nodes).await {
                        Ok(findings) => json(&findings),
                        Err(why) => text(
                            StatusCode::SERVICE_UNAVAILABLE,
                            &format!("the API server does not say what else runs: {why}"),
                        ),
                    },
                    Err(not_yet) => text(StatusCode::SERVICE_UNAVAILABLE, words(not_yet)),
                });
            }
        };
        Ok(match (views, asked) {
            (Ok(views), Asked::One(namespace, name)) if views.vms.is_empty() => {
                let words = format!("no VM {namespace}/{name} is on a node");
                text(StatusCode::NOT_FOUND, &words)
            }
            (Ok(views), _) => json(&views),
            (Err(not_yet), _) => text(StatusCode::SERVICE_UNAVAILABLE, words(not_yet)),
        })
    }
}

// === impl Asked ===

impl<'a> Asked<'a> {
    fn at(path: &'a str) -> Option<Self> {
        let is_name = |part: &str| {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
            !part.is_empty() && part.len() <= 253 && part.chars().all(is_plain)
        };
        let parts: Vec<&str> = path.split('/').take(7).collect();
        let asked = match parts.as_slice() {
            ["", "v1", "vms"] => Self::All,
            ["", "v1", "namespaces", namespace, "vms"] => Self::Of(namespace),
            ["", "v1", "findings"] => Self::Findings(None),
            ["", "v1", "namespaces", namespace, "findings"] => Self::Findings(Some(namespace)),
            ["", "v1", "namespaces", namespace, "vms", name] => Self::One(namespace, name),
            _ => return None,
        };
        let names = match asked {
            Self::All => [None, None],
            Self::Of(namespace) => [Some(namespace), None],
            Self::Findings(namespace) => [namespace, None],
            Self::One(namespace, name) => [Some(namespace), Some(name)],
        };
        names.into_iter().flatten().all(is_name).then_some(asked)
    }

    const fn namespace(self) -> Option<&'a str> {
        match self {
            Self::All => None,
            Self::Findings(namespace) => namespace,
            Self::Of(namespace) | Self::One(namespace, _) => Some(namespace),
        }
    }
}

const fn words(not_yet: NotYet) -> &'static str {
    match not_yet {
        NotYet::NotLeading => {
            "this plugin stands by: ask the one that leads, which the Service windlass-plugin reaches \
             (its pod has the label windlass.dev/role=leader)"
        }
        NotYet::TakingOver | NotYet::NotRebuilt => {
            "this plugin begins to lead and has not read the cluster yet: ask again in some seconds"
        }
    }
}

fn json(shown: &impl Serialize) -> Response {
    match serde_json::to_vec(shown) {
        Ok(body) => {
            let json = [(header::CONTENT_TYPE, "application/json")];
            (json, Body::from(body)).into_response()
        }
        Err(_) => text(StatusCode::INTERNAL_SERVER_ERROR, "the answer cannot be written"),
    }
}

fn text(status: StatusCode, words: &str) -> Response {
    let plain = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
    (status, plain, format!("{words}\n")).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_says_what_is_asked_for_and_anything_else_is_nothing() {
        for (path, asked) in [
            ("/v1/vms", Some(Asked::All)),
            ("/v1/namespaces/a/vms", Some(Asked::Of("a"))),
            ("/v1/namespaces/a/vms/db.1", Some(Asked::One("a", "db.1"))),
            ("/v1/namespaces//vms", None),
            ("/v1/namespaces/a/vms/", None),
            ("/v1/namespaces/a/vms/b/c", None),
            ("/v1/namespaces/a%2fb/vms", None),
            ("/v1/findings", Some(Asked::Findings(None))),
            ("/v1/namespaces/a/findings", Some(Asked::Findings(Some("a")))),
            ("/v1/namespaces//findings", None),
            ("/v1/vms/", None),
            ("/log-level", None),
            ("/", None),
        ] {
            assert_eq!(Asked::at(path), asked, "{path}");
        }
    }
}
