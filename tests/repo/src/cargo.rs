//! What cargo says about the workspace, without touching the network.

use crate::{root, run};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// One package of the workspace.
#[derive(Debug)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its folder, relative to the top.
    pub folder: String,
    /// The files that its targets start from, relative to the top.
    pub roots: Vec<String>,
    /// The workspace packages that it links, not counting what only its tests use.
    pub links: BTreeSet<String>,
}

/// The packages of the workspace, by name.
///
/// # Panics
/// If cargo cannot read the workspace.
pub fn packages() -> BTreeMap<String, Package> {
    let text = cargo(&["metadata", "--locked", "--offline", "--no-deps", "--format-version", "1"]);
    let metadata: Value = serde_json::from_str(&text).expect("cargo metadata prints JSON");
    let list = metadata["packages"].as_array().expect("metadata has packages");
    list.iter().map(package).map(|package| (package.name.clone(), package)).collect()
}

/// The names of all packages that this one links, itself included, whatever features are on.
///
/// # Panics
/// If cargo cannot tell.
pub fn tree(package: &str) -> BTreeSet<String> {
    let listing = cargo(&[
        "tree",
        "--locked",
        "--offline",
        "-e",
        "normal",
        "--all-features",
        "--prefix",
        "none",
        "--format",
        "{p}",
        "-p",
        package,
    ]);
    listing.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

fn package(value: &Value) -> Package {
    let manifest = relative(text(&value["manifest_path"]));
    let targets = value["targets"].as_array().expect("a package has targets");
    let dependencies = value["dependencies"].as_array().expect("a package has dependencies");
    Package {
        name: text(&value["name"]).to_owned(),
        folder: manifest.trim_end_matches("/Cargo.toml").to_owned(),
        roots: targets.iter().map(|target| relative(text(&target["src_path"]))).collect(),
        links: dependencies
            .iter()
            .filter(|dependency| dependency["kind"].is_null() && dependency["path"].is_string())
            .map(|dependency| text(&dependency["name"]).to_owned())
            .collect(),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().expect("cargo says this as text")
}

fn relative(path: &str) -> String {
    let root = format!("{}/", root().display());
    path.strip_prefix(&root).unwrap_or(path).to_owned()
}

fn cargo(arguments: &[&str]) -> String {
    let program = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = run(&program, arguments);
    assert!(
        output.status.success(),
        "cargo {}: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}
