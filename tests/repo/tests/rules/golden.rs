//! Golden files: what a released message looks like is a fact, and facts are only added.

use windlass_repo::{assert_none, files, git, root};

#[test]
fn a_golden_file_is_never_changed() {
    if !has_history() {
        return;
    }
    let changed: Vec<String> =
        golden().into_iter().filter(|file| differs_from_first(file)).collect();
    assert_none("these golden files are not what they were when they were added:", &changed);
}

#[test]
fn a_golden_file_is_never_removed() {
    if !has_history() {
        return;
    }
    let added = git(&["log", "--no-renames", "--diff-filter=A", "--name-only", "--format="]);
    let present = files();
    let removed: Vec<String> = added
        .unwrap_or_default()
        .lines()
        .filter(|file| is_golden(file) && !present.iter().any(|known| known == file))
        .map(str::to_owned)
        .collect();
    assert_none("these golden files are gone:", &removed);
}

#[test]
fn there_are_golden_files() {
    assert!(
        !golden().is_empty(),
        "no golden file was found: do the rules above look in the right place?"
    );
}

fn golden() -> Vec<String> {
    files().into_iter().filter(|file| is_golden(file)).collect()
}

fn is_golden(file: &str) -> bool {
    file.starts_with("protocol/") && file.contains("/golden/")
}

/// A tarball or a shallow clone has no first versions to compare with.
fn has_history() -> bool {
    git(&["rev-parse", "--is-shallow-repository"]).is_some_and(|answer| answer.trim() == "false")
}

fn differs_from_first(file: &str) -> bool {
    let log = git(&["log", "--no-renames", "--diff-filter=A", "--format=%H", "--", file]);
    let Some(first) = log.as_deref().unwrap_or_default().lines().last().map(str::to_owned) else {
        return false;
    };
    let Some(then) = git(&["rev-parse", &format!("{first}:{file}")]) else { return false };
    let present = root().join(file).display().to_string();
    git(&["hash-object", &present]).is_some_and(|present| present != then)
}
