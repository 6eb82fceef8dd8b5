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

#[test]
fn the_changelog_has_this_release() {
    let text = read("CHANGELOG.md");
    let release = format!("## {}", env!("CARGO_PKG_VERSION"));
    assert!(
        text.contains("## Unreleased") || text.contains(&release),
        "CHANGELOG.md has neither Unreleased nor {release}"
    );
}
