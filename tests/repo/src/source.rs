//! Rust files, read as text.

use crate::{cargo, files_ending, read, root};
use std::collections::{BTreeMap, BTreeSet};

/// Packages that are no product, by the folder that they are in.
const NO_PRODUCT: [&str; 6] =
    ["tests/", "bench/", "conformance/", "demo/", "world/", "drivers/fake/"];

/// Whose texts and log lines people read: the protocol, the shells, and the cores, whose refusals their shells pass on word for
/// word.
const TALKERS: [&str; 26] = [
    "agent",
    "agent/billing",
    "agent/cluster",
    "agent/config",
    "agent/core",
    "agent/host",
    "agent/program",
    "cli",
    "drivers",
    "drivers/cgroup",
    "drivers/neonvm",
    "drivers/neonvm/core",
    "drivers/qemu",
    "informant",
    "informant/core",
    "informant/postgres",
    "informant/postgres/core",
    "kit",
    "kit/kubernetes",
    "plugin",
    "plugin/cluster",
    "plugin/config",
    "plugin/core",
    "plugin/program",
    "protocol",
    "vm-files",
];

/// The names of the test functions of these files, also of those inside `proptest!`.
pub fn test_names(files: &[String]) -> BTreeSet<String> {
    files.iter().flat_map(|file| tests_in(&read(file))).collect()
}

/// The names of the functions that follow a test attribute.
pub fn tests_in(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut marked = false;
    for line in text.lines().map(str::trim_start) {
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            marked = true;
        } else if let Some(name) = function_name(line) {
            if marked {
                names.push(name);
            }
            marked = false;
        }
    }
    names
}

/// The name of the function that starts on this line.
pub fn function_name(line: &str) -> Option<String> {
    let mut words = line.split_whitespace();
    words.by_ref().find(|word| *word == "fn" || !is_modifier(word)).filter(|word| *word == "fn")?;
    let name = words.next()?;
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
    Some(name[..end].to_owned())
}

/// The files that are compiled when these crate roots are: the roots, and what each declares
/// with `mod name;`.
pub fn reachable(roots: &[String]) -> BTreeSet<String> {
    texts(roots, str::to_owned).into_keys().collect()
}

/// What is compiled into programs when these crate roots are, by file: without tests.
pub fn shipped(roots: &[String]) -> BTreeMap<String, String> {
    texts(roots, without_tests)
}

/// The sources of those whose words people read, by file.
///
/// # Panics
/// If they are not found.
pub fn talking() -> BTreeMap<String, String> {
    let roots: Vec<String> = TALKERS
        .iter()
        .flat_map(|folder| [format!("{folder}/src/lib.rs"), format!("{folder}/src/main.rs")])
        .collect();
    let sources = shipped(&roots);
    assert!(sources.len() > 100, "the sources were not found");
    sources
}

/// What is compiled into programs that users run, by file: without tests, and without the demo.
pub fn product() -> BTreeMap<String, String> {
    let packages = cargo::packages().into_values();
    let roots: Vec<String> = packages
        .flat_map(|package| package.roots)
        .filter(|root| root.contains("/src/") && !NO_PRODUCT.iter().any(|no| root.starts_with(no)))
        .collect();
    shipped(&roots)
}

/// Rust files outside of `target`.
pub fn rust_files() -> Vec<String> {
    files_ending(".rs")
}

fn texts(roots: &[String], part: impl Fn(&str) -> String) -> BTreeMap<String, String> {
    let mut seen = BTreeMap::new();
    let mut open: Vec<String> = roots.to_vec();
    while let Some(file) = open.pop() {
        if seen.contains_key(&file) || !root().join(&file).is_file() {
            continue;
        }
        let text = part(&read(&file));
        open.extend(modules(&file, &text, roots.contains(&file)));
        seen.insert(file, text);
    }
    seen
}

/// A file without its module of tests, which stands last, and without the declarations of
/// modules that are for tests.
fn without_tests(text: &str) -> String {
    const MARK: &str = "#[cfg(test)]\n";
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let mut parts = text.split(MARK);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |whole, part| {
        let (line, rest) = part.split_once('\n').unwrap_or((part, ""));
        whole + if declared(line).is_some() { rest } else { part }
    })
}

fn is_modifier(word: &str) -> bool {
    matches!(word, "pub" | "async" | "const" | "unsafe" | "extern") || word.starts_with("pub(")
}

/// Where the modules that a file declares may be.
fn modules(file: &str, text: &str, is_root: bool) -> Vec<String> {
    let (folder, stem) = split(file);
    let own = if is_root || stem == "mod" { folder.clone() } else { format!("{folder}{stem}/") };
    let mut found = Vec::new();
    let mut path: Option<String> = None;
    for line in text.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix("#[path = \"") {
            path = rest.split('"').next().map(|name| format!("{folder}{name}"));
        } else if let Some(name) = declared(line) {
            let usual = [format!("{own}{name}.rs"), format!("{own}{name}/mod.rs")];
            found.extend(path.take().map_or_else(|| usual.to_vec(), |path| vec![normal(&path)]));
        }
    }
    found
}

fn declared(line: &str) -> Option<&str> {
    let line = line.strip_suffix(';')?;
    let (before, name) = line.rsplit_once("mod ")?;
    let visible = before.is_empty() || before.starts_with("pub");
    (visible && name.chars().all(|c| c.is_alphanumeric() || c == '_')).then_some(name)
}

fn split(file: &str) -> (String, String) {
    let (folder, name) = file.rsplit_once('/').unwrap_or(("", file));
    let folder = if folder.is_empty() { String::new() } else { format!("{folder}/") };
    (folder, name.trim_end_matches(".rs").to_owned())
}

fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "." | "" => {}
            ".." => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_found_by_its_attribute() {
        let text = "#[test]\nfn one() {}\nfn two() {}\n  #[tokio::test(start_paused = true)]\n  async fn three() {}";
        assert_eq!(tests_in(text), ["one", "three"]);
    }

    #[test]
    fn a_function_is_named_whatever_stands_before_it() {
        assert_eq!(function_name("pub(crate) const fn a<T>(x: T)").as_deref(), Some("a"));
        assert_eq!(function_name("async fn b_2()").as_deref(), Some("b_2"));
        assert_eq!(function_name("let fn_like = 1;"), None);
        assert_eq!(function_name("impl Fn for X"), None);
    }

    #[test]
    fn what_is_for_tests_is_not_shipped() {
        let text = "mod a;\n#[cfg(test)]\nmod b;\nfn c() {}\n#[cfg(test)]\nmod tests {\n    d\n}\n";
        assert_eq!(without_tests(text), "mod a;\nfn c() {}\n");
        assert_eq!(without_tests("a\n#[cfg(test)]\npub(crate) mod b;\nc\n"), "a\nc\n");
    }

    #[test]
    fn a_module_declaration_is_no_module_block() {
        assert_eq!(declared("pub(crate) mod a_b;"), Some("a_b"));
        assert_eq!(declared("mod tests {"), None);
        assert_eq!(declared("// see mod x;"), None);
    }
}
