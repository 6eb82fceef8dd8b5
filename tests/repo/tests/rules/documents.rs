//! Documents: what they point at exists.

use std::collections::BTreeSet;
use windlass_repo::source::{shipped, talking};
use windlass_repo::{assert_none, files_ending, markdown, read, root};

#[test]
fn every_link_leads_somewhere() {
    let mut broken = Vec::new();
    for file in files_ending(".md") {
        let folder =
            file.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
        for link in markdown::links(&read(&file)) {
            let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
            if path.contains("://") {
                continue;
            }
            let target = if path.is_empty() { file.clone() } else { format!("{folder}{path}") };
            if !root().join(&target).exists() {
                broken.push(format!("{file}: {link}: no such file"));
            } else if !anchor.is_empty() && !anchors(&target).iter().any(|known| known == anchor) {
                broken.push(format!("{file}: {link}: no such heading"));
            }
        }
    }
    assert_none("links that lead nowhere:", &broken);
}

#[test]
fn every_page_that_the_doctor_names_is_there() {
    let files: Vec<String> = files_ending(".rs")
        .into_iter()
        .filter(|f| f.starts_with("cli/src/command/doctor"))
        .collect();
    let texts: Vec<String> = files.iter().map(|file| read(file)).collect();
    let words = texts.iter().flat_map(|text| text.split('"'));
    let links: BTreeSet<&str> = words.filter(|word| word.starts_with("docs/")).collect();
    assert!(links.len() > 10, "the links were not found");
    let leads = |link: &&str| {
        let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
        root().join(path).exists() && anchors(path).iter().any(|known| known == anchor)
    };
    let broken: Vec<String> =
        links.into_iter().filter(|link| !leads(link)).map(str::to_owned).collect();
    assert_none("links of `windlass doctor` that lead nowhere:", &broken);
}

#[test]
fn the_map_names_every_package() {
    let map = read("ARCHITECTURE.md");
    let missing: Vec<String> = windlass_repo::cargo::packages()
        .into_values()
        .filter(|package| !map.contains(&format!("`{}/`", package.folder)))
        .map(|package| package.folder)
        .collect();
    assert_none("ARCHITECTURE.md does not say what these are:", &missing);
}

/// `…` in a documented message stands for a name or a figure.
#[test]
fn every_documented_error_can_be_said() {
    let sources = spoken();
    let lines: Vec<&str> = sources.lines().filter(|line| is_code_with_text(line)).collect();
    let said = |message: &str| {
        let parts: Vec<&str> = message.split('…').map(str::trim).collect();
        lines.iter().any(|line| contains_in_order(line, &parts))
    };
    let rows = markdown::rows(&read("docs/errors.md"));
    let messages: Vec<&str> = rows.iter().filter_map(|row| markdown::code(&row[0])).collect();
    assert!(messages.len() > 20, "the tables of errors were not found");
    let stale: Vec<String> =
        messages.into_iter().filter(|message| !said(message)).map(str::to_owned).collect();
    assert_none("no line of the code says:", &stale);
}

#[test]
fn every_metric_is_documented_and_every_documented_metric_is_there() {
    let text = read("docs/metrics.md");
    let documented: BTreeSet<String> = ["Host", "Informant"]
        .iter()
        .filter_map(|heading| markdown::section(&text, heading))
        .flat_map(markdown::rows)
        .filter_map(|row| markdown::code(&row[0]).map(str::to_owned))
        .collect();
    let mut measured: BTreeSet<String> = informant_metrics();
    measured.extend(host_metrics());
    let missing: Vec<String> = measured.difference(&documented).cloned().collect();
    assert_none("docs/metrics.md is silent about:", &missing);
    let stale: Vec<String> = documented.difference(&measured).cloned().collect();
    assert_none("nobody measures:", &stale);
}

/// The cache's metrics stand with the rest of what an operator of it needs.
#[test]
fn every_metric_of_the_file_cache_is_documented() {
    let text = read("docs/postgres.md");
    let section = markdown::section(&text, "Metrics").expect("docs/postgres.md has its metrics");
    let rows = markdown::rows(section);
    let documented: BTreeSet<&str> =
        rows.iter().filter_map(|row| markdown::code(&row[0])).collect();
    let code = read("informant/postgres/src/metrics.rs");
    let measured: BTreeSet<&str> =
        code.split('"').filter(|word| word.starts_with("windlass_file_cache_")).collect();
    assert!(measured.len() >= 6, "the metrics were not found");
    assert_eq!(documented, measured, "docs/postgres.md");
}

/// Names in `register("name", …, counter or gauge)`, behind the prefix that the file gives, and
/// those of collected figures, which stand whole.
fn host_metrics() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for file in [
        "agent/src/metrics.rs",
        "plugin/src/metrics.rs",
        "cli/src/host/serve.rs",
        "kit/src/watchdog.rs",
    ] {
        let text = read(file);
        let prefix = quoted_after(&text, "sub_registry_with_prefix(").next();
        let prefix = prefix.unwrap_or_else(|| panic!("{file} gives no prefix"));
        let counters = |name: &str| {
            let field = format!("{name}: Counter");
            let family = format!("{name}: Family<");
            text.lines().any(|line| {
                line.contains(&field) || line.contains(&family) && line.contains("Counter>")
            })
        };
        for name in quoted_after(&text, ".register(") {
            let total = if counters(registered_field(&text, name)) { "_total" } else { "" };
            names.insert(format!("{prefix}_{name}{total}"));
        }
        let whole = format!("{prefix}_");
        let named = |word: &&str| word.starts_with(&whole) && !word.contains(['{', ' ', '\\']);
        names.extend(text.split('"').filter(named).map(str::to_owned));
        if text.contains("refusals.register(") {
            names.insert(format!("{prefix}_http_refusals_total"));
        }
    }
    // The host's own listeners are counted where they are started.
    let started = read("cli/src/host/serve.rs");
    for prefix in quoted_after(&started, "counts.register(registry.sub_registry_with_prefix(") {
        names.insert(format!("{prefix}_http_refusals_total"));
    }
    names
}

/// The field that is registered under this name.
fn registered_field<'a>(text: &'a str, name: &str) -> &'a str {
    let at = text.find(&format!("\"{name}\"")).expect("the name was found in this text");
    let field = text[at..].split("self.").nth(1).unwrap_or_default();
    field.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default()
}

/// Names that stand whole in the file, and those that a loop makes: `{name}` is each of the
/// names in the list that it goes through.
fn informant_metrics() -> BTreeSet<String> {
    let text = read("informant/core/src/wire/figures.rs") + &read("informant/src/metrics.rs");
    let whole = text.split('"').filter(|word| word.starts_with("windlass_"));
    let mut names: BTreeSet<String> =
        whole.filter(|name| !name.contains(['{', ' ', '\\'])).map(str::to_owned).collect();
    // The kernel's three figures share a line of the document.
    assert!(text.contains("host_load{minutes}"), "host_load is gone");
    names.insert("host_load1".to_owned());
    for turn in text.split("for (name, about, ").skip(1) {
        let (list, body) = turn.split_once("] {").expect("a loop over a list");
        let template = quoted_after(body, "format!(").next().expect("a loop makes names");
        let rows = list.lines().filter_map(|row| row.trim_start().strip_prefix("(\""));
        for name in rows.filter_map(|row| row.split('"').next()) {
            names.insert(template.replace("{name}", name));
        }
    }
    names
}

/// The text literals that follow this, possibly on the next line.
fn quoted_after<'a>(text: &'a str, before: &str) -> impl Iterator<Item = &'a str> {
    text.split(before)
        .skip(1)
        .filter_map(|rest| rest.trim_start().strip_prefix('"')?.split('"').next())
}

/// The sources of those who talk, without tests. The demo is shown, and shipped to nobody.
fn spoken() -> String {
    let demo = shipped(&["demo/src/lib.rs".to_owned(), "demo/src/main.rs".to_owned()]);
    talking().values().chain(demo.values()).map(|text| joined(text)).collect()
}

fn is_code_with_text(line: &str) -> bool {
    line.contains('"') && !line.trim_start().starts_with("//")
}

fn contains_in_order(line: &str, parts: &[&str]) -> bool {
    let mut rest = line;
    parts.iter().all(|part| match rest.find(part) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            true
        }
        None => false,
    })
}

/// Literals that go on in the next line, on one line, and without escapes.
fn joined(text: &str) -> String {
    let mut whole = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("\\\n") {
        whole.push_str(&rest[..at]);
        rest = rest[at + 2..].trim_start();
    }
    whole.push_str(rest);
    whole.replace("\\\"", "\"")
}

/// The anchors that a viewer makes of a document's headings.
fn anchors(file: &str) -> Vec<String> {
    read(file)
        .lines()
        .filter_map(|line| line.strip_prefix('#'))
        .map(|line| line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-"))
        .map(|name| {
            name.chars().filter(|c| c.is_alphanumeric() || *c == '-' || *c == '_').collect()
        })
        .collect()
}
