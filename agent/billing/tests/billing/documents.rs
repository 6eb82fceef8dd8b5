//! docs/billing.md is what the code does.

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use std::collections::BTreeSet;
use windlass_agent_billing::Metrics;
use windlass_agent_billing::config::KEYS;
use windlass_protocol::config::Table;

const TOML: Table = Table::toml(&[KEYS]);
const JSON: Table = Table::json(&[KEYS]);

#[test]
fn the_page_has_the_keys_of_the_code() {
    let in_json = JSON.rows().into_iter().map(|key| key.name);
    let coded = TOML.rows().into_iter().zip(in_json).map(|(key, camel)| {
        let bare = |name: &str| name.trim_start_matches("billing.").to_owned();
        let (snake, camel) = (bare(&key.name), bare(&camel));
        format!("| `{snake}` | `{camel}` | {} | {} | {} |", key.default, key.range, key.meaning)
    });
    let page = page();
    let table =
        page.lines().filter(|line| line.starts_with("| `") && line.matches('|').count() == 6);
    assert_eq!(coded.collect::<Vec<_>>(), table.collect::<Vec<_>>());
}

#[test]
fn the_page_has_the_metrics_of_the_code() {
    let mut registry = Registry::default();
    Metrics::default().register(&mut registry);
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    let coded: BTreeSet<String> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '))
        .map(|(name, kind)| (name, if kind == "counter" { "_total" } else { "" }))
        .map(|(name, total)| format!("{name}{total}"))
        .collect();
    let page = page();
    let written = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let written = written.filter(|name| {
        name.contains("_agent_billing_") || name.starts_with("autoscaling_billed_vms_")
    });
    assert_eq!(coded, written.map(str::to_owned).collect());
}

fn page() -> String {
    std::fs::read_to_string("../../docs/billing.md").unwrap()
}
