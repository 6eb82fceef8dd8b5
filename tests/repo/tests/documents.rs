//! Documents: what they point at exists.

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
fn the_map_names_every_package() {
    let map = read("ARCHITECTURE.md");
    let missing: Vec<String> = windlass_repo::cargo::packages()
        .into_values()
        .filter(|package| !map.contains(&format!("`{}/`", package.folder)))
        .map(|package| package.folder)
        .collect();
    assert_none("ARCHITECTURE.md does not say what these are:", &missing);
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
