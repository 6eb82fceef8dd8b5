//! A folder of configuration: the files of programs and VM files, each by itself and all together.

use super::verdict::{Verdict, verdict};
use crate::command::configured::Kind;
use crate::problem::Problem;
use std::path::{Path, PathBuf};
use windlass_vm_files::folder::{Folder, look};

/// The verdicts on the files of a folder; one on the folder itself where it has none. `kind` is that of
/// files that do not tell it themselves.
pub(super) fn verdicts(folder: &Path, kind: Option<Kind>) -> Vec<Verdict> {
    let mut found = Found::default();
    found.take(folder, |file, text| Kind::of(file, text).or(kind));
    let json = json_files(folder).into_iter().map(|file| match verdict(&file, None) {
        unknown if unknown.kind.is_none() && kind.is_some() => verdict(&file, kind),
        verdict => verdict,
    });
    // JSON files of other programs are passed over.
    found.programs.extend(json.filter(|verdict| verdict.kind.is_some()));
    let vms_d = folder.join("vms.d");
    let elsewhere =
        |verdict: &Verdict| Some(verdict.configured.as_ref()?.of_host()?.vms_dir.clone());
    let mut folders: Vec<PathBuf> = found.programs.iter().filter_map(elsewhere).collect();
    if vms_d.is_dir() {
        folders = vec![vms_d];
    } else if !found.vms.is_empty() {
        folders.clear();
    }
    folders.dedup();
    for folder in folders.into_iter().filter(|folder| folder.is_dir()) {
        found.take(&folder, |_, _| Some(Kind::Vm));
    }
    let mut all = found.programs;
    for (path, folder) in &found.vms {
        all.extend(folder.entries().map(|(stem, _, problems)| {
            let file = path.join(format!("{stem}.toml"));
            Verdict::of(&file, Some(Kind::Vm), problems.to_vec())
        }));
    }
    warn(&mut all, &found.vms);
    all.extend(found.unread);
    if all.is_empty() {
        let none = Problem::without_value("", "holds neither host.toml nor a VM file");
        all.push(Verdict { missing: true, ..Verdict::of(folder, None, vec![none]) });
    }
    all
}

/// What folders hold.
#[derive(Debug, Default)]
struct Found {
    /// The files of programs, and those of which the kind is not known.
    programs: Vec<Verdict>,
    /// The VM files of each folder that has some.
    vms: Vec<(PathBuf, Folder)>,
    /// Folders that cannot be read.
    unread: Vec<Verdict>,
}

// === impl Found ===

impl Found {
    fn take(&mut self, path: &Path, kind: impl Fn(&Path, &str) -> Option<Kind>) {
        let mut look = match look(path) {
            Ok(look) => look,
            Err(problem) => return self.unread.push(Verdict::of(path, None, vec![problem])),
        };
        look.retain(|stem, text| {
            let file = path.join(format!("{stem}.toml"));
            match kind(&file, text.as_deref().unwrap_or_default()) {
                Some(Kind::Vm) => return true,
                Some(kind) => self.programs.push(verdict(&file, Some(kind))),
                None if text.is_err() => self.programs.push(verdict(&file, None)),
                None => {
                    let why = "is of no known kind, and was not checked; --kind says which";
                    let warnings = vec![Problem::without_value("", why)];
                    let verdict = Verdict::of(&file, None, Vec::new());
                    self.programs.push(Verdict { warnings, passed_over: true, ..verdict });
                }
            }
            false
        });
        if !look.is_empty() {
            let mut folder = Folder::new(path);
            folder.observe(Ok(look), true);
            self.vms.push((path.to_path_buf(), folder));
        }
    }
}

/// The files of a folder in the reference's form.
fn json_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "json"));
    files.sort();
    files
}

/// What does not fit together is allowed, and a warning on the file that is to change.
fn warn(all: &mut [Verdict], folders: &[(PathBuf, Folder)]) {
    let files: Vec<_> = folders.iter().flat_map(|(_, folder)| folder.valid()).collect();
    for at in 0..all.len() {
        let Some(configured) = &all[at].configured else { continue };
        for (vm, problem) in configured.misfits(&files) {
            let is_of = |verdict: &Verdict, vm: &str| {
                verdict.kind == Some(Kind::Vm)
                    && verdict.file.file_stem().is_some_and(|stem| stem == vm)
            };
            let place = vm.map_or(Some(at), |vm| all.iter().position(|file| is_of(file, &vm)));
            if let Some(place) = place {
                all[place].warnings.push(problem);
            }
        }
    }
}
