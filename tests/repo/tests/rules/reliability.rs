//! docs/reliability.md: the faults and the tests that it names are those that there are.

use std::collections::BTreeSet;
use windlass_repo::source::{rust_files, test_names};
use windlass_repo::{assert_none, markdown, read};

/// Kinds of things in a schedule that are no faults.
const NO_FAULTS: [&str; 2] = ["Life", "People"];

#[test]
fn every_kind_of_fault_is_described() {
    let text = read("docs/reliability.md");
    let table = markdown::section(&text, "Faults").expect("a section on faults");
    let told: BTreeSet<String> = markdown::rows(table)
        .iter()
        .filter_map(|row| markdown::code(&row[0]))
        .map(str::to_owned)
        .collect();
    let drawn: BTreeSet<String> =
        kinds().into_iter().filter(|kind| !NO_FAULTS.contains(&kind.as_str())).collect();
    assert!(drawn.len() > 10, "the kinds of fault were not found");
    let missing: Vec<String> = drawn.difference(&told).cloned().collect();
    assert_none("docs/reliability.md does not say what these are:", &missing);
    let extra: Vec<String> = told.difference(&drawn).cloned().collect();
    assert_none("docs/reliability.md tells of faults that are not drawn:", &extra);
}

#[test]
fn every_test_that_is_named_exists() {
    let text = read("docs/reliability.md");
    let section = markdown::section(&text, "Law × fault × test").expect("a table of tests");
    let rows = markdown::rows(section);
    let named = rows.iter().filter(|row| row.len() == 2).flat_map(|row| row[1].split('`'));
    let known = test_names(&rust_files());
    let tests: Vec<&str> = named.filter(|word| word.contains('_')).collect();
    assert!(tests.len() > 15, "the table of tests was not found");
    let missing: Vec<String> =
        tests.into_iter().filter(|test| !known.contains(*test)).map(str::to_owned).collect();
    assert_none("docs/reliability.md names tests that are not there:", &missing);
}

/// The kinds of things that can be in a schedule.
fn kinds() -> Vec<String> {
    let text = read("tests/sim/src/schedule.rs");
    let (_, body) = text.split_once("pub enum Kind {").expect("the kinds");
    let (body, _) = body.split_once("\n}").expect("their end");
    let lines = body.lines().map(str::trim).filter(|line| !line.starts_with("//"));
    lines.filter_map(|line| line.strip_suffix(',')).map(str::to_owned).collect()
}
