//! A folder of configuration: host.toml and VM files, each by itself and all of them together.

use super::verdict::{Kind, Verdict, guess, verdict};
use crate::host::config::HostConfig;
use crate::host::room::Machine;
use crate::host::together::misfits;
use crate::problem::Problem;
use std::path::{Path, PathBuf};
use windlass_kit::config::read_text;
use windlass_vm_files::folder::{Folder, Look, look};

/// The verdicts on the files of a folder; one on the folder itself where it has none.
pub(super) fn verdicts(folder: &Path) -> Vec<Verdict> {
    let file = folder.join("host.toml");
    let is_host = file.exists() && guess(&file, "") == Kind::Host;
    let host = is_host.then(|| verdict(&file, Some(Kind::Host)));
    let config = read_text(&file).ok().and_then(|text| HostConfig::from_text(&text).ok());
    let (mut all, mut vms) = (Vec::from_iter(host), Vms::default());
    vms.take(folder, look(folder), Holds::Any);
    let vms_d = folder.join("vms.d");
    let elsewhere = config.as_ref().map(|config| config.vms_dir.clone());
    match elsewhere.filter(|_| vms.folders.is_empty()) {
        _ if vms_d.is_dir() => vms.take(&vms_d, look(&vms_d), Holds::Vms),
        Some(vms_dir) if vms_dir.is_dir() => vms.take(&vms_dir, look(&vms_dir), Holds::Vms),
        Some(_) | None => {}
    }
    all.extend(vms.passed_over);
    for (path, folder) in &vms.folders {
        all.extend(folder.entries().map(|(stem, _, problems)| {
            let file = path.join(format!("{stem}.toml"));
            Verdict::of(file, Kind::Vm, problems.to_vec(), Vec::new())
        }));
    }
    if let Some(config) = config {
        warn(&mut all, &config, &vms.folders);
    }
    all.extend(vms.unread);
    if all.is_empty() {
        let none = Problem::without_value("", "holds neither host.toml nor a VM file");
        let none = Verdict::of(folder.to_path_buf(), Kind::Host, vec![none], Vec::new());
        all.push(Verdict { missing: true, ..none });
    }
    all
}

/// What a folder holds beside host.toml.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    /// VM files, as a host reads it.
    Vms,
    /// Anything: a VM file is known by its keys, and what cannot be read may be one.
    Any,
}

/// The VM files of each folder that has some.
#[derive(Debug, Default)]
struct Vms {
    folders: Vec<(PathBuf, Folder)>,
    /// Folders that cannot be read.
    unread: Vec<Verdict>,
    /// Files that are about something else.
    passed_over: Vec<Verdict>,
}

// === impl Vms ===

impl Vms {
    fn take(&mut self, path: &Path, look: Look, holds: Holds) {
        let mut look = match look {
            Ok(look) => look,
            Err(problem) => {
                let path = path.to_path_buf();
                return self.unread.push(Verdict::of(path, Kind::Vm, vec![problem], Vec::new()));
            }
        };
        look.retain(|stem, text| {
            let file = path.join(format!("{stem}.toml"));
            let is_vm = holds == Holds::Vms
                || text.as_ref().map_or(stem != "host", |text| guess(&file, text) == Kind::Vm);
            if !is_vm && stem != "host" {
                let why = "is neither host.toml nor a VM file, and was not checked";
                let warnings = vec![Problem::without_value("", why)];
                let verdict = Verdict::of(file, Kind::Vm, Vec::new(), warnings);
                self.passed_over.push(Verdict { passed_over: true, ..verdict });
            }
            is_vm
        });
        if !look.is_empty() {
            let mut folder = Folder::new(path);
            folder.observe(Ok(look), true);
            self.folders.push((path.to_path_buf(), folder));
        }
    }
}

/// What does not fit together is allowed, and a warning on the file that is to change.
fn warn(all: &mut [Verdict], config: &HostConfig, folders: &[(PathBuf, Folder)]) {
    let files: Vec<_> = folders.iter().flat_map(|(_, folder)| folder.valid()).collect();
    let room = Machine::here().room(config.node).ok();
    for (vm, problem) in misfits(config, room, &files) {
        let (stem, kind) = vm.map_or(("host".to_owned(), Kind::Host), |vm| (vm, Kind::Vm));
        let is_its = |verdict: &&mut Verdict| {
            verdict.kind == kind && verdict.file.file_stem().is_some_and(|file| *file == *stem)
        };
        if let Some(verdict) = all.iter_mut().find(is_its) {
            verdict.warnings.push(problem);
        }
    }
}
