//! Counts lines of product code: what is compiled into programs that users run, without tests and
//! without the demo. Blank lines and comments count too: they are read.

#![expect(clippy::print_stdout, reason = "it is for a person to read")]

use std::collections::BTreeMap;
use windlass_repo::cargo;
use windlass_repo::source::shipped;

/// Packages that are no product, by the folder that they are in.
const NO_PRODUCT: [&str; 6] =
    ["tests/", "bench/", "conformance/", "demo/", "world/", "drivers/fake/"];

fn main() {
    let packages = cargo::packages().into_values();
    let roots: Vec<String> = packages
        .flat_map(|package| package.roots)
        .filter(|root| root.contains("/src/") && !NO_PRODUCT.iter().any(|no| root.starts_with(no)))
        .collect();
    let mut parts: BTreeMap<String, usize> = BTreeMap::new();
    let mut files: Vec<(usize, String)> = Vec::new();
    for (file, text) in shipped(&roots) {
        let lines = text.lines().count();
        let part = file.split("/src/").next().unwrap_or_default().to_owned();
        *parts.entry(part).or_default() += lines;
        files.push((lines, file));
    }
    files.sort_by(|one, other| other.cmp(one));
    for (part, lines) in &parts {
        println!("{lines:6}  {part}");
    }
    println!("{:6}  in all, in {} files", parts.values().sum::<usize>(), files.len());
    for (lines, file) in files.iter().take(3) {
        println!("{lines:6}  {file}");
    }
}
