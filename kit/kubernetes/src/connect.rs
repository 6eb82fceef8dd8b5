//! The client of the API server.

use kube::client::ClientBuilder;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use std::fmt;
use std::path::Path;
use std::time::Duration;
use thiserror::Error;
use tokio::time::timeout;
use tower::util::MapFutureLayer;
use windlass_protocol::timing::{API_SERVER_BEGINS, WATCH_SILENT};

/// Why there is no client.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// The kubeconfig cannot be used.
    #[error("kubernetes.kubeconfig: {path}: {why}")]
    Kubeconfig {
        /// The file.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// Neither a kubeconfig nor a service account is there.
    #[error(
        "kubernetes: no kubeconfig is named, and this process has no service account of a pod: {0}"
    )]
    NoAccount(String),
    /// The client cannot be made of what was found.
    #[error("kubernetes: the client of the API server cannot be made: {0}")]
    Client(String),
}

/// Reads how the API server is reached: from this kubeconfig, or else from the service account of the pod that the
/// process runs in. No connection is made yet.
///
/// # Errors
/// What is missing or wrong.
pub async fn connect(kubeconfig: Option<&Path>) -> Result<Client, ConnectError> {
    let mut config = match kubeconfig {
        Some(path) => of_file(path).await?,
        None => Config::incluster().map_err(|error| ConnectError::NoAccount(chain(&error)))?,
    };
    // A write that the client sends again by itself would make the outcome of the first a guess. Each part of a process
    // tries its own requests again.
    config.default_retry = false;
    (config.read_timeout, config.reset_reader_on_write) = (Some(WATCH_SILENT), true);
    let builder = ClientBuilder::try_from(config);
    let builder = builder.map_err(|error| ConnectError::Client(chain(&error)))?;
    let begins = MapFutureLayer::new(|answer| async {
        // A watch that has begun is silent for as long as nothing happens.
        timeout(API_SERVER_BEGINS, answer).await.unwrap_or_else(|_| Err(NotBegun.into()))
    });
    Ok(builder.with_layer(&begins).build())
}

/// An answer has not begun in time.
#[derive(Debug, Error)]
#[error("no answer began within 10s")]
struct NotBegun;

async fn of_file(path: &Path) -> Result<Config, ConnectError> {
    let wrong = |why: String| ConnectError::Kubeconfig { path: path.display().to_string(), why };
    let file = Kubeconfig::read_from(path).map_err(|error| wrong(chain(&error)))?;
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await;
    config.map_err(|error| wrong(chain(&error)))
}

/// Why a request had no success.
pub enum Failed {
    /// The API server refused it, or it was not reached.
    Error(kube::Error),
    /// There was no answer within this time.
    Late(Duration),
}

// === impl Failed ===

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error(error) => f.write_str(&chain(error)),
            Self::Late(limit) => write!(f, "not within {}s", limit.as_secs()),
        }
    }
}

/// The answer of the API server, if it comes within this time.
pub async fn within<T>(
    limit: Duration,
    request: impl Future<Output = kube::Result<T>>,
) -> Result<T, Failed> {
    match timeout(limit, request).await {
        Ok(answer) => answer.map_err(Failed::Error),
        Err(_) => Err(Failed::Late(limit)),
    }
}

/// An error with its causes, each once, without line breaks.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut said = error.to_string();
    for cause in std::iter::successors(error.source(), |error| error.source()) {
        let cause = cause.to_string();
        if !said.contains(&cause) {
            said = format!("{said}: {cause}");
        }
    }
    said.replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::Pod;
    use kube::Api;
    use kube::api::ListParams;
    use tokio::net::TcpListener;
    use tokio::time::Instant;
    use windlass_testkit::Folder;

    #[tokio::test(start_paused = true)]
    async fn a_list_that_nobody_answers_ends_soon() {
        // It takes connections and says nothing.
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let folder = Folder::create().unwrap();
        let url = format!("http://{}", silent.local_addr().unwrap());
        let config = serde_json::json!({
            "clusters": [{"name": "a", "cluster": {"server": url}}],
            "users": [{"name": "a", "user": {}}],
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
            "current-context": "a",
        });
        let path = folder.put("kubeconfig", config.to_string());
        let pods: Api<Pod> = Api::all(connect(Some(&path)).await.unwrap());
        let began = Instant::now();
        let error = pods.list(&ListParams::default()).await.unwrap_err();
        assert!(chain(&error).contains("no answer began within 10s"), "{}", chain(&error));
        assert_eq!(began.elapsed().as_secs(), 10);
    }
}
