//! No files of a part import each other in a circle.

use windlass_repo::imports::{circles, imports};
use windlass_repo::{assert_none, files_ending};

/// The parts whose files are looked at.
const PARTS: [&str; 7] = ["agent/", "plugin/", "cli/", "demo/", "drivers/", "kit/", "vm-files/"];

#[test]
fn no_files_import_each_other_in_a_circle() {
    let roots = files_ending("/src/lib.rs");
    let roots = roots.iter().filter(|file| PARTS.iter().any(|part| file.starts_with(part)));
    let complaints: Vec<String> =
        roots.flat_map(|file| circles(&imports(file))).map(|circle| circle.join(" ")).collect();
    assert_none("these files import each other in a circle", &complaints);
}
