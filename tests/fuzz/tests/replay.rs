//! Plays every input that is kept in the tree: what once reached new code, and what once broke
//! a promise.
//!
//! Runs under any compiler, as part of `make test`; `make fuzz` finds the inputs.

use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use windlass_fuzz::{TARGETS, Target};

/// A corpus is read at each `make test`, and is in every clone.
const MOST_FILES: usize = 150;
const MOST_BYTES: u64 = 100 * 1024;

#[test]
fn what_is_kept_breaks_no_promise() {
    let panics = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&panics);
    let usual = take_hook();
    // Also those of a task that nobody asks how it ended.
    set_hook(Box::new(move |panic| {
        heard.lock().unwrap_or_else(PoisonError::into_inner).push(panic.to_string());
    }));
    let mut broken = Vec::new();
    for (target, file) in inputs() {
        let input = fs::read(&file).unwrap_or_default();
        let played = catch_unwind(AssertUnwindSafe(|| target.run(&input)));
        let said = std::mem::take(&mut *panics.lock().unwrap_or_else(PoisonError::into_inner));
        if played.is_err() || !said.is_empty() {
            broken.push(format!("{} {}: {said:?}", target.name, file.display()));
        }
    }
    set_hook(usual);
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn each_target_has_a_corpus_of_moderate_size() {
    for target in TARGETS {
        let files = files(&Path::new("corpus").join(target.name));
        let bytes: u64 =
            files.iter().filter_map(|file| fs::metadata(file).ok()).map(|f| f.len()).sum();
        assert!(!files.is_empty(), "{} has no corpus", target.name);
        assert!(files.len() <= MOST_FILES, "{} has {} files", target.name, files.len());
        assert!(bytes <= MOST_BYTES, "the corpus of {} has {bytes} bytes", target.name);
    }
}

#[test]
fn every_folder_and_every_finding_is_of_a_target() {
    let names: BTreeSet<&str> = TARGETS.iter().map(|target| target.name).collect();
    for folder in fs::read_dir("corpus").into_iter().flatten().flatten() {
        let name = folder.file_name().to_string_lossy().into_owned();
        assert!(names.contains(name.as_str()), "corpus/{name} is of no target");
    }
    for file in files(Path::new("found")) {
        assert!(whose(&file).is_some(), "{} is of no target", file.display());
    }
}

/// Each with its target: a corpus is of one, a finding is named for one.
fn inputs() -> Vec<(Target, PathBuf)> {
    let mut inputs = Vec::new();
    for target in TARGETS {
        let corpus = files(&Path::new("corpus").join(target.name));
        inputs.extend(corpus.into_iter().map(|file| (target, file)));
    }
    let found = files(Path::new("found")).into_iter();
    inputs.extend(found.filter_map(|file| Some((whose(&file)?, file))));
    inputs
}

/// The target that a finding is named for: `monitor-…`.
fn whose(file: &Path) -> Option<Target> {
    let name = file.file_name()?.to_string_lossy();
    Target::find(name.split('-').next()?)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<_> =
        entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    files.sort();
    files
}
