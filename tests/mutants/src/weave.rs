//! A function with all its mutants in one body.

use crate::list::Mutant;
use crate::place::{body, bytes};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fs;
use std::ops::{Range, RangeInclusive};
use std::path::Path;

/// Where a mutant of a function is written down now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Arm {
    pub(crate) file: String,
    /// Its lines, from one on.
    pub(crate) lines: RangeInclusive<usize>,
    /// Those of all that was put into its function.
    pub(crate) function: RangeInclusive<usize>,
    pub(crate) number: u32,
}

/// A mutant: its number, what is replaced, by what.
type Change<'a> = (u32, Range<usize>, &'a str);

/// Which mutant the program is to be; zero is none.
const WHICH: &str = "{ static WHICH: ::std::sync::LazyLock<u32> = ::std::sync::LazyLock::new(|| \
     ::std::env::var(\"WINDLASS_MUTANT\").ok().and_then(|number| number.parse().ok()).unwrap_or(0)); *WHICH }";

/// Puts mutants into the files of a tree. What is not among the answers could not be put there.
pub(crate) fn weave(tree: &Path, mutants: &[(u32, &Mutant)]) -> Result<Vec<Arm>> {
    let mut files: BTreeMap<&str, Vec<(u32, &Mutant)>> = BTreeMap::new();
    for (number, mutant) in mutants {
        files.entry(&mutant.file).or_default().push((*number, mutant));
    }
    let mut arms = Vec::new();
    for (file, mutants) in files {
        let path = tree.join(file);
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let (woven, of_file) = weave_text(&text, file, &mutants);
        fs::write(&path, woven).with_context(|| path.display().to_string())?;
        arms.extend(of_file);
    }
    Ok(arms)
}

/// The text of a file with these mutants, and where each is.
fn weave_text(text: &str, file: &str, mutants: &[(u32, &Mutant)]) -> (String, Vec<Arm>) {
    let mut bodies: Vec<(Range<usize>, Vec<Change<'_>>)> = Vec::new();
    for (number, mutant) in mutants {
        let Some((body, replaced)) = places(text, mutant) else { continue };
        let change = (*number, replaced, mutant.replacement.as_str());
        match bodies.iter_mut().find(|(other, _)| *other == body) {
            Some((_, changes)) => changes.push(change),
            None => bodies.push((body, vec![change])),
        }
    }
    bodies.sort_by_key(|(body, _)| body.start);
    let (mut woven, mut arms, mut done) = (String::with_capacity(text.len() * 2), Vec::new(), 0);
    for (body, changes) in bodies {
        // A function within another one: its mutants are left out.
        if body.start < done {
            continue;
        }
        woven.push_str(&text[done..body.start]);
        let (begins, mut of_function) = (line(&woven), Vec::new());
        woven.push_str(&format!("match {WHICH} {{\n"));
        for (number, replaced, by) in changes {
            let first = line(&woven);
            woven.push_str(&format!("{number} => {{"));
            woven.push_str(&text[body.start..replaced.start]);
            // A negative number after a minus, or a word after a word.
            woven.push_str(&format!(" {by} "));
            woven.push_str(&text[replaced.end..body.end]);
            woven.push_str("}\n");
            of_function.push((first..=line(&woven) - 1, number));
        }
        woven.push_str(&format!("_ => {{{}}}\n}}\n", &text[body.clone()]));
        let function = begins..=line(&woven) - 1;
        arms.extend(of_function.into_iter().map(|(lines, number)| Arm {
            file: file.to_owned(),
            lines,
            function: function.clone(),
            number,
        }));
        done = body.end;
    }
    woven.push_str(&text[done..]);
    (woven, arms)
}

/// The body of a mutant's function, and what is replaced in it.
fn places(text: &str, mutant: &Mutant) -> Option<(Range<usize>, Range<usize>)> {
    let function = bytes(text, mutant.function.as_ref()?.span)?;
    let body = body(text, function)?;
    let replaced = bytes(text, mutant.span)?;
    (body.start <= replaced.start && replaced.end <= body.end).then_some((body, replaced))
}

/// The line that is written next.
fn line(text: &str) -> usize {
    1 + text.bytes().filter(|byte| *byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::list::{Function, Place, Span};

    #[test]
    fn a_function_has_its_mutants_beside_itself() {
        let text = "fn a(x: u8) -> bool {\n    x < 3\n}\nconst N: u8 = 3 + 4;\n";
        let at = |line, column| Place { line, column };
        let function = || Some(Function { span: Span { start: at(1, 1), end: at(3, 2) } });
        let mutant = |start, end, by: &str, function| Mutant {
            name: String::new(),
            file: "a.rs".to_owned(),
            span: Span { start, end },
            replacement: by.to_owned(),
            function,
            diff: String::new(),
        };
        let compares = mutant(at(2, 7), at(2, 8), ">", function());
        let is_true = mutant(at(2, 5), at(2, 10), "true", function());
        let constant = mutant(at(4, 17), at(4, 18), "-", None);
        let all = [(7, &compares), (8, &is_true), (9, &constant)];
        let (woven, arms) = weave_text(text, "a.rs", &all);
        let expected = format!(
            "fn a(x: u8) -> bool {{match {WHICH} {{\n7 => {{\n    x  >  3\n}}\n8 => {{\n     true \n}}\n\
             _ => {{\n    x < 3\n}}\n}}\n}}\nconst N: u8 = 3 + 4;\n"
        );
        assert_eq!(woven, expected);
        let arm = |lines, number| Arm { file: "a.rs".to_owned(), lines, function: 1..=11, number };
        assert_eq!(arms, [arm(2..=4, 7), arm(5..=7, 8)]);
    }
}
