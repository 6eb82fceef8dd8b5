//! The command line as a client of a cluster's plugin: `--server`.
//!
//! The plugin shows VMs over TLS to whoever may get their pods; the token is one of the API server with the plugin's audience. What fails is
//! told by the option that mends it. This links no Kubernetes client.

use crate::client::run;
use crate::failure::Failure;
use axum::http::{HeaderValue, Method, header};
use serde::de::DeserializeOwned;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::timeout;
use windlass_kit::client::{
    Ask, ClientError, Pool, TlsWay, Trust, TrustFile, TrustFiles, with_causes,
};
use windlass_protocol::neighbours::Findings;
use windlass_protocol::vm_view::{VmView, VmViews};

/// The plugin answers from memory.
const DEADLINE: Duration = Duration::from_secs(10);

/// Some thousand VMs.
const LARGEST: usize = 16 << 20;

/// Where the plugin listens, where an address names no port.
const PORT: u16 = 10296;

/// How to make a token.
const MAKE: &str =
    "kubectl create token ACCOUNT --namespace NAMESPACE --audience windlass-plugin makes one";

/// Which cluster is asked, in place of a host.
#[derive(Debug, clap::Args)]
pub(crate) struct ServerOptions {
    /// Ask the plugin of a cluster, as https://HOST:PORT, in place of this host.
    #[arg(long, value_name = "URL", env = "WINDLASS_SERVER")]
    pub(crate) server: Option<String>,
    /// Who signs the plugin's certificate, in PEM: of the ConfigMap windlass-plugin-ca.
    #[arg(long, value_name = "FILE", env = "WINDLASS_CA")]
    ca: Option<PathBuf>,
    /// A file with a token of the audience windlass-plugin; else the variable WINDLASS_TOKEN holds one.
    #[arg(long, value_name = "FILE", env = "WINDLASS_TOKEN_FILE")]
    token: Option<PathBuf>,
    /// The name in the plugin's certificate, where the way leads through `kubectl port-forward`.
    #[arg(long, value_name = "NAME", env = "WINDLASS_TLS_SERVER_NAME")]
    tls_server_name: Option<String>,
    /// The namespace of the VMs; without it those of all namespaces are listed.
    #[arg(long, short, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
}

/// A plugin that is asked.
struct Server {
    way: Pool<TlsWay>,
    token: HeaderValue,
    url: String,
}

// === impl ServerOptions ===

impl ServerOptions {
    /// Those of a command line that is not whole yet; `said` knows what stands behind an option, or else in a variable.
    pub(crate) fn of(said: impl Fn(&[&str], Option<&str>) -> Option<OsString>) -> Self {
        let text = |options: &[&str], variable| {
            said(options, variable).map(|said| said.to_string_lossy().into_owned())
        };
        Self {
            server: text(&["--server"], Some("WINDLASS_SERVER")),
            ca: said(&["--ca"], Some("WINDLASS_CA")).map(PathBuf::from),
            token: said(&["--token"], Some("WINDLASS_TOKEN_FILE")).map(PathBuf::from),
            tls_server_name: text(&["--tls-server-name"], Some("WINDLASS_TLS_SERVER_NAME")),
            namespace: text(&["--namespace", "-n"], None),
        }
    }

    /// What may stand for a VM on the command line: names in the namespace, or with that of each; none, if the plugin
    /// does not answer within this time.
    pub(crate) fn names(&self, url: &str, within: Duration) -> Vec<String> {
        let asked = self.server(url).and_then(|server| {
            let path = self.path()?;
            run(async { Ok(timeout(within, server.get::<VmViews>(&path)).await) })
        });
        let views = asked.ok().and_then(Result::ok).and_then(Result::ok);
        let name = |vm: VmView| match &self.namespace {
            None => format!("{}/{}", vm.object.namespace, vm.object.name),
            Some(_) => vm.object.name,
        };
        views.into_iter().flat_map(|views| views.vms).map(name).collect()
    }

    /// The VMs of the namespace, or of all.
    pub(crate) fn list(&self, url: &str) -> Result<VmViews, Failure> {
        self.get(url, &self.path()?)
    }

    /// Where the VMs of the namespace, or of all, are listed.
    fn path(&self) -> Result<String, Failure> {
        match &self.namespace {
            None => Ok("/v1/vms".to_owned()),
            Some(namespace) => Ok(format!("/v1/namespaces/{}/vms", part(namespace)?)),
        }
    }

    /// One VM: `NAME`, or `NAMESPACE/NAME`.
    pub(crate) fn one(&self, url: &str, vm: &str) -> Result<VmViews, Failure> {
        let (namespace, name) = match (vm.split_once('/'), &self.namespace) {
            (Some(both), _) => both,
            (None, Some(namespace)) => (namespace.as_str(), vm),
            (None, None) => ("default", vm),
        };
        self.get(url, &format!("/v1/namespaces/{}/vms/{}", part(namespace)?, part(name)?))
    }

    /// What other programs do to these VMs; nothing, where the plugin is of a release that does not look.
    pub(crate) fn findings(&self, url: &str) -> Result<Findings, Failure> {
        let path = match &self.namespace {
            None => "/v1/findings".to_owned(),
            Some(namespace) => format!("/v1/namespaces/{}/findings", part(namespace)?),
        };
        match self.get(url, &path) {
            Err(Failure::Missing(_)) => Ok(Findings::default()),
            answer => answer,
        }
    }

    fn get<T: DeserializeOwned>(&self, url: &str, path: &str) -> Result<T, Failure> {
        let server = self.server(url)?;
        run(server.get(path))
    }

    fn server(&self, url: &str) -> Result<Server, Failure> {
        let wrong = |why: &str| Failure::Usage(format!("--server {url}: {why}"));
        let rest =
            url.strip_prefix("https://").ok_or_else(|| wrong("does not begin with https://"))?;
        let (host, port) = host_and_port(rest.trim_end_matches('/'))
            .ok_or_else(|| wrong("is no https://HOST:PORT"))?;
        let ca = self.ca.clone().ok_or_else(|| {
            Failure::Usage(
                "--ca is missing: the file with ca.crt of the ConfigMap windlass-plugin-ca in the \
                 namespace of the plugin"
                    .to_owned(),
            )
        })?;
        let files = TrustFiles { ca, token: self.token.clone() };
        let trust = Trust::load(files).map_err(|error| {
            let option = match error.file {
                TrustFile::Ca => "--ca",
                TrustFile::Token => "--token",
            };
            Failure::Invalid(format!("{option} {error}"))
        })?;
        let token = match trust.authorization() {
            Some(token) => token,
            None => of_variable()?,
        };
        let name = self.tls_server_name.as_deref().unwrap_or(&host);
        let way = TlsWay::as_named(&host, port, name, trust)
            .ok_or_else(|| wrong("names no host, or --tls-server-name is no name"))?;
        Ok(Server { way: Pool::new(way, 1), token, url: url.to_owned() })
    }
}

// === impl Server ===

impl Server {
    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        let ask = Ask::new(Method::GET, path, "").with(header::AUTHORIZATION, self.token.clone());
        let answer = self.way.ask(ask.within(DEADLINE).at_most(LARGEST)).await;
        let answer = answer.map_err(|error| self.unanswered(&error))?;
        let words = answer.text();
        let said = |hint: &str| format!("{}: {words}{hint}", self.url);
        match answer.status {
            200 => serde_json::from_slice(&answer.body).map_err(|error| {
                Failure::Failed(said(&format!(": not understood (another release?): {error}")))
            }),
            401 => Err(Failure::Forbidden(said(&format!(" (--token, or WINDLASS_TOKEN: {MAKE})")))),
            403 => Err(Failure::Forbidden(said(""))),
            404 => Err(Failure::Missing(said(""))),
            status => Err(Failure::Refused(said(&format!(" (status {status})")))),
        }
    }

    fn unanswered(&self, error: &ClientError) -> Failure {
        let hint = match error {
            ClientError::Handshake(..) => {
                "; --ca is to be the plugin's CA, and the host, or --tls-server-name, a name in its certificate"
            }
            ClientError::Connect(..) => {
                "; kubectl --namespace windlass port-forward service/windlass-plugin 10296 leads there"
            }
            ClientError::NoAnswer(..)
            | ClientError::TooLarge(..)
            | ClientError::Broken(..)
            | ClientError::Path(_) => "",
        };
        Failure::Absent(format!("{}{hint}", with_causes(error)))
    }
}

fn of_variable() -> Result<HeaderValue, Failure> {
    let token = std::env::var("WINDLASS_TOKEN").unwrap_or_default();
    if token.trim().is_empty() {
        let words = format!("--token is missing, and WINDLASS_TOKEN is empty: {MAKE}");
        return Err(Failure::Usage(words));
    }
    let mut value = HeaderValue::try_from(format!("Bearer {}", token.trim()))
        .map_err(|_| Failure::Usage("WINDLASS_TOKEN holds no token".to_owned()))?;
    value.set_sensitive(true);
    Ok(value)
}

/// `HOST`, `HOST:PORT` or `[ADDRESS]:PORT`.
fn host_and_port(text: &str) -> Option<(String, u16)> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && !port.ends_with(']') => {
            (host, port.parse().ok().filter(|port| *port != 0)?)
        }
        Some(_) | None => (text, PORT),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | ':');
    let fits = !host.is_empty() && host.chars().all(is_plain);
    fits.then(|| (host.to_owned(), port))
}

/// A part of a path.
fn part(text: &str) -> Result<&str, Failure> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    if text.is_empty() || !text.chars().all(is_plain) {
        return Err(Failure::Usage(format!(
            "`{text}` is no name of a VM or a namespace: letters, digits, `-` and `.` only"
        )));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_or_wrong_is_named_by_its_option() {
        let folder = windlass_testkit::Folder::create().unwrap();
        let (odd, absent) = (folder.put("odd.pem", "no certificate"), folder.at("absent"));
        for (url, ca, words) in [
            ("http://plugin:1", None, "--server http://plugin:1: does not begin with https://"),
            ("https://plugin:x", None, "--server https://plugin:x: is no https://HOST:PORT"),
            ("https://plugin", None, "--ca is missing: the file with ca.crt of the ConfigMap"),
            ("https://plugin", Some(odd), "odd.pem: must hold a certificate in PEM"),
            ("https://plugin", Some(absent), "absent: "),
        ] {
            let options = ServerOptions {
                server: Some(url.to_owned()),
                ca,
                token: None,
                tls_server_name: None,
                namespace: None,
            };
            let failure = options.list(url).unwrap_err().to_string();
            assert!(failure.contains(words), "{failure}");
        }
    }

    #[test]
    fn a_server_has_a_host_and_perhaps_a_port() {
        for (text, parts) in [
            ("plugin", Some(("plugin", 10296))),
            ("127.0.0.1:1", Some(("127.0.0.1", 1))),
            ("[::1]:2", Some(("::1", 2))),
            ("[::1]", Some(("::1", 10296))),
            ("plugin:0", None),
            ("plugin:x", None),
            ("a/b", None),
            ("", None),
        ] {
            let parts = parts.map(|(host, port)| (host.to_owned(), port));
            assert_eq!(host_and_port(text), parts, "{text}");
        }
    }
}
