//! The laws of ARCHITECTURE.md, their tests, and the bugs that those tests must notice.

use std::collections::BTreeSet;
use windlass_repo::patches::bugs;
use windlass_repo::source::{reachable, rust_files, test_names};
use windlass_repo::{assert_none, cargo, markdown, read, root, run};

/// A row of the table of laws.
struct Law {
    number: String,
    name: String,
    /// The files that decide it.
    decided_in: Vec<String>,
    test: String,
}

#[test]
fn every_law_has_the_test_that_its_row_names() {
    let named = test_names(&integration_tests());
    let missing: Vec<String> = laws()
        .into_iter()
        .filter(|law| !named.iter().any(|name| is_test_of(name, law)))
        .map(|law| format!("law {}: no test {}", law.number, law.test))
        .collect();
    assert_none("a law without its test is a wish:", &missing);
}

#[test]
fn a_laws_test_is_the_name_of_the_law() {
    let wrong: Vec<String> = laws()
        .into_iter()
        .filter(|law| law.test != snake(&law.name))
        .map(|law| format!("{} is tested by {}", law.name, law.test))
        .collect();
    assert_none("names differ:", &wrong);
}

#[test]
fn every_law_stands_in_the_documentation_of_a_module() {
    let texts: Vec<String> = rust_files().iter().map(|file| read(file)).collect();
    let lines = texts.iter().flat_map(|text| text.lines()).map(str::trim_start);
    let documentation: String = lines
        .filter_map(|line| line.strip_prefix("//!").or_else(|| line.strip_prefix("///")))
        .map(|text| text.trim().to_lowercase() + " ")
        .collect();
    let missing: Vec<String> = laws()
        .into_iter()
        .filter(|law| !documentation.contains(&law.name.to_lowercase()))
        .map(|law| format!("law {}: {}", law.number, law.name))
        .collect();
    assert_none("no module says that it keeps:", &missing);
}

#[test]
fn every_law_is_decided_in_files_of_a_core() {
    let is_of_a_core = |file: &str| file.contains("core/src/") || file.starts_with("scaling/src/");
    let mut wrong = Vec::new();
    for law in laws() {
        if law.decided_in.is_empty() {
            wrong.push(format!("law {}: no file", law.number));
        }
        let stray = |file: &&String| !is_of_a_core(file) || !root().join(file).is_file();
        let stray = law.decided_in.iter().filter(stray);
        wrong.extend(stray.map(|file| format!("law {}: {file} is no file of a core", law.number)));
    }
    assert_none("ARCHITECTURE.md does not say where these are decided:", &wrong);
}

#[test]
fn every_law_has_a_bug_that_breaks_it() {
    let broken: BTreeSet<String> = bugs().into_iter().map(|bug| bug.law).collect();
    let missing: Vec<String> = laws()
        .into_iter()
        .filter(|law| !broken.contains(&law.number))
        .map(|law| format!("law {}: {}", law.number, law.name))
        .collect();
    assert_none("nothing shows that these tests can fail:", &missing);
}

#[test]
fn every_bug_names_a_law_and_a_test_that_exist() {
    let laws: BTreeSet<String> = laws().into_iter().map(|law| law.number).collect();
    let packages = cargo::packages();
    let mut wrong = Vec::new();
    for bug in bugs() {
        if !laws.contains(&bug.law) {
            wrong.push(format!("{}: there is no law {}", bug.file, bug.law));
        }
        match packages.get(&bug.package) {
            None => wrong.push(format!("{}: there is no package {}", bug.file, bug.package)),
            Some(package) => {
                let (target, test) = match bug.target.as_str() {
                    "lib" => {
                        (format!("{}/src/lib", package.folder), bug.test.replace("::tests::", "::"))
                    }
                    file => (format!("{}/tests/{file}", package.folder), bug.test),
                };
                if !has_test(&target, &test) {
                    wrong.push(format!("{}: there is no {test} in {target}", bug.file));
                }
            }
        }
    }
    assert_none("bugs with a wrong header:", &wrong);
}

#[test]
fn every_bug_still_applies() {
    let mut wrong = Vec::new();
    for bug in bugs() {
        let output = run("git", &["apply", "--check", &bug.file]);
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr);
            wrong.push(format!("{}: {}", bug.file, why.trim().replace('\n', "; ")));
        }
    }
    assert_none("rewrite these patches:", &wrong);
}

fn laws() -> Vec<Law> {
    let text = read("ARCHITECTURE.md");
    let table = markdown::section(&text, "Laws").expect("ARCHITECTURE.md has a section on laws");
    let laws: Vec<Law> = markdown::rows(table)
        .into_iter()
        .map(|row| {
            let name = row[1].split("**").nth(1).expect("a law's name is in bold");
            Law {
                number: row[0].clone(),
                name: name.trim_end_matches('.').to_owned(),
                decided_in: row[2].split('`').skip(1).step_by(2).map(str::to_owned).collect(),
                test: markdown::code(&row[3]).expect("a law names its test").to_owned(),
            }
        })
        .collect();
    assert!(laws.len() >= 9, "the table of laws was not found");
    laws
}

fn integration_tests() -> Vec<String> {
    rust_files().into_iter().filter(|file| file.contains("/tests/")).collect()
}

/// Whether that file of tests, or the module of it that `test` names, has the test.
fn has_test(target: &str, test: &str) -> bool {
    let roots = [format!("{target}.rs"), format!("{target}/main.rs")];
    let files = reachable(&roots).into_iter();
    match test.rsplit_once("::") {
        Some((module, name)) => {
            let module = format!("/{}.rs", module.replace("::", "/"));
            let files: Vec<String> = files.filter(|file| file.ends_with(&module)).collect();
            test_names(&files).contains(name)
        }
        None => {
            let files: Vec<String> = files.filter(|file| roots.contains(file)).collect();
            test_names(&files).contains(test)
        }
    }
}

/// A law may be tested in parts: `fail_static_without_an_informant`.
fn is_test_of(name: &str, law: &Law) -> bool {
    name.strip_prefix(&law.test).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
}

fn snake(name: &str) -> String {
    name.to_lowercase().replace(", ", "_").replace([' ', '-'], "_")
}
