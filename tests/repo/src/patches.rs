//! The patches of `tests/bugs`: a header that names the law, the test that must notice, and
//! what is broken, then a diff.

use crate::{files_ending, read};

/// One bug, made on purpose.
#[derive(Debug)]
pub struct Bug {
    /// Its file.
    pub file: String,
    /// The law that it breaks, by number.
    pub law: String,
    /// The package whose test must notice.
    pub package: String,
    /// The file of that test, without folder and ending, or `lib`: it is beside the code.
    pub target: String,
    /// The test that must notice.
    pub test: String,
    /// What is broken, in a sentence.
    pub breaks: String,
}

/// All bugs, by file name.
///
/// # Panics
/// If a header is not complete.
pub fn bugs() -> Vec<Bug> {
    files_ending(".patch")
        .into_iter()
        .filter(|file| file.starts_with("tests/bugs/"))
        .map(|file| parse(&file, &read(&file)))
        .collect()
}

fn parse(file: &str, text: &str) -> Bug {
    let field = |name: &str| {
        let value = text.lines().take_while(|line| !line.starts_with("diff ")).find_map(|line| {
            line.strip_prefix(name).and_then(|rest| rest.strip_prefix(": ")).map(str::trim)
        });
        value.unwrap_or_else(|| panic!("{file} has no line `{name}: …`")).to_owned()
    };
    let test = field("Test");
    let [package, target, name] = test.split(' ').collect::<Vec<_>>()[..] else {
        panic!("{file}: `Test:` is package, test file or lib, test name, with a blank between");
    };
    Bug {
        file: file.to_owned(),
        law: field("Law"),
        package: package.to_owned(),
        target: target.to_owned(),
        test: name.to_owned(),
        breaks: field("Breaks"),
    }
}
