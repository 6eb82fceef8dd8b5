//! A `windlass-plugin` of the benchmark's own that follows an API server.

use crate::program::{Program, beside};
use crate::tls::Files;
use crate::wire::{self, Line};
use anyhow::{Context, Result, ensure};
use serde_json::json;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use windlass_lab::Folder;

/// However busy the machine is.
const PATIENCE: Duration = Duration::from_secs(120);

/// Where the API server is.
pub(crate) enum Api {
    /// One that is played, and knows no callers.
    Played(SocketAddr),
    /// By this kubeconfig.
    File(PathBuf),
}

/// What it shows those who ask it for permits.
pub(crate) enum Shows<'a> {
    /// Nothing: it is asked without TLS alone.
    Nothing,
    /// This certificate.
    Files(&'a Files),
    /// What it makes itself, as it ships, for the agents of VMs of NeonVM.
    Own,
}

/// A running plugin. It ends with this value.
pub(crate) struct ClusterPlugin {
    pub(crate) program: Program,
    pub(crate) extender: SocketAddr,
    /// Where whoever reaches it asks.
    pub(crate) plain_permits: SocketAddr,
    /// Where agents ask that show a token; only with a certificate.
    pub(crate) permits: Option<SocketAddr>,
    /// How long it took to list everything.
    pub(crate) listed: Duration,
}

// === impl ClusterPlugin ===

impl ClusterPlugin {
    /// Starts one by this command, if there is one, and waits until it answers.
    pub(crate) async fn start(by: &[&str], api: &Api, shows: Shows<'_>) -> Result<Self> {
        let begun = Instant::now();
        let folder = Folder::create()?;
        let kubeconfig = match api {
            Api::Played(server) => played(&folder, *server)?,
            Api::File(file) => file.clone(),
        };
        let free = "\"127.0.0.1:0\"";
        let mut text = format!(
            "dump_state = {free}\nadmin = {free}\n\
             [kubernetes]\nkubeconfig = {:?}\nlease = {{ enabled = false }}\n\
             plain_permits = {free}\nplain_extender = true\nextender = {free}\n",
            kubeconfig.display().to_string()
        );
        match shows {
            Shows::Nothing => {}
            Shows::Files(Files { certificate, key, .. }) => text.push_str(&format!(
                "permits = {free}\ntls = {{ certificate = {:?}, key = {:?} }}\n",
                certificate.display().to_string(),
                key.display().to_string()
            )),
            Shows::Own => text.push_str(&format!("permits = {free}\nneonvm = true\n")),
        }
        let binary = beside("windlass-plugin")?;
        let words: Vec<&Path> = by.iter().map(Path::new).chain([binary.as_path()]).collect();
        let mut program = Program::run(words[0], &words[1..], folder, &text)?;
        program.until("addresses", |program| program.log().contains("\nready\n").then_some(()))?;
        let log = program.log();
        let find = |what: &str| {
            let at = log.lines().find_map(|line| line.strip_prefix(what));
            at.map(|at| at.parse::<SocketAddr>().with_context(|| at.to_owned())).transpose()
        };
        let at = |what: &str| find(what)?.with_context(|| format!("no {what}\n{log}"));
        let admin = at("admin http://")?;
        while Line::to(admin).await?.ask(&wire::request("GET", "/readyz", "")).await?.status != 200
        {
            program.check()?;
            ensure!(begun.elapsed() < PATIENCE, "it is not ready\n{}", program.log());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(Self {
            extender: at("extender http://")?,
            plain_permits: at("plain permits http://")?,
            permits: find("permits https://")?,
            listed: begun.elapsed(),
            program,
        })
    }
}

/// The kubeconfig of an API server that is played.
fn played(folder: &Folder, server: SocketAddr) -> Result<PathBuf> {
    let kubeconfig = folder.path().join("kubeconfig");
    let cluster = json!({"name": "it", "cluster": {"server": format!("http://{server}")}});
    let context = json!({"name": "it", "context": {"cluster": "it", "user": "it"}});
    let said = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "it", "clusters": [cluster],
        "contexts": [context], "users": [{"name": "it", "user": {}}],
    });
    std::fs::write(&kubeconfig, said.to_string())?;
    Ok(kubeconfig)
}
