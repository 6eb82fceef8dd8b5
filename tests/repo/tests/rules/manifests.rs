//! Rules about manifests and lints.

use toml::{Table, Value};
use windlass_repo::{assert_none, cargo, files_ending, read};

#[test]
fn a_package_is_named_after_its_path() {
    let wrong: Vec<String> = cargo::packages()
        .into_values()
        .filter(|package| package.name != name_of(&package.folder))
        .map(|package| {
            format!("{}: {} is not {}", package.folder, package.name, name_of(&package.folder))
        })
        .collect();
    assert_none("names that do not follow from the path:", &wrong);
}

#[test]
fn every_package_takes_its_lints_and_its_version_from_the_workspace() {
    let mut wrong = Vec::new();
    for package in cargo::packages().into_values() {
        let manifest = table(&format!("{}/Cargo.toml", package.folder));
        let inherits = |value: Option<&Value>| value == Some(&Value::Boolean(true));
        if !inherits(manifest.get("lints").and_then(|lints| lints.get("workspace"))) {
            wrong.push(format!("{}: lints.workspace", package.folder));
        }
        for field in ["version", "edition", "rust-version", "license", "publish"] {
            let own = manifest.get("package").and_then(|package| package.get(field));
            if !inherits(own.and_then(|own| own.get("workspace"))) {
                wrong.push(format!("{}: {field}.workspace", package.folder));
            }
        }
    }
    assert_none("these are not taken from the workspace:", &wrong);
}

#[test]
fn every_dependency_has_its_version_in_one_place() {
    let mut wrong = Vec::new();
    for package in cargo::packages().into_values() {
        let manifest = table(&format!("{}/Cargo.toml", package.folder));
        for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
            for (name, dependency) in
                manifest.get(section).and_then(Value::as_table).into_iter().flatten()
            {
                // A package's own features, for its own tests, have no version.
                let itself = *name == package.name && dependency.get("version").is_none();
                if !itself && dependency.get("workspace") != Some(&Value::Boolean(true)) {
                    wrong.push(format!("{}: {section}.{name}", package.folder));
                }
            }
        }
    }
    assert_none("these say a version of their own:", &wrong);
}

/// Clippy reads the nearest `clippy.toml` only: a nested one must repeat the root's settings.
#[test]
fn a_nested_clippy_toml_repeats_the_root() {
    let top = table("clippy.toml");
    let mut missing = Vec::new();
    for file in files_ending("/clippy.toml") {
        let nested = table(&file);
        for (key, wanted) in &top {
            match (wanted, nested.get(key)) {
                (Value::Array(wanted), Some(Value::Array(own))) => missing.extend(
                    wanted
                        .iter()
                        .filter(|entry| !own.contains(entry))
                        .map(|entry| format!("{file}: {key}: {entry:?}")),
                ),
                (wanted, Some(own)) if wanted == own => {}
                (wanted, _) => missing.push(format!("{file}: {key} = {wanted:?}")),
            }
        }
    }
    assert_none("the root's clippy.toml says more:", &missing);
}

#[test]
fn every_core_forbids_clocks_environment_and_hash_order() {
    let forbidden = [
        "std::time::Instant::now",
        "std::time::SystemTime::now",
        "std::env::var",
        "std::collections::HashMap",
        "std::collections::HashSet",
    ];
    let mut missing = Vec::new();
    for folder in [
        "protocol",
        "scaling",
        "world",
        "agent/core",
        "agent/billing/core",
        "informant/core",
        "informant/postgres/core",
        "plugin/core",
    ] {
        let text = read(&format!("{folder}/clippy.toml"));
        missing.extend(
            forbidden
                .iter()
                .filter(|path| !text.contains(&format!("\"{path}\"")))
                .map(|path| format!("{folder}: {path}")),
        );
    }
    assert_none("a core may use what it must not:", &missing);
}

fn name_of(folder: &str) -> String {
    match folder {
        "cli" => "windlass".to_owned(),
        // `kit` has the shorter name.
        "tests/kit" => "windlass-testkit".to_owned(),
        _ => format!("windlass-{}", folder.trim_start_matches("tests/").replace('/', "-")),
    }
}

fn table(file: &str) -> Table {
    toml::from_str(&read(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}
