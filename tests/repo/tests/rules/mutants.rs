//! What `tests/mutants` says about the code is true of the code that is there.

use windlass_repo::{assert_none, cargo, files, read};

#[test]
fn every_argued_mutant_names_a_function_that_is_there_and_says_why() {
    let mut wrong = Vec::new();
    for (mutant, argument) in argued() {
        let Some((file, change)) = mutant.split_once(": ") else {
            wrong.push(format!("{mutant}: no file and change"));
            continue;
        };
        let function = function(change);
        let there = files().contains(&file.to_owned())
            && function.is_none_or(|name| read(file).contains(&format!("fn {name}")));
        if !there {
            wrong.push(format!("{mutant}: {file} has no such function"));
        }
        if argument.split_whitespace().count() < 5 {
            wrong.push(format!("{mutant}: no argument below it"));
        }
    }
    assert_none("tests/mutants/argued.txt:", &wrong);
}

#[test]
fn every_mutant_meets_the_tests_of_its_own_package_first() {
    let packages = cargo::packages();
    let mut wrong = Vec::new();
    for (folder, entries) in table() {
        for entry in &entries {
            let package = entry.split([':', '=']).next().unwrap_or_default();
            let targets = entry.split('=').next().and_then(|words| words.split_once(':'));
            match packages.get(package) {
                None => wrong.push(format!("{folder}: there is no package {package}")),
                Some(there) => {
                    let targets = targets.map_or("", |(_, targets)| targets).split(',');
                    for target in targets.filter(|name| !name.is_empty() && *name != "lib") {
                        let file = format!("{}/tests/{target}.rs", there.folder);
                        let main = format!("{}/tests/{target}/main.rs", there.folder);
                        if !files().iter().any(|name| *name == file || *name == main) {
                            wrong.push(format!("{folder}: {package} has no test file {target}"));
                        }
                    }
                }
            }
        }
        let own = entries.first().and_then(|entry| entry.split([':', '=']).next());
        let own = own.and_then(|package| packages.get(package));
        if own.is_none_or(|package| format!("{}/", package.folder) != folder) {
            wrong.push(format!("{folder}: its own package's tests are not the first"));
        }
    }
    assert_none("tests/mutants/tests.txt:", &wrong);
}

#[test]
fn every_folder_with_mutants_is_in_the_table() {
    let table = table();
    let missing: Vec<String> = read(".cargo/mutants.toml")
        .lines()
        .take_while(|line| !line.starts_with("exclude_globs"))
        .flat_map(|line| line.split('"').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>())
        .filter_map(|glob| Some(glob.strip_suffix("src/**")?.to_owned()))
        .filter(|folder| !table.iter().any(|(known, _)| known == folder))
        .collect();
    assert!(table.len() > 10, "the table was not read");
    assert_none("tests/mutants/tests.txt lacks:", &missing);
}

/// Each mutant with its argument.
fn argued() -> Vec<(String, String)> {
    let mut argued: Vec<(String, String)> = Vec::new();
    for line in lines("tests/mutants/argued.txt") {
        match argued.last_mut() {
            Some((_, argument)) if line.starts_with(' ') => argument.push_str(&line),
            _ => argued.push((line, String::new())),
        }
    }
    argued
}

/// Each folder with the tests that are asked, in order.
fn table() -> Vec<(String, Vec<String>)> {
    lines("tests/mutants/tests.txt")
        .into_iter()
        .map(|line| {
            let (folder, entries) = line.split_once(": ").expect("a folder, a colon, and tests");
            (folder.to_owned(), entries.split(' ').map(str::to_owned).collect())
        })
        .collect()
}

fn lines(file: &str) -> Vec<String> {
    let text = read(file);
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(str::to_owned).collect()
}

/// The function that a change is in: `replace < with <= in Plan::wake`, `replace Plan::wake with ()`.
fn function(change: &str) -> Option<&str> {
    let path = match change.rsplit_once(" in ") {
        Some((_, path)) => path,
        None => change.strip_prefix("replace ")?.split(" with ").next()?.split(" -> ").next()?,
    };
    // A constant is in none.
    path.rsplit("::").next().filter(|name| name.starts_with(|first: char| first.is_alphabetic()))
}
