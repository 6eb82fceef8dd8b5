//! The configuration reference is what the code does.

use clap::CommandFactory;
use std::collections::BTreeSet;
use windlass_cli::args::Cli;
use windlass_cli::host::keys::HOST;
use windlass_protocol::config::Row;
use windlass_protocol::vm_file::VM;
use windlass_repo::{markdown, read};

const PAGE: &str = "docs/configuration.md";

#[test]
fn the_tables_of_keys_are_those_of_the_code() {
    for (heading, keys) in [("host.toml", HOST), ("VM file", VM)] {
        let coded: Vec<Vec<String>> = keys.rows().into_iter().map(row).collect();
        assert_eq!(table(heading), coded, "{PAGE}, {heading}");
    }
}

#[test]
fn the_table_of_variables_is_that_of_the_command_line() {
    let mut coded = BTreeSet::new();
    variables(&Cli::command(), &mut coded);
    let written: BTreeSet<Vec<String>> = table("Command line")
        .into_iter()
        .map(|row| vec![bare(&row[0]), bare(&row[1]), row[3].clone()])
        .collect();
    assert_eq!(written, coded, "{PAGE}");
}

/// Variable, option and default of each option that can be set by a variable.
fn variables(command: &clap::Command, found: &mut BTreeSet<Vec<String>>) {
    for argument in command.get_arguments() {
        let (Some(variable), Some(long)) = (argument.get_env(), argument.get_long()) else {
            continue;
        };
        let default: Vec<_> =
            argument.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
        found.insert(vec![
            variable.to_string_lossy().into_owned(),
            format!("--{long}"),
            default.concat(),
        ]);
    }
    for inner in command.get_subcommands() {
        variables(inner, found);
    }
}

fn row(Row { name, kind, default, range, meaning }: Row) -> Vec<String> {
    vec![format!("`{name}`"), kind, default, range, meaning]
}

fn table(heading: &str) -> Vec<Vec<String>> {
    let page = read(PAGE);
    let section = markdown::section(&page, heading);
    markdown::rows(section.unwrap_or_else(|| panic!("{PAGE} has no heading {heading}")))
}

fn bare(cell: &str) -> String {
    cell.trim_matches('`').to_owned()
}
