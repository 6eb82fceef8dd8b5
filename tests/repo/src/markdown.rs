//! Documents: their tables and their links.

/// The rows of each table, without heading and rule, as cells without surrounding blanks.
pub fn rows(text: &str) -> Vec<Vec<String>> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let is_rule = |line: &str| line.starts_with("|-") || line.starts_with("| -");
    let heading = |at: usize| lines.get(at + 1).is_some_and(|next| is_rule(next));
    lines
        .iter()
        .enumerate()
        .filter(|(at, line)| line.starts_with('|') && !is_rule(line) && !heading(*at))
        .map(|(_, line)| cells(line))
        .collect()
}

/// The part of a document under a heading that contains these words, up to the next heading
/// of the same or a higher level.
pub fn section<'a>(text: &'a str, words: &str) -> Option<&'a str> {
    let mut start = None;
    let mut at = 0;
    let mut fenced = false;
    for line in text.split_inclusive('\n') {
        fenced ^= line.starts_with("```");
        let level = if fenced { 0 } else { line.chars().take_while(|c| *c == '#').count() };
        match start {
            Some((from, depth)) if level > 0 && level <= depth => return Some(&text[from..at]),
            None if level > 0 && line.contains(words) => start = Some((at + line.len(), level)),
            Some(_) | None => {}
        }
        at += line.len();
    }
    start.map(|(from, _)| &text[from..])
}

/// The text between the first pair of back-quotes.
pub fn code(cell: &str) -> Option<&str> {
    cell.split('`').nth(1)
}

/// Where the links of a document lead.
pub fn links(text: &str) -> Vec<String> {
    text.match_indices("](")
        .filter_map(|(at, _)| text[at + 2..].split(')').next())
        .map(str::to_owned)
        .collect()
}

fn cells(line: &str) -> Vec<String> {
    // An escaped bar is part of a cell.
    let plain = line.replace("\\|", "\u{1}");
    plain.trim_matches('|').split('|').map(|cell| cell.trim().replace('\u{1}', "|")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_gives_its_rows() {
        let text = "| a | b |\n|---|---|\n| `x` | one \\| two |\n\ntext | no table\n";
        assert_eq!(rows(text), [["`x`", "one | two"]]);
    }

    #[test]
    fn a_section_ends_at_the_next_heading_of_its_level() {
        let text = "# A\nx\n## B\ny\n# C\nz\n";
        assert_eq!(section(text, "A"), Some("x\n## B\ny\n"));
        assert_eq!(section(text, "B"), Some("y\n"));
        assert_eq!(section(text, "D"), None);
    }

    #[test]
    fn a_link_gives_its_destination() {
        assert_eq!(links("see [a](b.md#c) and [d](e)"), ["b.md#c", "e"]);
    }
}
