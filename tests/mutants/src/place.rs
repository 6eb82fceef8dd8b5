//! Where in a text a line and column are, and where a function's body begins.

use crate::list::{Place, Span};
use std::ops::Range;

/// The bytes of a span.
pub(crate) fn bytes(text: &str, span: Span) -> Option<Range<usize>> {
    Some(byte(text, span.start)?..byte(text, span.end)?)
}

fn byte(text: &str, place: Place) -> Option<usize> {
    let mut lines = text.split_inclusive('\n');
    let before: usize = lines.by_ref().take(place.line.checked_sub(1)?).map(str::len).sum();
    let line = lines.next().unwrap_or_default();
    let within: usize = line.chars().take(place.column.checked_sub(1)?).map(char::len_utf8).sum();
    Some(before + within)
}

/// The body of a function, within its braces; `None` if the compiler runs it, or if none is
/// found.
pub(crate) fn body(text: &str, function: Range<usize>) -> Option<Range<usize>> {
    let whole = text.get(function.clone())?;
    let signature = skip_attributes(whole)?;
    let head = whole.get(signature..)?;
    let name = word(head, "fn")?;
    if word(head.get(..name)?, "const").is_some() {
        return None;
    }
    let mut at = signature + name + whole.get(signature + name..)?.find(['<', '('])?;
    if whole.get(at..)?.starts_with('<') {
        at += angle(whole.get(at..)?)?;
    }
    at += round(whole.get(at..)?)?;
    let open = at + whole.get(at..)?.find('{')? + 1;
    let close = whole.rfind('}')?;
    Some(function.start + open..function.start + close)
}

/// Where a function begins after its documentation and attributes.
fn skip_attributes(text: &str) -> Option<usize> {
    let mut at = 0;
    loop {
        let rest = text.get(at..)?;
        at += rest.len() - rest.trim_start().len();
        let rest = text.get(at..)?;
        if rest.starts_with("//") {
            at += rest.find('\n')?;
        } else if rest.starts_with("#[") {
            at += enclosed(rest.get(1..)?, '[', ']')? + 1;
        } else {
            return Some(at);
        }
    }
}

/// Where the text goes on after this word.
fn word(text: &str, wanted: &str) -> Option<usize> {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(wanted).map(|(at, _)| (at, at + wanted.len())).find_map(|(from, to)| {
        let before = text.get(..from)?.chars().next_back().is_some_and(part);
        let after = text.get(to..)?.chars().next().is_some_and(part);
        (!before && !after).then_some(to)
    })
}

/// How long what is in round brackets is, with the brackets.
fn round(text: &str) -> Option<usize> {
    enclosed(text, '(', ')')
}

fn enclosed(text: &str, open: char, close: char) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        if c == open {
            depth += 1;
        } else if c == close {
            depth = depth.checked_sub(1)?;
            if depth == 0 {
                return Some(at + c.len_utf8());
            }
        }
    }
    None
}

/// How long what is in angle brackets is; the arrow of a function's type is none.
fn angle(text: &str) -> Option<usize> {
    let without_arrows = text.replace("->", "--");
    enclosed(&without_arrows, '<', '>')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_found_whatever_its_signature() {
        for (text, found) in [
            ("fn a() {1}", Some("1")),
            (
                "/// Says (what) {is}.\n#[expect(x, reason = \"[y]\")]\npub(crate) async fn a<F: Fn(u8) -> u8>(f: F) -> [u8; 2] where F: Send { {2} }",
                Some(" {2} "),
            ),
            ("const fn a() {1}", None),
            ("fn a();", None),
        ] {
            let body = body(text, 0..text.len());
            assert_eq!(body.map(|body| &text[body]), found, "{text}");
        }
    }

    #[test]
    fn columns_are_characters() {
        let at = |line, column| Place { line, column };
        let span = Span { start: at(2, 2), end: at(2, 3) };
        assert_eq!(bytes("ü\nüxü\n", span), Some(5..6));
    }
}
