//! Rust source in pieces: code, texts, comments. As much of the language as rules about words need.

/// What a piece of source is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Everything that is none of the others.
    Code,
    /// What stands in a string literal, without the quotes.
    Text,
    /// What stands behind `//`, with the slashes.
    Comment,
}

/// The pieces of a file, in their order.
pub fn pieces(source: &str) -> Vec<(Piece, String)> {
    let mut found: Vec<(Piece, String)> = Vec::new();
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let (piece, length, text) = if rest.starts_with("//") {
            let length = rest.find('\n').unwrap_or(rest.len());
            (Piece::Comment, length, rest[..length].to_owned())
        } else if first == '"' {
            let length = closing(&rest[1..]) + 2;
            (Piece::Text, length, said(&rest[1..(length - 1).min(rest.len())]))
        } else if let Some((start, end)) = raw(rest) {
            (Piece::Text, end.1, rest[start..end.0].to_owned())
        } else {
            let length = code(rest);
            (Piece::Code, length, rest[..length].to_owned())
        };
        match found.last_mut().filter(|(last, _)| *last == Piece::Code && piece == Piece::Code) {
            Some((_, whole)) => whole.push_str(&text),
            None => found.push((piece, text)),
        }
        rest = rest.get(length..).unwrap_or_default();
    }
    found
}

/// How long the code is that surely is no text: a name, a character literal, or one character.
fn code(rest: &str) -> usize {
    let name = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    if name > 0 {
        return name;
    }
    let mut chars = rest.chars();
    let is_literal = chars.next() == Some('\'')
        && match chars.next() {
            Some('\\') => true,
            Some(_) => chars.next() == Some('\''),
            None => false,
        };
    if is_literal {
        let behind = rest[1..].char_indices().skip(if rest[1..].starts_with('\\') { 2 } else { 1 });
        let quote = behind.into_iter().find(|(_, c)| *c == '\'');
        return quote.map_or(rest.len(), |(at, _)| at + 2);
    }
    rest.chars().next().map_or(0, char::len_utf8)
}

/// Where the text ends that goes on here.
fn closing(text: &str) -> usize {
    let mut escaped = false;
    for (at, character) in text.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at,
            _ => {}
        }
    }
    text.len()
}

/// Where a raw text that begins here starts and ends, and where the code goes on.
fn raw(rest: &str) -> Option<(usize, (usize, usize))> {
    let hashes = rest.strip_prefix('r')?;
    let text = hashes.trim_start_matches('#');
    let count = hashes.len() - text.len();
    text.strip_prefix('"')?;
    let (start, mark) = (count + 2, format!("\"{}", "#".repeat(count)));
    let end = start + rest[start..].find(&mark)?;
    Some((start, (end, end + mark.len())))
}

/// The text without the breaks that are for the source only.
fn said(text: &str) -> String {
    let mut parts = text.split("\\\n");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |whole, part| whole + part.trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_comments_are_told_from_code() {
        let source = "say(\"a \\\"b\\\" \\\n   c\", '\"', r#\"raw \"x\"\"#); // it's\nlet x: &'a str = for_r;";
        let of = |wanted: Piece| -> Vec<String> {
            let found = pieces(source).into_iter().filter(|(piece, _)| *piece == wanted);
            found.map(|(_, text)| text).collect()
        };
        assert_eq!(of(Piece::Text), ["a \\\"b\\\" c", "raw \"x\""]);
        assert_eq!(of(Piece::Comment), ["// it's"]);
        assert_eq!(of(Piece::Code), ["say(", ", '\"', ", "); ", "\nlet x: &'a str = for_r;"]);
    }
}
