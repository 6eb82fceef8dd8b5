//! The run as a moving picture: what the terminal showed, as SVG for a README.
//!
//! A page shows such a picture as an image, in which no script runs: it moves by the style sheet
//! inside it. Each word has its own place and length, and blocks are drawn, so that columns stand
//! straight in any monospaced font. What a frame shares with another is there once, and is shown and
//! hidden. Where nothing may move, or nothing can, the picture is the frame of [`Script::pictured`].

use super::recording::Recording;
use super::script::Script;
use super::view::{Frame, Tone, frame};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;
use windlass_protocol::Moment;

/// Between two frames in the recording, at least.
const EVERY: Duration = Duration::from_secs(1);
/// How many frames a recording of any length has, before the last one.
const FRAMES: u32 = 64;
/// How long a frame is shown, in seconds.
const SHOWN: f64 = 0.4;
/// For how many frames the last one stays.
const STAYS: usize = 6;
/// Width of a character and height of a row, in pixels.
const CELL: (f64, f64) = (8.4, 20.0);
const MARGIN: f64 = 14.0;
const BAR: f64 = 30.0;
/// A full block and an empty one, as a frame has them.
const BLOCKS: [char; 2] = ['■', '□'];

/// A word in its place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Word {
    row: usize,
    column: usize,
    text: String,
    tone: Tone,
}

/// The picture.
pub(crate) fn svg(recording: &Recording, script: &Script) -> String {
    let moments = moments(recording);
    let steps: Vec<&str> = script.steps.iter().map(|step| step.name).collect();
    let frames: Vec<Frame> =
        moments.iter().map(|at| frame(&recording.until(*at), &steps, *at)).collect();
    let over = over(recording, script.pictured);
    let still = moments.partition_point(|at| *at < over).saturating_sub(1);
    drawn(&frames, still, "windlass demo: three VMs share a node")
}

/// The moments of the frames; the last one stays for a while.
fn moments(recording: &Recording) -> Vec<Moment> {
    let ended = recording.ended();
    let every = EVERY.max(ended.since(recording.began) / FRAMES);
    let each = std::iter::successors(Some(recording.began), |at| Some(at.after(every)));
    let mut moments: Vec<Moment> = each.take_while(|at| *at < ended).collect();
    moments.extend([ended; STAYS]);
    moments
}

/// When a step was over: when the next began.
fn over(recording: &Recording, step: &str) -> Moment {
    let mut after = recording.acts.iter().skip_while(|act| act.name != step).skip(1);
    after.next().map_or(recording.ended(), |act| act.began)
}

/// Frames as one picture; `still` is the one that stands where nothing moves.
fn drawn(frames: &[Frame], still: usize, title: &str) -> String {
    let rows = frames.iter().map(|frame| frame.0.len()).max().unwrap_or(0);
    let words = words(frames);
    let columns = words.keys().map(|word| word.column + length(&word.text)).max().unwrap_or(0);
    let (width, height) = (cells(columns) + 2.0 * MARGIN, lines(rows) + BAR + 2.0 * MARGIN);
    let mut groups: BTreeMap<Vec<bool>, Vec<Word>> = BTreeMap::new();
    for (word, shown) in words {
        groups.entry(shown).or_default().push(word);
    }
    let (mut moves, mut body) = (String::new(), String::new());
    for (index, (shown, words)) in groups.iter().enumerate() {
        let hidden = if shown.get(still) == Some(&true) { "" } else { " visibility=\"hidden\"" };
        if shown.contains(&false) {
            let _ = writeln!(moves, ".m{index}{{animation-name:m{index}}}{}", keys(index, shown));
            let _ = writeln!(body, "<g class=\"m m{index}\"{hidden}>");
        } else {
            body.push_str("<g>\n");
        }
        for word in words {
            draw(&mut body, word);
        }
        body.push_str("</g>\n");
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\" aria-label=\"{0}\">\n\
         <title>{0}</title>\n<style>\n{1}@media (prefers-reduced-motion: no-preference) {{\n\
         .m{{animation:{2:.1}s step-end infinite}}\n{moves}}}\n</style>\n\
         <rect class=\"window\" x=\".5\" y=\".5\" width=\"{3:.0}\" height=\"{4:.0}\" rx=\"8\"/>\n\
         <g class=\"button\"><circle cx=\"20\" cy=\"18\" r=\"5\"/><circle cx=\"38\" cy=\"18\" r=\"5\"/>\
         <circle cx=\"56\" cy=\"18\" r=\"5\"/></g>\n{body}</svg>\n",
        escaped(title),
        include_str!("picture.css"),
        each(frames.len()) * SHOWN,
        width - 1.0,
        height - 1.0,
    )
}

/// Every word, and in which frames it is shown.
fn words(frames: &[Frame]) -> BTreeMap<Word, Vec<bool>> {
    let mut words: BTreeMap<Word, Vec<bool>> = BTreeMap::new();
    for (index, frame) in frames.iter().enumerate() {
        for word in words_of(frame) {
            let shown = words.entry(word).or_insert_with(|| vec![false; frames.len()]);
            shown[index] = true;
        }
    }
    words
}

fn words_of(frame: &Frame) -> Vec<Word> {
    let mut words = Vec::new();
    for (row, spans) in frame.0.iter().enumerate() {
        let mut column = 0;
        for span in spans {
            for part in span.text.split_inclusive(' ') {
                let text = part.trim_end();
                if !text.is_empty() {
                    words.push(Word { row, column, text: text.to_owned(), tone: span.tone });
                }
                column += length(part);
            }
        }
    }
    words
}

/// When a group is shown and when it is hidden, over one run.
fn keys(index: usize, shown: &[bool]) -> String {
    let mut keys = format!("@keyframes m{index}{{");
    let mut last = None;
    for (at, shown) in shown.iter().enumerate().map(|(at, is)| (each(at) / each(shown.len()), is)) {
        if last != Some(shown) {
            let state = if *shown { "visible" } else { "hidden" };
            let _ = write!(keys, "{}%{{visibility:{state}}}", (at * 1e5).round() / 1e3);
        }
        last = Some(shown);
    }
    keys.push('}');
    keys
}

fn draw(svg: &mut String, word: &Word) {
    let tone = class(word.tone);
    let (x, y) = (MARGIN + cells(word.column), BAR + MARGIN + lines(word.row) + 14.0);
    if word.text.chars().all(|c| BLOCKS.contains(&c)) {
        for (place, block) in word.text.chars().enumerate() {
            let empty = if block == BLOCKS[0] { "" } else { " empty" };
            let (x, y) = (x + cells(place) + 0.7, y - 9.0);
            let _ = writeln!(
                svg,
                "<rect class=\"{tone}{empty}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"7\" height=\"9\"/>"
            );
        }
        return;
    }
    let (long, text) = (cells(length(&word.text)), escaped(&word.text));
    let _ = writeln!(
        svg,
        "<text class=\"{tone}\" x=\"{x:.1}\" y=\"{y:.1}\" textLength=\"{long:.1}\">{text}</text>"
    );
}

const fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "plain",
        Tone::Strong => "strong",
        Tone::Faint => "faint",
        Tone::Good => "good",
        Tone::Bad => "bad",
        Tone::Short => "short",
        Tone::Held => "held",
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn length(text: &str) -> usize {
    text.chars().count()
}

fn cells(count: usize) -> f64 {
    each(count) * CELL.0
}

fn lines(count: usize) -> f64 {
    each(count) * CELL.1
}

#[expect(clippy::cast_precision_loss, reason = "a picture has few cells and frames")]
fn each(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests;
