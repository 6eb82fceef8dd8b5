//! The files of programs and the VM files: each by itself, and all of them together.

use super::named;
use super::report::Check;
use crate::command::configured::{Configured, Kind, text};
use crate::problem::{Problem, Report};
use std::path::{Path, PathBuf};
use windlass_agent_host::basics::Basics;
use windlass_protocol::vm_file::VmFile;
use windlass_vm_files::folder::{Folder, look};

const HOST: &str = "docs/configuration.md#hosttoml";
const VM: &str = "docs/configuration.md#vm-file";

/// What to do where the program runs in a pod.
const IN_POD: &str = "A program without `kubeconfig` runs in a pod, which has files and ports of its own: `kubectl \
    --namespace windlass get pods` says whether it runs.";

/// What a program's file and the VM files that it names say.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) path: PathBuf,
    kind: Kind,
    /// What the program's file says, or what is wrong with it.
    pub(super) config: Result<Configured, Vec<Problem>>,
    /// The VM files, where there is a folder of them.
    folder: Option<Folder>,
}

/// Reads a program's file, and the VM files in its `vms_dir`.
pub(super) fn read(path: &Path) -> Read {
    let text = text(path, None);
    let kind = Kind::of(path, text.as_deref().unwrap_or_default()).unwrap_or(Kind::Host);
    let config =
        text.map_err(|unread| vec![Problem::from(unread)]).and_then(|text| kind.read(path, &text));
    let basics = config.as_ref().ok().and_then(Configured::of_host);
    let folder = basics.map(|Basics { vms_dir, .. }| {
        let mut folder = Folder::new(vms_dir);
        folder.observe(look(vms_dir), true);
        folder
    });
    Read { path: path.to_path_buf(), kind, config, folder }
}

// === impl Read ===

impl Read {
    /// Whether people are to reach the program at a socket: `windlass host`, or windlass-agent without a cluster.
    pub(super) fn serves_people(&self) -> bool {
        match &self.config {
            Ok(config) => config.of_host().is_some(),
            Err(_) => matches!(self.kind, Kind::Host | Kind::Agent),
        }
    }

    /// What was found on this machine. Where the program runs in a pod, a failure is a limit: the pod may have what is
    /// missing here.
    pub(super) fn found_here(&self, check: Check) -> Check {
        let is_in_pod = self.config.as_ref().is_ok_and(Configured::is_in_pod);
        if is_in_pod { check.eased(IN_POD) } else { check }
    }

    /// Where the command line reaches the program, if it serves people.
    pub(super) fn socket(&self) -> Option<&Path> {
        Some(&self.config.as_ref().ok()?.of_host()?.socket)
    }

    /// Where the program keeps what survives a restart.
    pub(super) fn state_dir(&self) -> Option<&Path> {
        Some(&self.config.as_ref().ok()?.of_host()?.state_dir)
    }

    /// The service that runs the program.
    pub(super) const fn unit(&self) -> &'static str {
        match self.kind {
            Kind::Agent => "windlass-agent",
            Kind::Plugin | Kind::Books => "windlass-plugin",
            Kind::Host | Kind::Vm => "windlass-host",
        }
    }

    pub(super) fn vms(&self) -> Vec<&VmFile> {
        self.folder.iter().flat_map(Folder::valid).collect()
    }

    pub(super) fn reports(&self) -> Vec<Report> {
        self.folder.iter().flat_map(Folder::reports).collect()
    }

    /// The page with the keys of this file.
    pub(super) const fn page(&self) -> &'static str {
        match self.kind {
            Kind::Host => HOST,
            Kind::Agent => "docs/agent.md#agenttoml",
            Kind::Plugin | Kind::Books => "docs/plugin.md#plugintoml",
            Kind::Vm => VM,
        }
    }
}

/// What is said of them.
pub(super) fn checks(files: &Read) -> Vec<Check> {
    let path = files.path.display();
    let config = match &files.config {
        Ok(config) => config,
        Err(problems) => {
            let advice = match files.kind {
                Kind::Host => "An empty one will do; `windlass check --keys` lists the keys.",
                Kind::Agent | Kind::Plugin | Kind::Books | Kind::Vm => {
                    "`windlass check --keys` lists the keys."
                }
            };
            let line = |problem: &Problem| {
                Check::failed(format!("{path}: {problem}"), advice, files.page())
            };
            return problems.iter().map(line).collect();
        }
    };
    let mut checks = vec![Check::good(format!("{path} is valid"))];
    let named = named::checks(config, files.page()).into_iter();
    checks.extend(named.map(|check| files.found_here(check)));
    let Some(basics) = config.of_host() else { return checks };
    if basics.socket.as_os_str().len() > 100 {
        let found = format!("{} is a long path for a socket", basics.socket.display());
        let advice = "The one that only shows is longer still.";
        checks.push(Check::limited(found, advice, files.page()));
    }
    for report in files.reports() {
        let advice = "Correct the file; `windlass check FILE` says whether it is right.";
        checks.push(Check::failed(report.to_string(), advice, VM));
    }
    let vms = files.vms();
    let count = match vms.len() {
        0 => Check::limited(
            format!("{} holds no valid VM file", basics.vms_dir.display()),
            "`windlass vm add` adds a VM.",
            "docs/host.md#the-vm-file",
        ),
        1 => Check::good("1 VM file is valid"),
        count => Check::good(format!("{count} VM files are valid")),
    };
    checks.push(count);
    let misfits = config.misfits(&vms);
    if misfits.is_empty() {
        checks.push(Check::good("the files fit together"));
    }
    let file = if files.kind == Kind::Agent { "agent.toml" } else { "host.toml" };
    checks.extend(misfits.into_iter().map(|(vm, problem)| match vm {
        Some(vm) => Check::limited(format!("{vm}.toml: {problem}"), "", VM),
        None => Check::limited(format!("{file}: {problem}"), "", files.page()),
    }));
    checks
}
