//! VERSIONING.md and the constants of `protocol` say the same.

use windlass_protocol::version::{InformantVersion, PluginVersion};
use windlass_repo::{markdown, read};

#[test]
fn the_newest_release_speaks_what_the_table_says() {
    let text = read("VERSIONING.md");
    let table = markdown::section(&text, "Who speaks what").expect("the table has a heading");
    let rows = markdown::rows(table);
    let newest = rows.last().expect("the table has a row");
    assert_eq!(newest[0], env!("CARGO_PKG_VERSION"), "the last row is this release's");
    assert_eq!(newest[1], InformantVersion::SPOKEN.to_string());
    assert_eq!(newest[2], PluginVersion::SPOKEN.to_string());
}

/// A version that is left out would be played by nobody.
#[test]
fn real_guests_are_played_in_every_version() {
    let known = InformantVersion::KNOWN.map(|version| version.to_string());
    let (newest, older) = known.split_last().expect("there is a version");
    let all = format!("\nall=({})\n", known.join(" "));
    assert!(read("dev/guests").contains(&all), "dev/guests lacks {all}");
    let share = format!("dev/guests --only versions:: {}\n", older.join(" "));
    assert!(
        read("dev/test").contains(&share),
        "{newest} is played in full; dev/test lacks {share}"
    );
}

/// `## 1.2.3`, with a date or "unreleased" behind it.
#[test]
fn the_changelog_has_this_release() {
    let text = read("CHANGELOG.md");
    let (_, newest) = text.split_once("\n## ").expect("a section");
    let (heading, rest) = newest.split_once('\n').expect("something below the heading");
    let version = heading.split([' ', ',']).next();
    assert_eq!(version, Some(env!("CARGO_PKG_VERSION")), "the first section is this release's");
    let entries = rest.split("\n## ").next().unwrap_or_default();
    assert!(entries.lines().any(|line| line.starts_with("- ")), "{heading} has no entry");
}
