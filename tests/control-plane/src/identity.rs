//! Identities: each is a user of the API server, with groups and a token of its own.
//!
//! The tokens are in a file that the API server reads once, at its start. They are no secrets: the
//! control plane listens on the loopback interface and holds nothing.

use serde_json::json;
use std::path::{Path, PathBuf};
use windlass_testkit::Folder;

/// A user of the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// The test itself: it may do everything.
    Admin,
    /// The scheduler, with the roles that Kubernetes itself gives it.
    Scheduler,
    /// The controllers, with the role that Kubernetes itself gives them; each acts as a service account of its own.
    Controllers,
    /// The plugin's service account, `windlass-plugin` of the namespace `windlass`. It may do what the
    /// manifests say that the test applies.
    Plugin,
    /// An identity that no role is bound to.
    Stranger,
}

// === impl Identity ===

impl Identity {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Admin, Self::Scheduler, Self::Controllers, Self::Plugin, Self::Stranger];

    /// The name by which RBAC knows it.
    pub const fn user(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Scheduler => "system:kube-scheduler",
            Self::Controllers => "system:kube-controller-manager",
            Self::Plugin => "system:serviceaccount:windlass:windlass-plugin",
            Self::Stranger => "stranger",
        }
    }

    /// The groups that it is in, besides those of every user with a token.
    const fn groups(self) -> &'static str {
        match self {
            Self::Admin => "system:masters",
            Self::Plugin => "system:serviceaccounts,system:serviceaccounts:windlass",
            Self::Scheduler | Self::Controllers | Self::Stranger => "",
        }
    }

    const fn token(self) -> &'static str {
        match self {
            Self::Admin => "token-of-admin",
            Self::Scheduler => "token-of-scheduler",
            Self::Controllers => "token-of-controllers",
            Self::Plugin => "token-of-plugin",
            Self::Stranger => "token-of-stranger",
        }
    }
}

/// The API server's file of tokens.
pub(crate) fn tokens() -> String {
    let line = |who: Identity| {
        let (token, user, groups) = (who.token(), who.user(), who.groups());
        format!("{token},{user},{user},\"{groups}\"\n")
    };
    Identity::ALL.map(line).concat()
}

/// Writes the file by which a client finds an API server and is this identity; without `ca` it speaks plain text.
pub(crate) fn put_kubeconfig(
    folder: &Folder,
    who: Identity,
    url: &str,
    ca: Option<&Path>,
) -> PathBuf {
    // JSON is YAML.
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": {"server": url, "certificate-authority": ca}}],
        "users": [{"name": who.user(), "user": {"token": who.token()}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": who.user()}}],
        "current-context": "test",
    });
    folder.put(&file(who), config.to_string())
}

/// Writes a file of this name like that of the stranger, by which a client shows this token.
pub(crate) fn put_token(folder: &Folder, stranger: &Path, name: &str, token: &str) -> PathBuf {
    let stranger = std::fs::read_to_string(stranger).unwrap();
    let mut config: serde_json::Value = serde_json::from_str(&stranger).unwrap();
    config["users"][0]["user"]["token"] = token.into();
    folder.put(&format!("{name}.kubeconfig"), config.to_string())
}

/// The name of that file.
pub(crate) fn file(who: Identity) -> String {
    format!("{}.kubeconfig", who.token())
}
