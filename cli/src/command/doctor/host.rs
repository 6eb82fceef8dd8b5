//! The host itself: whether it answers, who may reach it, and what it says is wrong.

use super::files::Read;
use super::programs::lives;
use super::report::Check;
use crate::api::{GROUP, HostFacts, Reports, VIEW_GROUP, VmEntry, view_socket};
use crate::client::Client;
use crate::explain::{frozen, instant};
use crate::failure::Failure;
use crate::problem::Report;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use windlass_protocol::status::HostStatus;

const SERVICE: &str = "docs/host.md#the-service";

/// What a host says of itself; empty where none answers.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) facts: Option<HostFacts>,
    pub(super) state: Option<HostStatus>,
    pub(super) vms: Vec<VmEntry>,
    pub(super) problems: Reports,
    /// Why it did not answer everything.
    why: Option<String>,
}

pub(super) async fn look(client: Result<&Client, &Failure>) -> Seen {
    let mut seen = Seen::default();
    if let Ok(client) = client {
        let asked = async {
            seen.facts = Some(client.get("/v1/host").await?);
            seen.state = Some(client.get("/v1/state").await?);
            seen.vms = client.get("/v1/vms").await?;
            seen.problems = client.get("/v1/problems").await?;
            Ok::<(), Failure>(())
        };
        let answered = asked.await;
        seen.why = answered.err().map(|failure| failure.to_string());
    }
    seen
}

/// What is said of it. Of `files` it is said elsewhere what is wrong with them.
pub(super) async fn checks(
    socket: &Path,
    absent: Option<&Failure>,
    seen: &Seen,
    files: &[Read],
) -> Vec<Check> {
    let groups = std::fs::read_to_string("/etc/group").unwrap_or_default();
    let mut serves = files.iter().filter(|file| file.socket() == Some(socket));
    let unit = serves.next().map_or("windlass-host", Read::unit);
    let mut checks = Vec::new();
    if let Some(why) = absent {
        let advice = format!("`systemctl status {unit}` and `journalctl -u {unit}` say why.");
        checks.push(Check::failed(why.to_string(), &advice, "docs/errors.md#the-command-line"));
    }
    if let Some(why) = &seen.why {
        let advice = format!("`journalctl -u {unit}` says what it does.");
        checks.push(Check::failed(
            why.clone(),
            &advice,
            "docs/troubleshooting.md#the-host-does-nothing",
        ));
    }
    if let Some(facts) = &seen.facts {
        checks.push(answers(socket, facts));
        if let Ok(admin) = facts.admin.parse() {
            // An agent whose books are a plugin's knows no node.
            let is_agent = seen.state.as_ref().is_some_and(|state| state.node.is_none());
            let program = if is_agent { "windlass-agent" } else { "windlass host" };
            checks.push(lives(program, admin).await);
        }
    }
    checks.push(group(&groups, GROUP, socket, "use the command line"));
    checks.push(group(&groups, VIEW_GROUP, &view_socket(socket), "look"));
    checks.extend(seen.state.as_ref().and_then(frozen).map(|frozen| {
        Check::limited(
            frozen,
            "`windlass thaw` ends it.",
            "docs/troubleshooting.md#everything-should-stop",
        )
    }));
    let is_said = |report: &&Report| {
        files.iter().flat_map(Read::reports).any(|said| said.subject == report.subject)
    };
    checks.extend(seen.problems.iter().filter(|report| !is_said(report)).map(|report| {
        let advice = "The host goes on meanwhile; it says more in its log.";
        Check::limited(report.to_string(), advice, "docs/errors.md#while-the-host-runs")
    }));
    checks
}

fn answers(socket: &Path, facts: &HostFacts) -> Check {
    let ours = env!("CARGO_PKG_VERSION");
    let (theirs, since) = (&facts.version, instant(facts.started));
    if theirs == ours {
        return Check::good(format!(
            "windlass {ours} answers at {} since {since}",
            socket.display()
        ));
    }
    let found = format!("the host is windlass {theirs} since {since}, and this is windlass {ours}");
    Check::limited(found, "`systemctl restart windlass-host`; sizes stay meanwhile.", SERVICE)
}

/// Whether the group is there, and has its socket.
fn group(groups: &str, name: &str, socket: &Path, may: &str) -> Check {
    let fields = groups.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let line = fields.into_iter().find(|fields| fields.first() == Some(&name));
    let Some(fields) = line else {
        let found = format!("there is no group {name}: only root may {may}");
        if name == VIEW_GROUP {
            return Check::good(found);
        }
        let advice = format!("`groupadd --system {name}`, then restart the host.");
        return Check::limited(found, &advice, SERVICE);
    };
    let gid = fields.get(2).and_then(|id| id.parse::<u32>().ok());
    let members = fields.get(3).copied().unwrap_or_default();
    let members = if members.is_empty() {
        "it has no members".to_owned()
    } else {
        members.replace(',', ", ")
    };
    match std::fs::metadata(socket) {
        Ok(found) if Some(found.gid()) != gid => {
            let found = format!("{} does not belong to group {name}", socket.display());
            Check::failed(found, "The group is younger than the host: restart the host.", SERVICE)
        }
        Ok(_) | Err(_) => Check::good(format!("group {name} may {may}: {members}")),
    }
}
