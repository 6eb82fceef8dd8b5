//! Puts many mutants into one build, for `dev/mutants`.
//!
//! cargo-mutants says which mutants there are, and tries each by a build of its own, which takes
//! longer than all of its tests. Here a function gets all its mutants at once: its body is told
//! by `WINDLASS_MUTANT` which of them it is. What cannot be told so, a constant or a function that
//! runs in the compiler, is left to a build of its own.

mod list;
mod place;
mod programs;
mod weave;

use anyhow::{Context, Result, bail};
use list::Mutant;
use std::io::Write;
use std::path::Path;
use weave::Arm;

const HELP: &str = "\
windlass-mutants: reads what `cargo mutants --list --json` says from its input

  windlass-mutants order SEED [FOLDER...]   a line per mutant, KEY NUMBER NAME, shuffled by the seed
  windlass-mutants weave TREE NUMBER...     puts these into the files of TREE; prints NUMBER
                                            FILE FIRST LAST FROM TO: its lines now, and those of
                                            its whole function
  windlass-mutants diff NUMBER              one of them as a patch
  windlass-mutants programs                 reads what `cargo test --no-run --message-format json` says;
                                            prints PACKAGE TARGET FOLDER PROGRAM for each
";

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let said = match words.as_slice() {
        ["order", seed, folders @ ..] => order(&list::read()?, seed, folders),
        ["weave", tree, numbers @ ..] => woven(&list::read()?, Path::new(tree), numbers)?,
        ["diff", number] => one(&list::read()?, number)?.diff.clone(),
        ["programs"] => programs::programs(std::io::stdin().lock())?,
        ["--help"] => HELP.to_owned(),
        _ => bail!("unknown arguments {words:?}\n{HELP}"),
    };
    Ok(std::io::stdout().write_all(said.as_bytes())?)
}

fn order(all: &[Mutant], seed: &str, folders: &[&str]) -> String {
    let wanted =
        |file: &str| folders.is_empty() || folders.iter().any(|folder| file.starts_with(folder));
    let named = all.iter().enumerate().filter(|(_, mutant)| wanted(&mutant.file));
    let mut lines: Vec<String> = named
        .map(|(number, mutant)| format!("{} {} {}\n", mutant.key(seed), number + 1, mutant.name))
        .collect();
    lines.sort();
    lines.concat()
}

fn woven(all: &[Mutant], tree: &Path, numbers: &[&str]) -> Result<String> {
    let mut chosen = Vec::new();
    for number in numbers {
        chosen.push((number.parse()?, one(all, number)?));
    }
    let mut said = String::new();
    for Arm { file, lines, function, number } in weave::weave(tree, &chosen)? {
        let [first, last, from, to] =
            [lines.start(), lines.end(), function.start(), function.end()];
        said.push_str(&format!("{number} {file} {first} {last} {from} {to}\n"));
    }
    Ok(said)
}

/// The mutant of this number, from one on.
fn one<'a>(all: &'a [Mutant], number: &str) -> Result<&'a Mutant> {
    let index: usize = number.parse().with_context(|| format!("{number} is no number"))?;
    let mutant = index.checked_sub(1).and_then(|index| all.get(index));
    mutant.with_context(|| format!("there are {} mutants, and no mutant {number}", all.len()))
}
