//! host.toml and the VM files: each by itself, and all of them together.

use super::report::Check;
use crate::host::config::HostConfig;
use crate::host::room::Machine;
use crate::host::together::misfits;
use crate::problem::Problem;
use std::path::Path;
use windlass_kit::config::read_text;
use windlass_protocol::Resources;
use windlass_protocol::vm_file::VmFile;
use windlass_vm_files::folder::{Folder, look};

const HOST: &str = "docs/configuration.md#hosttoml";
const VM: &str = "docs/configuration.md#vm-file";

/// What the files say.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) machine: Machine,
    /// host.toml, or what is wrong with it.
    pub(super) config: Result<HostConfig, Vec<Problem>>,
    /// The VM files, where there is a folder of them.
    pub(super) folder: Option<Folder>,
}

/// Reads host.toml, and the VM files in its `vms_dir`.
pub(super) fn read(config: &Path) -> Read {
    let config = read_text(config)
        .map_err(|unread| vec![Problem::from(unread)])
        .and_then(|text| HostConfig::from_text(&text));
    let folder = config.as_ref().ok().map(|config| {
        let mut folder = Folder::new(&config.vms_dir);
        folder.observe(look(&config.vms_dir), true);
        folder
    });
    Read { machine: Machine::here(), config, folder }
}

// === impl Read ===

impl Read {
    /// What may be reserved for VMs.
    pub(super) fn room(&self) -> Option<Resources> {
        self.machine.room(self.config.as_ref().ok()?.node).ok()
    }

    /// The VM files that are valid.
    pub(super) fn vms(&self) -> Vec<&VmFile> {
        self.folder.iter().flat_map(Folder::valid).collect()
    }
}

/// What is said of them.
pub(super) fn checks(path: &Path, files: &Read) -> Vec<Check> {
    let path = path.display();
    let config = match &files.config {
        Ok(config) => config,
        Err(problems) => {
            let line = |problem: &Problem| {
                Check::failed(
                    format!("{path}: {problem}"),
                    "An empty one will do; `windlass check --keys` lists the keys.",
                    HOST,
                )
            };
            return problems.iter().map(line).collect();
        }
    };
    let mut checks = vec![Check::good(format!("{path} is valid"))];
    if config.socket.as_os_str().len() > 100 {
        let found = format!("{} is a long path for a socket", config.socket.display());
        checks.push(Check::limited(found, "The one that only shows is longer still.", HOST));
    }
    for report in files.folder.iter().flat_map(Folder::reports) {
        let advice = "Correct the file; `windlass check FILE` says whether it is right.";
        checks.push(Check::failed(report.to_string(), advice, VM));
    }
    let vms = files.vms();
    let count = match vms.len() {
        0 => Check::limited(
            format!("{} holds no valid VM file", config.vms_dir.display()),
            "`windlass vm add` adds a VM.",
            "docs/host.md#the-vm-file",
        ),
        1 => Check::good("1 VM file is valid"),
        count => Check::good(format!("{count} VM files are valid")),
    };
    checks.push(count);
    let misfits = misfits(config, files.room(), &vms);
    if misfits.is_empty() {
        checks.push(Check::good("the files fit together"));
    }
    checks.extend(misfits.into_iter().map(|(vm, problem)| match vm {
        Some(vm) => Check::limited(format!("{vm}.toml: {problem}"), "", VM),
        None => Check::limited(format!("host.toml: {problem}"), "", HOST),
    }));
    checks
}
