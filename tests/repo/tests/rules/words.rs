//! Words: what people read says the same of the same, in the words of docs/troubleshooting.md.

use windlass_repo::lexed::{Piece, pieces};
use windlass_repo::source::talking;
use windlass_repo::{assert_none, files_ending, markdown, read};

/// The page with the table of words.
const PAGE: &str = "docs/troubleshooting.md";

/// Pages on what the project itself promises to those who use it.
const ON_PROMISES: [&str; 1] = ["docs/reliability.md"];

#[test]
fn what_people_read_uses_the_words_of_the_table() {
    let stale = stale_words();
    assert!(stale.iter().any(|word| word == "promised"), "the table of words was not found");
    let mut found = Vec::new();
    for (file, text) in talking() {
        // What clap shows of a command stands in comments.
        let is_help = file.starts_with("cli/src/args.rs") || file.starts_with("cli/src/command");
        for (piece, text) in pieces(&text) {
            let is_read = match piece {
                Piece::Text => true,
                Piece::Comment => is_help && text.starts_with("///"),
                Piece::Code => false,
            };
            let said = stale.iter().filter(|word| is_read && text.contains(word.as_str()));
            found.extend(said.map(|word| format!("{file}: {word}: {text}")));
        }
    }
    for file in pages() {
        let text = read(&file);
        let words = markdown::section(&text, "Words").filter(|_| file == PAGE).unwrap_or_default();
        let text = text.replace(words, "");
        for word in stale.iter().filter(|word| text.contains(word.as_str())) {
            found.push(format!("{file}: {word}"));
        }
    }
    assert_none(&format!("{PAGE} has other words for:"), &found);
}

/// From level info on, what is logged is for operators: no type as Rust prints it.
#[test]
fn log_lines_show_no_type_as_rust_prints_it() {
    let mut found = Vec::new();
    for (file, text) in talking() {
        for line in log_lines(&text) {
            let debug = line.iter().any(|(piece, text)| match piece {
                Piece::Code => shows_debug(text),
                Piece::Text => text.contains(":?}") || text.contains(":#?}"),
                Piece::Comment => false,
            });
            if debug {
                let whole: String = line.into_iter().map(|(_, text)| text).collect();
                found.push(format!("{file}: {whole}"));
            }
        }
    }
    assert_none("lines of the log that show a type as Rust prints it:", &found);
}

/// The words of the last column, each in a list with commas.
fn stale_words() -> Vec<String> {
    let text = read(PAGE);
    let section = markdown::section(&text, "Words").unwrap_or_default();
    let rows = markdown::rows(section);
    let cells = rows.iter().filter_map(|row| row.get(2));
    let words = cells.flat_map(|cell| cell.split(','));
    words.map(|word| word.trim().to_owned()).filter(|word| !word.is_empty()).collect()
}

/// The pages for those who run Windlass.
fn pages() -> Vec<String> {
    let mut pages = files_ending(".md");
    pages.retain(|page| {
        let is_page = page.strip_prefix("docs/").is_some_and(|name| !name.contains('/'));
        (is_page || page == "README.md") && !ON_PROMISES.contains(&page.as_str())
    });
    assert!(pages.len() > 5, "the pages were not found");
    pages
}

/// What stands between the brackets of each line that is logged at info or above.
fn log_lines(source: &str) -> Vec<Vec<(Piece, String)>> {
    const STARTS: [&str; 5] = ["info!(", "warn!(", "error!(", "log::info(", "log::warn("];
    let mut lines: Vec<Vec<(Piece, String)>> = Vec::new();
    let mut depth = 0;
    for (piece, text) in pieces(source) {
        let mut rest = text.as_str();
        while piece == Piece::Code && !rest.is_empty() {
            if depth == 0 {
                let start = |word: &&str| rest.find(*word).map(|at| at + word.len());
                let Some(at) = STARTS.iter().filter_map(start).min() else { break };
                (rest, depth) = (&rest[at..], 1);
                lines.push(Vec::new());
            }
            let end = closing(rest, &mut depth);
            push(&mut lines, piece, &rest[..end]);
            rest = &rest[end..];
        }
        if piece == Piece::Text && depth > 0 {
            push(&mut lines, piece, &text);
        }
    }
    lines
}

fn push(lines: &mut [Vec<(Piece, String)>], piece: Piece, text: &str) {
    if let Some(line) = lines.last_mut() {
        line.push((piece, text.to_owned()));
    }
}

/// Where the brackets that are open close, or the end.
fn closing(text: &str, depth: &mut u32) -> usize {
    for (at, character) in text.char_indices() {
        match character {
            '(' => *depth += 1,
            ')' => *depth -= 1,
            _ => {}
        }
        if *depth == 0 {
            return at;
        }
    }
    text.len()
}

/// Whether `?name` stands there; what `?` ends is followed by no name.
fn shows_debug(code: &str) -> bool {
    code.split('?').skip(1).any(|rest| rest.starts_with(|c: char| c.is_alphabetic() || c == '_'))
}

#[test]
fn a_line_of_the_log_is_found_over_several_lines() {
    let source = "let a = b?; info!(\n  x = %y(1)?,\n  ?order, \"ordered (x)\"\n); debug!(?z); warn!(\"{x:?}\");";
    let shown: Vec<bool> = log_lines(source)
        .iter()
        .map(|line| line.iter().any(|(_, text)| shows_debug(text) || text.contains(":?}")))
        .collect();
    assert_eq!(shown, [true, true]);
}
