//! Who can speak with whom: the tables of VERSIONING.md, made from the ranges of versions.
//!
//! Where a table differs from what the ranges say, the test fails; with `UPDATE_EXPECT=1` it
//! writes the tables instead. The reference's releases stand here, because they do not change.

use std::collections::BTreeMap;
use std::fmt::{Display, Write};
use windlass_protocol::version::{InformantVersion, PluginVersion, Versions};
use windlass_repo::{read, root};

const DOCUMENT: &str = "VERSIONING.md";

/// The reference's releases, and the first and last version that each speaks, by number.
type Releases = &'static [(&'static str, u32, u32)];

const THEIR_INFORMANTS: Releases = &[
    ("0.1.0 to 0.1.3", 1, 1),
    ("0.1.4 to 0.6.0", 2, 2),
    ("0.7.0 to 0.9.0", 2, 3),
    ("0.10.0 to 0.12.2", 4, 4),
];
const THEIR_AGENTS: Releases = &[
    ("0.1.0 to 0.1.3", 1, 1),
    ("0.1.4 to 0.6.0", 1, 2),
    ("0.7.0 to 0.9.0", 1, 3),
    ("0.10.0 to 0.12.2", 1, 4),
];
const THEIR_PLUGINS: Releases = &[
    ("0.1.8", 1, 1),
    ("0.1.9 to 0.6.0", 1, 2),
    ("0.7.0 to 0.19.1", 1, 3),
    ("0.20.0 to 0.21.0", 1, 4),
    ("0.22.0", 1, 5),
    ("0.23.0 to 0.27.0", 1, 6),
    ("0.28.0 to 0.41.0", 5, 7),
    ("0.42.0 and later", 7, 7),
];
const THEIR_ASKERS: Releases = &[
    ("0.1.8", 1, 1),
    ("0.1.9 to 0.6.0", 2, 2),
    ("0.7.0 to 0.19.1", 3, 3),
    ("0.20.0 to 0.21.0", 4, 4),
    ("0.22.0", 5, 5),
    ("0.23.0 to 0.27.0", 6, 6),
    ("0.28.0 and later", 7, 7),
];

#[test]
fn the_tables_say_what_the_ranges_say() {
    let tables = BTreeMap::from([
        ("informant", informant_table()),
        ("plugin", plugin_table()),
        ("agent", agent_table()),
    ]);
    let present = read(DOCUMENT);
    let mut made = present.clone();
    for (name, table) in &tables {
        made = with_table(&made, name, table);
    }
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(root().join(DOCUMENT), &made).expect("it can be written");
        return;
    }
    assert!(
        made == present,
        "{DOCUMENT} does not say what the ranges say. Run UPDATE_EXPECT=1 cargo test -p \
         windlass-repo skew, and read the difference. It should be:\n{made}"
    );
}

/// Every pair of ranges: what is used is the highest that both have, and if they have none,
/// neither contains any of the other.
#[test]
fn what_is_used_is_the_highest_that_both_speak() {
    let ranges = || {
        let latest = PluginVersion::SPOKEN.max.number();
        (1..=latest).flat_map(move |min| (min..=latest).map(move |max| (min, max)))
    };
    for (ours, theirs) in ranges().flat_map(|ours| ranges().map(move |theirs| (ours, theirs))) {
        let plugin = |(min, max)| range(min, max, PluginVersion::from_number);
        let informant = |(min, max)| range(min, max, InformantVersion::from_number);
        let common = (ours.0.max(theirs.0)..=ours.1.min(theirs.1)).next_back();
        let shared = plugin(ours).latest_shared(plugin(theirs));
        assert_eq!(shared.map(PluginVersion::number), common, "{ours:?} and {theirs:?}");
        let shared = informant(ours).latest_shared(informant(theirs));
        assert_eq!(shared.map(InformantVersion::number), common, "{ours:?} and {theirs:?}");
        let (stated, taken) = walk(plugin(ours), plugin(theirs));
        assert_eq!(taken.map(PluginVersion::number), common, "{ours:?} and {theirs:?}");
        assert_eq!(stated[0], plugin(ours).max);
    }
}

/// The newest of the reference's agents and plugins speak no more than we do.
#[test]
fn the_reference_speaks_nothing_that_we_do_not() {
    for (release, min, max) in THEIR_PLUGINS.iter().chain(THEIR_ASKERS) {
        for number in *min..=*max {
            let version = PluginVersion::from_number(number);
            assert!(PluginVersion::SPOKEN.contains(version), "{release}: {version}");
        }
    }
}

fn informant_table() -> String {
    let ours = InformantVersion::SPOKEN;
    let of = |(name, min, max): &(&str, u32, u32)| {
        (format!("reference {name}"), range(*min, *max, InformantVersion::from_number))
    };
    let mut agents = vec![("ours".to_owned(), ours)];
    agents.extend(THEIR_AGENTS.iter().map(of));
    let mut informants = vec![("ours".to_owned(), ours)];
    informants.extend((ours.min.number()..=ours.max.number()).map(|number| {
        let version = InformantVersion::from_number(number);
        (format!("ours, limited to {version}"), Versions::only(version))
    }));
    informants.extend(THEIR_INFORMANTS.iter().map(of));

    let heading = |(name, range): &(String, Versions<InformantVersion>)| format!("{name}: {range}");
    let mut table = row(["informant".to_owned()].into_iter().chain(agents.iter().map(heading)));
    table += &rule(agents.len() + 1);
    for informant in &informants {
        let cells = agents.iter().map(|(_, agent)| match informant.1.latest_shared(*agent) {
            Some(version) => version.to_string(),
            None => refused(informant.1, *agent),
        });
        table += &row([heading(informant)].into_iter().chain(cells));
    }
    table
}

fn plugin_table() -> String {
    let mut plugins = vec![("ours".to_owned(), PluginVersion::SPOKEN)];
    plugins.extend(
        PluginVersion::known()
            .map(|version| (format!("any, limited to {version}"), Versions::only(version))),
    );
    plugins.extend(THEIR_PLUGINS.iter().map(|(name, min, max)| {
        (format!("reference {name}"), range(*min, *max, PluginVersion::from_number))
    }));
    let heading = ["plugin", "speaks", "our agent states", "and uses"];
    let mut table = row(heading.map(str::to_owned)) + &rule(4);
    for (name, speaks) in plugins {
        let (stated, taken) = walk(PluginVersion::SPOKEN, speaks);
        let stated: Vec<_> = stated.iter().map(PluginVersion::to_string).collect();
        let taken = taken.map_or_else(|| "none".to_owned(), |version| version.to_string());
        table += &row([name, speaks.to_string(), stated.join(", "), taken]);
    }
    table
}

fn agent_table() -> String {
    let heading = ["agent", "states", "our plugin"];
    let mut table = row(heading.map(str::to_owned)) + &rule(3);
    let askers =
        THEIR_ASKERS.iter().map(|(name, stated, _)| (format!("reference {name}"), *stated));
    let later = PluginVersion::SPOKEN.max.number() + 1;
    for (name, stated) in askers.chain([("one from the future".to_owned(), later)]) {
        let version = PluginVersion::from_number(stated);
        let answer = match PluginVersion::SPOKEN.latest_shared(Versions::only(version)) {
            Some(version) => format!("answers in {version}"),
            None => refused(PluginVersion::SPOKEN, Versions::only(version)),
        };
        table += &row([name, version.to_string(), answer]);
    }
    table
}

/// What an agent states, one after the other, and what is taken.
fn walk(
    agent: Versions<PluginVersion>,
    plugin: Versions<PluginVersion>,
) -> (Vec<PluginVersion>, Option<PluginVersion>) {
    let lower = |version: &PluginVersion| version.before().filter(|lower| agent.contains(*lower));
    let mut stated = Vec::new();
    for version in std::iter::successors(Some(agent.max), lower) {
        stated.push(version);
        if plugin.latest_shared(Versions::only(version)).is_some() {
            return (stated, Some(version));
        }
    }
    (stated, None)
}

/// The reference's words.
fn refused<V: Display + PartialEq>(need: Versions<V>, got: Versions<V>) -> String {
    format!("refused: `Protocol version mismatch: Need {need} but got {got}`")
}

fn range<V>(min: u32, max: u32, version: impl Fn(u32) -> V) -> Versions<V> {
    Versions { min: version(min), max: version(max) }
}

fn row(cells: impl IntoIterator<Item = String>) -> String {
    let mut row = String::from("|");
    for cell in cells {
        write!(row, " {cell} |").expect("a String takes every text");
    }
    row + "\n"
}

fn rule(columns: usize) -> String {
    format!("|{}\n", "---|".repeat(columns))
}

/// The document with this table between its marks.
fn with_table(document: &str, name: &str, table: &str) -> String {
    let (begin, end) = (format!("<!-- skew: {name} -->\n"), "<!-- end -->");
    let (before, rest) = document.split_once(&begin).expect("the document has the mark");
    let (_, after) = rest.split_once(end).expect("the table has an end");
    format!("{before}{begin}{table}{end}{after}")
}
