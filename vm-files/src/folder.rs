//! The VM files of a host: what each says, and what is in force.
//!
//! Files are looked at again and again; a change counts once the file has been the same at two
//! looks, so that a file that is being written is not read half. An invalid file keeps the
//! last valid one in force and is reported; no file ever disturbs another. A folder that
//! cannot be read keeps everything as it is: absence of evidence removes no VM.

use crate::text;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use windlass_kit::config::{Unread, read_text};
use windlass_kit::problem::{Problem, Report};
use windlass_protocol::vm_file::VmFile;
use windlass_protocol::{Resources, Usual};

/// More files than this are not looked at.
pub const MOST_FILES: usize = 1_000;

/// The VM files by name.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// What files aim at that state nothing.
    usual: Usual,
    files: BTreeMap<String, Entry>,
    /// Whose each monitor and each informant is: the stems of the files that are in force, where no two VMs
    /// have the same. So a file is compared with those that it can clash with, and not with every other.
    owners: BTreeMap<Owned, String>,
    unreadable: Option<Problem>,
}

/// What one look at the folder found, by stem.
pub type Look = Result<BTreeMap<String, Result<String, Problem>>, Problem>;

/// What is to be done after a look.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// This is in force from here on.
    Manage(Box<VmFile>),
    /// The file is gone.
    Forget(String),
}

#[derive(Debug, Default)]
struct Entry {
    /// What was found last, settled or not.
    found: Option<Result<String, Problem>>,
    /// The last text that was judged.
    judged: Option<Result<String, Problem>>,
    /// What is in force.
    valid: Option<VmFile>,
    problems: Vec<Problem>,
}

/// What only one VM can have.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Owned {
    Monitor(PathBuf),
    Informant(SocketAddr),
}

// === impl Folder ===

impl Folder {
    /// A folder that was not looked at yet.
    pub fn new(path: &Path) -> Self {
        Self::with_usual(path, Usual::default())
    }

    /// The same, where something else holds for files that do not say it.
    pub fn with_usual(path: &Path, usual: Usual) -> Self {
        let (files, owners) = (BTreeMap::new(), BTreeMap::new());
        Self { path: path.to_path_buf(), usual, files, owners, unreadable: None }
    }

    /// Takes in what a look found. The first look at a new folder is `settled` at once: there is
    /// nothing in force that a half-written file could spoil.
    pub fn observe(&mut self, look: Look, settled: bool) -> Vec<Step> {
        let look = match look {
            Ok(look) => look,
            Err(problem) => {
                self.unreadable = Some(problem);
                return Vec::new();
            }
        };
        self.unreadable = None;
        let mut steps = self.vanished(&look);
        for (stem, found) in look {
            let entry = self.files.entry(stem.clone()).or_default();
            let again = entry.found.as_ref() == Some(&found);
            entry.found = Some(found);
            if (again || settled) && entry.judged != entry.found {
                steps.extend(self.judge(&stem));
            }
        }
        // What another file stood in the way of may be free by now.
        for stem in self.rejected() {
            steps.extend(self.judge(&stem));
        }
        steps
    }

    /// What is in force, by name.
    pub fn valid(&self) -> impl Iterator<Item = &VmFile> {
        self.files.values().filter_map(|entry| entry.valid.as_ref())
    }

    /// What is in force for this VM.
    pub fn get(&self, stem: &str) -> Option<&VmFile> {
        self.files.get(stem)?.valid.as_ref()
    }

    /// Every file that was found, with what is wrong with it.
    pub fn entries(&self) -> impl Iterator<Item = (&str, Option<&VmFile>, &[Problem])> {
        let files = self.files.iter();
        files.map(|(stem, entry)| (stem.as_str(), entry.valid.as_ref(), entry.problems.as_slice()))
    }

    /// The same of the file of one VM, if there is one.
    pub fn entry(&self, stem: &str) -> Option<(Option<&VmFile>, &[Problem])> {
        let entry = self.files.get(stem)?;
        Some((entry.valid.as_ref(), entry.problems.as_slice()))
    }

    /// The path of a VM's file.
    pub fn path_of(&self, stem: &str) -> PathBuf {
        self.path.join(format!("{stem}.toml"))
    }

    /// What is wrong with files, and with the folder.
    pub fn reports(&self) -> Vec<Report> {
        let folder = self.unreadable.iter().map(|problem| Report {
            subject: self.path.display().to_string(),
            problems: vec![problem.clone()],
            meanwhile: "every VM stays as it is".to_owned(),
        });
        let files = self.files.iter().filter(|(_, entry)| !entry.problems.is_empty());
        folder
            .chain(files.map(|(stem, entry)| Report {
                subject: self.path_of(stem).display().to_string(),
                problems: entry.problems.clone(),
                meanwhile: match entry.valid {
                    Some(_) => "the last valid one stays in force".to_owned(),
                    None => "this VM is not managed".to_owned(),
                },
            }))
            .collect()
    }

    /// The sum of the minima of all VMs.
    pub fn minima(&self) -> Resources {
        self.valid().fold(Resources::ZERO, |sum, file| sum.saturating_add(file.info.bounds.min))
    }

    /// What would be wrong with this text as the file of this VM, others being as they are.
    ///
    /// # Errors
    /// All of it.
    pub fn check(&self, stem: &str, text: &str) -> Result<VmFile, Vec<Problem>> {
        let file = text::with_usual(stem, text, &self.usual)?;
        let problems = self.clashes(stem, &file);
        if problems.is_empty() { Ok(file) } else { Err(problems) }
    }

    /// The same, others being as they stand in the folder: a file that is not in force yet will be
    /// in a moment, and would be found to clash only then.
    ///
    /// # Errors
    /// All of it.
    pub fn check_beside(
        &self,
        look: &Look,
        stem: &str,
        text: &str,
    ) -> Result<VmFile, Vec<Problem>> {
        let file = self.check(stem, text)?;
        // What stands in the way of a text that is in force, `check` has said.
        let texts = look.iter().flatten().filter(|(other, text)| {
            let entry = self.files.get(*other).filter(|entry| entry.problems.is_empty());
            *other != stem && entry.and_then(|entry| entry.judged.as_ref()) != Some(*text)
        });
        let mut problems = Vec::new();
        for (other, text) in texts {
            let text = text.as_ref().ok();
            let has = text.and_then(|text| text::with_usual(other, text, &self.usual).ok());
            problems.extend(has.into_iter().flat_map(|has| clash(other, &has, &file)));
        }
        if problems.is_empty() { Ok(file) } else { Err(problems) }
    }

    /// Files that were missing at the look before, too: an editor may take one away for the
    /// moment that it needs to put the next one there.
    fn vanished(&mut self, look: &BTreeMap<String, Result<String, Problem>>) -> Vec<Step> {
        let mut steps = Vec::new();
        self.files.retain(|stem, entry| {
            if look.contains_key(stem) || entry.found.take().is_some() {
                return true;
            }
            if let Some(file) = entry.valid.take() {
                owned(&file).iter().for_each(|owned| drop(self.owners.remove(owned)));
                steps.push(Step::Forget(stem.clone()));
            }
            false
        });
        steps
    }

    fn judge(&mut self, stem: &str) -> Option<Step> {
        let found = self.files.get(stem)?.found.clone()?;
        let judged = match &found {
            Ok(text) => self.check(stem, text),
            Err(problem) => Err(vec![problem.clone()]),
        };
        let entry = self.files.get_mut(stem)?;
        entry.judged = Some(found);
        match judged {
            Ok(file) => {
                entry.problems.clear();
                let before = entry.valid.replace(file.clone());
                if before.as_ref() == Some(&file) {
                    return None;
                }
                for owned in before.iter().flat_map(owned) {
                    self.owners.remove(&owned);
                }
                self.owners.extend(owned(&file).map(|owned| (owned, stem.to_owned())));
                Some(Step::Manage(Box::new(file)))
            }
            Err(problems) => {
                entry.problems = problems;
                None
            }
        }
    }

    /// Stems whose settled text was refused.
    fn rejected(&self) -> Vec<String> {
        let refused = |entry: &Entry| {
            !entry.problems.is_empty() && entry.found.is_some() && entry.judged == entry.found
        };
        let stems = self.files.iter().filter(|(_, entry)| refused(entry));
        stems.map(|(stem, _)| stem.clone()).collect()
    }

    /// Two VMs cannot share a monitor or an informant; the VM that has it keeps it.
    fn clashes(&self, stem: &str, file: &VmFile) -> Vec<Problem> {
        let owners = owned(file).into_iter().filter_map(|owned| self.owners.get(&owned));
        let others: BTreeSet<&String> = owners.filter(|owner| *owner != stem).collect();
        let others = others.into_iter().filter_map(|other| Some((other, self.get(other)?)));
        others.flat_map(|(other, has)| clash(other, has, file)).collect()
    }
}

fn owned(file: &VmFile) -> [Owned; 2] {
    [Owned::Monitor(file.qmp.clone()), Owned::Informant(file.informant)]
}

/// What this file says that belongs to another VM, which has it.
fn clash(other: &str, has: &VmFile, file: &VmFile) -> Vec<Problem> {
    let mut problems = Vec::new();
    if has.qmp == file.qmp {
        let limit = format!("{other} has this monitor, which serves one client at a time");
        problems.push(Problem::new("qmp", file.qmp.display(), limit));
    }
    if has.informant == file.informant {
        let limit = format!("{other} has the informant at this address");
        problems.push(Problem::new("informant", file.informant, limit));
    }
    problems
}

/// Looks at the folder.
///
/// # Errors
/// It cannot be read, or holds too many files.
pub fn look(path: &Path) -> Look {
    let failed =
        |error: std::io::Error| Problem::without_value("", format!("cannot be read: {error}"));
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let Some(stem) = stem(&path) else { continue };
        if found.len() >= MOST_FILES {
            let limit = format!("holds more than {MOST_FILES} VM files");
            return Err(Problem::without_value("", limit));
        }
        match read_text(&path) {
            // It was there a moment ago: gone is gone.
            Err(Unread::Missing) => {}
            Err(unread) => drop(found.insert(stem, Err(unread.into()))),
            Ok(text) => drop(found.insert(stem, Ok(text))),
        }
    }
    Ok(found)
}

/// The name of the VM that this file is about, unless it is about none: editors leave
/// `.db1.toml.swp` and `db1.toml~` around.
fn stem(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let stem = name.strip_suffix(".toml")?;
    (!stem.is_empty() && !stem.starts_with('.')).then(|| stem.to_owned())
}

#[cfg(test)]
mod tests;
