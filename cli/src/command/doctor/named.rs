//! The files that a program's file names: by what it knows its plugin, what its ports show, how it reaches the API server.
//!
//! They are read by the code by which the program reads them. What this user may not read, the program may.

use super::report::Check;
use crate::command::configured::Configured;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;
use windlass_agent_config::config::AgentConfig;
use windlass_kit::client::Trust;
use windlass_kit::server::{Reloads, Tls, TlsFiles};
use windlass_plugin_config::config::PluginConfig;
use windlass_plugin_config::kubernetes::{TlsPaths, TlsSource};

/// The key of a folder; the others are of files.
const PODS_DIR: &str = "kubernetes.pods_dir";

/// What is said of them; `page` has the keys of the program's file.
pub(super) fn checks(config: &Configured, page: &'static str) -> Vec<Check> {
    let (named, unusable) = match config {
        Configured::Agent(config) => (of_agent(config), untrusted(config)),
        Configured::Plugin(config) => (of_plugin(config), unshown(config)),
        Configured::Host(_) | Configured::Vms => return Vec::new(),
    };
    let unread = |(key, path): &(&str, &Path)| {
        let looked = look(path, *key == PODS_DIR);
        looked.err().map(|error| unread(key, path, &error, page))
    };
    let mut checks: Vec<Check> = named.iter().filter_map(unread).collect();
    if !checks.is_empty() || named.is_empty() {
        return checks;
    }
    checks.push(match unusable {
        Some(why) => Check::failed(why, "The program does not start with this file.", page),
        None => {
            let keys: Vec<&str> = named.iter().map(|(key, _)| *key).collect();
            Check::good(format!("{} can be used", keys.join(", ")))
        }
    });
    checks
}

fn of_agent(config: &AgentConfig) -> Vec<(&'static str, &Path)> {
    let kubernetes = config.kubernetes.as_ref();
    let named = [
        ("plugin_ca", config.trust.ca.as_deref()),
        ("plugin_token", config.trust.token.as_deref()),
        ("kubernetes.kubeconfig", kubernetes.and_then(|of| of.kubeconfig.as_deref())),
        (PODS_DIR, kubernetes.and_then(|of| of.pods_dir.as_deref())),
    ];
    named.into_iter().filter_map(|(key, path)| Some((key, path?))).collect()
}

fn of_plugin(config: &PluginConfig) -> Vec<(&'static str, &Path)> {
    let Some(kubernetes) = config.kubernetes.as_deref() else { return Vec::new() };
    let tls = match &kubernetes.tls {
        Some(TlsSource::Files(paths)) => Some(paths),
        Some(TlsSource::Own) | None => None,
    };
    let named = [
        ("kubernetes.tls.certificate", tls.map(|tls| &*tls.certificate)),
        ("kubernetes.tls.key", tls.map(|tls| &*tls.key)),
        ("kubernetes.tls.client_ca", tls.and_then(|tls| tls.client_ca.as_deref())),
        ("kubernetes.kubeconfig", kubernetes.kubeconfig.as_deref()),
    ];
    named.into_iter().filter_map(|(key, path)| Some((key, path?))).collect()
}

/// Why the agent cannot know its plugin by these files.
fn untrusted(config: &AgentConfig) -> Option<String> {
    let error = Trust::load(config.trust_files()?).err()?;
    Some(format!("plugin_{}: {error}", error.file.as_str()))
}

/// Why the plugin's ports cannot show what is in these files.
fn unshown(config: &PluginConfig) -> Option<String> {
    let Some(TlsSource::Files(paths)) = config.kubernetes.as_ref()?.tls.clone() else {
        return None;
    };
    let TlsPaths { certificate, key, client_ca } = paths;
    let error = Tls::load(TlsFiles { certificate, key, client_ca }, Reloads::default()).err()?;
    Some(format!("kubernetes.tls.{}: {error}", error.file.as_str()))
}

fn look(path: &Path, is_folder: bool) -> io::Result<()> {
    match File::open(path)?.metadata()?.is_dir() {
        is_dir if is_dir == is_folder => Ok(()),
        true => Err(ErrorKind::IsADirectory.into()),
        false => Err(ErrorKind::NotADirectory.into()),
    }
}

fn unread(key: &str, path: &Path, error: &io::Error, page: &'static str) -> Check {
    let named = format!("{key} = {}", path.display());
    if error.kind() == ErrorKind::PermissionDenied {
        let advice = "As root `windlass doctor` says whether the program can use it.";
        return Check::limited(format!("{named}: this user may not read it"), advice, page);
    }
    let found = if error.kind() == ErrorKind::NotFound {
        format!("{named} is not there")
    } else {
        format!("{named}: {error}")
    };
    Check::failed(found, "Is this the right path?", page)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::doctor::report::Report;

    #[test]
    fn what_this_user_may_not_read_is_no_failure() {
        let is_failure = |kind: ErrorKind| {
            let check = unread("plugin_token", Path::new("/token"), &kind.into(), "");
            let mut report = Report::default();
            report.add("files", vec![check]);
            report.has_failed()
        };
        assert!(!is_failure(ErrorKind::PermissionDenied));
        assert!(is_failure(ErrorKind::NotFound) && is_failure(ErrorKind::IsADirectory));
    }
}
