//! What compares an operator's page with the code: tables of keys and options, examples, metrics.
//!
//! Each program's own test says what is in its code, as texts; so this links nothing of it.

use std::collections::BTreeSet;

/// A row of a table of keys: name, how it is written, default, range, meaning. Keys of JSON are
/// not written in a way of their own, and their tables have no such column.
pub fn key_row([name, kind, default, range, meaning]: [&str; 5]) -> String {
    match kind {
        "JSON" => format!("| `{name}` | {default} | {range} | {meaning} |"),
        _ => format!("| `{name}` | {kind} | {default} | {range} | {meaning} |"),
    }
}

/// The rows of the first table behind this heading, as they stand there, without its head.
///
/// # Panics
/// If there is no such heading.
pub fn rows(page: &str, heading: &str) -> Vec<String> {
    let Some((_, rest)) = page.split_once(&format!("\n{heading}\n")) else {
        panic!("no heading {heading}");
    };
    rest.lines()
        .skip_while(|line| !line.starts_with('|'))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(str::to_owned)
        .collect()
}

/// What each row of that table is about: the first words in back-quotes.
///
/// # Panics
/// If there is no such heading, or a row without back-quotes.
pub fn subjects(page: &str, heading: &str) -> BTreeSet<String> {
    let subject = |row: &String| match row.split('`').nth(1) {
        Some(name) => name.to_owned(),
        None => panic!("{row} is about nothing"),
    };
    rows(page, heading).iter().map(subject).collect()
}

/// Holds the table of options against those of the command line, which a variable can set: each
/// by its long name and its variable, in their order.
///
/// # Panics
/// If they differ.
pub fn assert_options(page: &str, coded: &[[String; 2]]) {
    let written = rows(page, "## Command line");
    assert_eq!(written.len(), coded.len());
    for (row, [long, variable]) in written.iter().zip(coded) {
        let start = format!("| `--{long}` | `{variable}` |");
        assert!(row.starts_with(&start), "{row} is not {start}");
    }
}

/// The examples in TOML.
///
/// # Panics
/// If there is none.
pub fn examples(page: &str) -> Vec<&str> {
    let fenced = page.split("```toml\n").skip(1);
    let examples: Vec<&str> = fenced.filter_map(|rest| rest.split("```").next()).collect();
    assert!(!examples.is_empty(), "a page without an example");
    examples
}

/// The names of the metrics in what is served, as they are asked for.
pub fn measured(served: &str) -> BTreeSet<String> {
    let types = served.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let names = types.filter_map(|line| line.split_once(' ')).map(|(name, kind)| match kind {
        "counter" => format!("{name}_total"),
        _ => name.to_owned(),
    });
    names.collect()
}
