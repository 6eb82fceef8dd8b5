//! Cases and the rules of `docs/protocol/`, compared: neither names what the other does not have.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use windlass_conformance::{Listed, agent, informant, plugin};

const PAGES: [&str; 3] = ["README.md", "informant.md", "plugin.md"];

#[test]
fn each_rule_has_an_id_of_its_own() {
    let mut seen = BTreeSet::new();
    for (id, _) in rules() {
        assert!(seen.insert(id.clone()), "{id} stands there twice");
        let parts: Vec<&str> = id.split('-').collect();
        let shaped = parts.len() == 3
            && ["I", "P", "J"].contains(&parts[0])
            && parts[1].chars().all(|c| c.is_ascii_uppercase())
            && parts[2].parse::<u32>().is_ok();
        assert!(shaped, "{id} is no id of a rule");
    }
    assert!(seen.len() > 80, "the rules were not found");
}

#[test]
fn each_case_names_rules_that_are_there() {
    let known: BTreeSet<String> = rules().into_iter().map(|(id, _)| id).collect();
    for Listed { name, rules, .. } in cases() {
        assert!(!rules.is_empty(), "{name} names no rule");
        for rule in rules {
            assert!(known.contains(*rule), "{name} names {rule}, which no page has");
        }
    }
}

/// A case that the reference is excused from is about a rule that says what the reference does.
#[test]
fn a_case_is_ours_where_its_rules_say_so() {
    let said: BTreeMap<String, String> = rules().into_iter().collect();
    let names = |rule: &&str| {
        ["*Ours*", "*ours*", "The reference"].iter().any(|word| said[*rule].contains(word))
    };
    for Listed { name, rules, ours, .. } in cases() {
        assert!(!ours || rules.iter().any(names), "{name} is ours, and {rules:?} are not");
    }
}

#[test]
fn each_rule_is_tried_or_says_why_not() {
    let tried: BTreeSet<&str> = cases().into_iter().flat_map(|case| case.rules).copied().collect();
    for (id, text) in rules() {
        let excused = text.contains("*Not observed by the kit: ");
        assert!(tried.contains(id.as_str()) || excused, "no case is about {id}");
        assert!(
            !(tried.contains(id.as_str()) && excused),
            "{id} is tried, and says that it is not"
        );
    }
}

#[test]
fn each_case_has_a_name_of_its_own() {
    let mut names = BTreeMap::new();
    for Listed { name, .. } in cases() {
        *names.entry(name).or_insert(0) += 1;
    }
    let twice: Vec<_> = names.into_iter().filter(|(_, count)| *count > 1).collect();
    assert!(twice.is_empty(), "{twice:?}");
}

fn cases() -> Vec<Listed> {
    let agent = [agent::informant_catalogue(), agent::plugin_catalogue()].concat();
    [informant::catalogue(), plugin::catalogue(), agent].concat()
}

/// Each rule's id and text: a paragraph that begins with the id in bold.
fn rules() -> Vec<(String, String)> {
    let folder = Path::new("../docs/protocol");
    let mut found = Vec::new();
    for page in PAGES {
        let text = std::fs::read_to_string(folder.join(page)).expect("the page is there");
        for paragraph in text.split("\n\n") {
            let Some(rest) = paragraph.trim().strip_prefix("**") else { continue };
            let (id, text) = rest.split_once("**").expect("bold text ends");
            found.push((id.to_owned(), text.to_owned()));
        }
    }
    found
}
