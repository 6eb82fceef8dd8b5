//! A frame as a picture: what the terminal shows, as SVG for a README.
//!
//! A window with its own dark ground, so that it looks the same on light and dark pages. Each
//! span has its place and length, so that columns stand straight in any monospaced font.

use super::view::{Frame, Tone, WIDTH};
use std::fmt::Write;

/// Width of a character and height of a row, in pixels.
const CELL: (f64, f64) = (8.4, 20.0);
const MARGIN: f64 = 14.0;
const BAR: f64 = 30.0;

/// The picture.
pub(crate) fn svg(frame: &Frame, title: &str) -> String {
    let (width, height) = (cells(WIDTH) + 2.0 * MARGIN, rows(frame.0.len()) + BAR + 2.0 * MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\" aria-label=\"{0}\">\n\
         <title>{0}</title>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#161b22\"/>\n\
         <g fill=\"#484f58\"><circle cx=\"20\" cy=\"18\" r=\"5\"/><circle cx=\"38\" cy=\"18\" r=\"5\"/>\
         <circle cx=\"56\" cy=\"18\" r=\"5\"/></g>\n\
         <g font-family=\"ui-monospace, SFMono-Regular, Menlo, 'DejaVu Sans Mono', monospace\" \
         font-size=\"14\" xml:space=\"preserve\">\n",
        escaped(title)
    );
    for (index, row) in frame.0.iter().enumerate() {
        let y = BAR + MARGIN + rows(index) + 14.0;
        let mut column = 0;
        for span in row {
            let length = span.text.chars().count();
            let text = span.text.trim();
            if !text.is_empty() {
                let lead = span.text.chars().take_while(|c| c.is_whitespace()).count();
                let x = MARGIN + cells(column + lead);
                let long = cells(text.chars().count());
                let _ = writeln!(
                    svg,
                    "<text x=\"{x:.1}\" y=\"{y:.1}\" textLength=\"{long:.1}\"{}>{}</text>",
                    look(span.tone),
                    escaped(text)
                );
            }
            column += length;
        }
    }
    svg.push_str("</g>\n</svg>\n");
    svg
}

const fn look(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => " fill=\"#c9d1d9\"",
        Tone::Strong => " fill=\"#f0f6fc\" font-weight=\"bold\"",
        Tone::Faint => " fill=\"#8b949e\"",
        Tone::Good => " fill=\"#3fb950\"",
        Tone::Bad => " fill=\"#ff7b72\"",
        Tone::Short => " fill=\"#e3b341\"",
        Tone::Held => " fill=\"#58a6ff\"",
    }
}

/// Text as SVG has it. Runs of blanks have their width: some browsers fold what is not unbroken.
fn escaped(text: &str) -> String {
    let text = text.replace(' ', "\u{a0}");
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[expect(clippy::cast_precision_loss, reason = "a screen has few cells")]
fn cells(count: usize) -> f64 {
    count as f64 * CELL.0
}

#[expect(clippy::cast_precision_loss, reason = "a screen has few cells")]
fn rows(count: usize) -> f64 {
    count as f64 * CELL.1
}

#[cfg(test)]
mod tests {
    use super::super::view::Span;
    use super::*;

    #[test]
    fn every_word_has_its_place_and_stays_text() {
        let span = |text: &str, tone| Span { text: text.to_owned(), tone };
        let frame = Frame(vec![vec![span(" a ", Tone::Plain), span("<b> & c", Tone::Bad)]]);
        let svg = svg(&frame, "\"x\"");
        assert!(svg.contains("<text x=\"22.4\" y=\"58.0\" textLength=\"8.4\" fill=\"#c9d1d9\">a<"));
        assert!(svg.contains("x=\"39.2\" y=\"58.0\" textLength=\"58.8\""), "{svg}");
        assert!(svg.contains(">&lt;b&gt;\u{a0}&amp;\u{a0}c</text>"));
        assert!(svg.contains("<title>&quot;x&quot;</title>"));
    }
}
