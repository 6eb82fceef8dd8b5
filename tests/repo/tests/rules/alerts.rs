//! Rules about alerts: what they ask for is measured, and each tells the person whom it wakes what to do.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use windlass_repo::{assert_none, files_ending, markdown, read};

const RUNBOOKS: &str = "docs/runbooks.md";

/// Series for which each alert fires, for Prometheus's own tool.
const TESTS: &str = "deploy/alerts/tests.yaml";

/// What Prometheus itself measures, and its labels of what it reads.
const UP: &str = "up";
const OF_PROMETHEUS: [&str; 2] = ["instance", "job"];

/// A rule of a file of alerts.
struct Alert {
    file: String,
    name: String,
    expr: String,
    rule: Value,
}

#[test]
fn every_alert_says_how_urgent_it_is_and_where_its_runbook_is() {
    let mut wrong = Vec::new();
    for Alert { file, name, rule, .. } in alerts() {
        let severity = rule["labels"]["severity"].as_str();
        let summary = rule["annotations"]["summary"].as_str();
        let runbook = format!("{RUNBOOKS}#{}", name.to_lowercase());
        if !matches!(severity, Some("page" | "ticket"))
            || summary.is_none_or(str::is_empty)
            || rule["annotations"]["runbook_url"] != runbook.as_str()
        {
            wrong.push(format!("{file}: {name}: {rule}"));
        }
    }
    assert_none("severity, summary or runbook_url is missing or wrong:", &wrong);
}

#[test]
fn every_alert_has_a_runbook_and_every_runbook_an_alert() {
    let alerts: BTreeSet<String> = alerts().into_iter().map(|alert| alert.name).collect();
    let page = read(RUNBOOKS);
    let headings = page.lines().filter_map(|line| line.strip_prefix("## "));
    let runbooks: BTreeSet<String> = headings.map(str::to_owned).collect();
    assert_eq!(alerts, runbooks);
}

#[test]
fn every_metric_of_an_alert_is_documented_with_its_labels() {
    let documented = documented();
    let mut wrong = Vec::new();
    for Alert { file, name, expr, .. } in alerts() {
        let asked = metrics(&expr);
        assert!(!asked.is_empty(), "{name} asks for nothing: {expr}");
        let mut known: BTreeSet<&str> = OF_PROMETHEUS.into();
        for (metric, labels) in &asked {
            let Some(all) = documented.get(metric) else {
                wrong.push(format!("{file}: {name}: {metric}"));
                continue;
            };
            known.extend(all.iter().map(String::as_str));
            let has =
                |label: &&String| all.contains(*label) || OF_PROMETHEUS.contains(&label.as_str());
            wrong.extend(
                labels
                    .iter()
                    .filter(|label| !has(label))
                    .map(|label| format!("{file}: {name}: {metric} has no {label}")),
            );
        }
        let grouped = expr.split("by (").skip(1).filter_map(|rest| rest.split(')').next());
        let grouped = grouped.flat_map(|labels| labels.split(',').map(str::trim));
        wrong.extend(
            grouped
                .filter(|label| !known.contains(label))
                .map(|label| format!("{file}: {name}: by {label}")),
        );
    }
    assert_none("docs/metrics.md has no such metric or label:", &wrong);
}

/// No Prometheus runs in CI: what a person has it evaluate is complete.
#[test]
fn there_are_series_that_set_off_each_alert_and_series_that_do_not() {
    let all: Value = serde_saphyr::from_str(&read(TESTS)).expect("YAML");
    let list = |value: &Value, key: &str| value[key].as_array().cloned().unwrap_or_default();
    let tests = list(&all, "tests").into_iter().flat_map(|test| list(&test, "alert_rule_test"));
    let mut said = BTreeMap::from([(true, BTreeSet::new()), (false, BTreeSet::new())]);
    for test in tests {
        let fires = !list(&test, "exp_alerts").is_empty();
        let name = test["alertname"].as_str().unwrap_or_default().to_owned();
        said.entry(fires).or_default().insert(name);
    }
    let alerts: BTreeSet<String> = alerts().into_iter().map(|alert| alert.name).collect();
    assert_eq!(said, BTreeMap::from([(true, alerts.clone()), (false, alerts)]));
}

#[test]
fn metrics_of_an_expression_are_found_with_their_labels() {
    let expr =
        r#"sum by (of) (rate(windlass_a_total{peer="x",answer=~"y|z"}[5m])) > 2 * up{job="b"}"#;
    let labels = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let wanted = [
        ("windlass_a_total".to_owned(), labels(&["peer", "answer"])),
        (UP.to_owned(), labels(&["job"])),
    ];
    assert_eq!(metrics(expr), wanted);
}

fn alerts() -> Vec<Alert> {
    let is_of_rules = |file: &String| file.starts_with("deploy/alerts/") && file != TESTS;
    let files = files_ending(".yaml").into_iter().filter(is_of_rules);
    let alerts: Vec<Alert> = files.flat_map(|file| alerts_of(&file)).collect();
    assert!(alerts.len() > 5, "the alerts were not found");
    alerts
}

fn alerts_of(file: &str) -> Vec<Alert> {
    let all: Value = serde_saphyr::from_str(&read(file))
        .unwrap_or_else(|error| panic!("{file} is no YAML: {error}"));
    let groups = all["groups"].as_array().unwrap_or_else(|| panic!("{file} has no groups"));
    let rules = groups.iter().flat_map(|group| group["rules"].as_array().into_iter().flatten());
    let text = |rule: &Value, key: &str| match rule[key].as_str() {
        Some(text) => text.to_owned(),
        None => panic!("{file}: a rule without {key}: {rule}"),
    };
    let alert = |rule: &Value| Alert {
        file: file.to_owned(),
        name: text(rule, "alert"),
        expr: text(rule, "expr"),
        rule: rule.clone(),
    };
    rules.map(alert).collect()
}

/// The metrics of an expression, with the labels by which it chooses.
fn metrics(expr: &str) -> Vec<(String, Vec<String>)> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut found = Vec::new();
    let mut rest = expr;
    while let Some(at) = rest.find(is_word) {
        let word: String = rest[at..].chars().take_while(|c| is_word(*c)).collect();
        rest = &rest[at + word.len()..];
        if word != UP && !word.starts_with("windlass_") {
            continue;
        }
        let (chosen, after) = match rest.strip_prefix('{').and_then(|rest| rest.split_once('}')) {
            Some((inside, after)) => (inside, after),
            None => ("", rest),
        };
        rest = after;
        let names = chosen.split("\",").filter_map(|one| one.split(['=', '!']).next());
        let names = names.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
        found.push((word, names.collect()));
    }
    found
}

/// The metrics of the page, with all labels that any of its tables gives them.
fn documented() -> BTreeMap<String, BTreeSet<String>> {
    let mut all = BTreeMap::from([(UP.to_owned(), BTreeSet::new())]);
    for row in markdown::rows(&read("docs/metrics.md")).iter().filter(|row| row.len() == 4) {
        let Some(name) = markdown::code(&row[0]) else { continue };
        let labels = row[2].split('`').skip(1).step_by(2).map(str::to_owned);
        all.entry(name.to_owned()).or_default().extend(labels);
    }
    all
}
