//! Rules about files, whatever is in them.

use std::collections::BTreeSet;
use windlass_repo::source::{product, reachable, rust_files};
use windlass_repo::{assert_none, cargo, files, read};

const LONGEST_FILE: usize = 500;
/// Of a file that is shipped, without its tests.
const LONGEST_OF_PRODUCT: usize = 399;
const LARGEST_FILE: u64 = 1_000_000;

#[test]
fn every_rust_file_is_compiled_by_someone() {
    let roots: Vec<String> =
        cargo::packages().into_values().flat_map(|package| package.roots).collect();
    let compiled: BTreeSet<String> = reachable(&roots);
    let orphans: Vec<String> =
        rust_files().into_iter().filter(|file| !compiled.contains(file)).collect();
    assert_none("no target of cargo reaches these files:", &orphans);
}

#[test]
fn every_rust_file_says_what_it_is() {
    let silent: Vec<String> =
        rust_files().into_iter().filter(|file| !read(file).starts_with("//! ")).collect();
    assert_none("these files do not start with `//! `:", &silent);
}

#[test]
fn no_rust_file_is_longer_than_five_hundred_lines() {
    let files = rust_files().into_iter().map(|file| (file.clone(), read(&file)));
    assert_none("split these files:", &longer(LONGEST_FILE, files));
}

#[test]
fn a_file_of_the_product_is_shorter_than_four_hundred_lines() {
    let product = product();
    assert!(product.len() > 100, "the product was not found");
    assert_none("split these files:", &longer(LONGEST_OF_PRODUCT, product.into_iter()));
}

#[test]
fn modules_are_files_beside_their_folder() {
    let old: Vec<String> =
        rust_files().into_iter().filter(|file| file.ends_with("/mod.rs")).collect();
    assert_none("`foo.rs` beside `foo/`, in place of `foo/mod.rs`:", &old);
}

#[test]
fn nothing_is_left_unfinished_or_skipped() {
    // Put together here, so that this file does not contain them.
    let marks = [
        format!("todo{}", "!("),
        format!("unimplemented{}", "!("),
        format!("#[{}", "ignore"),
        format!("#[{}(", "allow"),
        format!("#![{}(", "allow"),
        format!("dbg{}", "!("),
    ];
    assert_none("these lines are not finished:", &lines_with(rust_files(), &marks));
}

#[test]
fn no_file_names_a_path_of_one_machine() {
    let marks: Vec<String> =
        ["/work/", "/root/", "/farm/", "/home/"].iter().map(|path| format!(" {path}")).collect();
    let quoted = marks.iter().flat_map(|mark| {
        ['"', '\'', '`', '(', '='].map(|before| mark.replace(' ', &before.to_string()))
    });
    let all: Vec<String> = marks.iter().cloned().chain(quoted).collect();
    let texts = files().into_iter().filter(|file| file != "tests/repo/tests/rules/tidy.rs");
    let texts = texts.filter(|file| !file.ends_with(".lock") && is_text(file)).collect();
    assert_none(
        "these lines name a path that other machines do not have:",
        &lines_with(texts, &all),
    );
}

/// Cargo runs what it built of one checkout for another one at the same commit.
#[test]
fn no_test_reads_the_checkout_that_it_was_built_of() {
    // These two ask cargo at run time first.
    let may = ["tests/lab/src/lab.rs", "tests/repo/src/lib.rs"];
    let files = rust_files().into_iter().filter(|file| !may.contains(&file.as_str())).collect();
    let marks = [format!("env!({})", "\"CARGO_MANIFEST_DIR\"")];
    assert_none(
        "tests run in the folder of their package; say where from there:",
        &lines_with(files, &marks),
    );
}

/// A folder that a test makes by itself stays when the test is killed.
#[test]
fn folders_of_tests_are_made_by_the_testkit() {
    // The conformance kit shares nothing; the others keep a file there beyond their end.
    let may = [
        "tests/kit/src/folder.rs",
        "tests/lab/src/address.rs",
        "tests/lab/src/guest.rs",
        "tests/e2e/src/stage.rs",
        "conformance/src/agent/stage.rs",
    ];
    let files = rust_files().into_iter().filter(|file| !may.contains(&file.as_str())).collect();
    let marks = [format!("temp_dir{}", "()")];
    assert_none("`windlass_testkit::Folder` is for this:", &lines_with(files, &marks));
}

#[test]
fn no_file_is_larger_than_a_megabyte() {
    let large: Vec<String> = files()
        .into_iter()
        .filter(|file| {
            let size = std::fs::metadata(windlass_repo::root().join(file)).map(|data| data.len());
            size.is_ok_and(|size| size > LARGEST_FILE)
        })
        .collect();
    assert_none("too large for git:", &large);
}

#[test]
fn the_agent_knows_vms_and_no_files_of_them() {
    let agent = rust_files().into_iter();
    let agent =
        agent.filter(|file| ["agent/src/", "agent/core/"].iter().any(|of| file.starts_with(of)));
    let names = ["VmFile", "vm_file", "vm_files", "qmp"].map(str::to_owned);
    assert_none("a VM may be declared elsewhere:", &lines_with(agent.collect(), &names));
}

/// The files that have more lines, of these names and texts.
fn longer(most: usize, files: impl Iterator<Item = (String, String)>) -> Vec<String> {
    files
        .map(|(file, text)| (text.lines().count(), file))
        .filter(|(lines, _)| *lines > most)
        .map(|(lines, file)| format!("{file}: {lines} lines"))
        .collect()
}

fn lines_with(files: Vec<String>, marks: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for file in files {
        for (at, line) in read(&file).lines().enumerate() {
            if marks.iter().any(|mark| line.contains(mark.as_str())) {
                found.push(format!("{file}:{}: {}", at + 1, line.trim()));
            }
        }
    }
    found
}

fn is_text(file: &str) -> bool {
    std::fs::read(windlass_repo::root().join(file))
        .is_ok_and(|bytes| std::str::from_utf8(&bytes).is_ok())
}
