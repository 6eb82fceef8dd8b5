//! Which labels of a chart have room beside each other.
//!
//! The page draws a plot at any width from [`NARROW`] up, and its words keep their size. So a label
//! is chosen for the narrowest plot in which it may be shown: what does not touch there touches
//! nowhere. A wide label is a step's name, a narrow one its number.

/// The narrowest plot in which names are shown, in pixels. The style sheet has the same figure.
pub(super) const WIDE: f64 = 600.0;
/// The narrowest plot: that of a page 320 pixels wide.
pub(super) const NARROW: f64 = 230.0;
/// The most that a character of 12 pixels takes on average, in any usual font.
const CHARACTER: f64 = 6.8;
/// Between two labels.
const GAP: f64 = 4.0;
/// How far a label may stand out of the plot on either side.
const MARGIN: f64 = 12.0;
/// Seconds between two labels of the axis of time.
const SECONDS: [u32; 8] = [1, 5, 10, 30, 60, 300, 600, 3600];

/// A word above or below a plot.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Label {
    /// Its middle, as a part of the plot's width.
    pub(super) at: f64,
    /// The word.
    pub(super) text: String,
}

/// Labels of stretches, from and to as parts of a plot of `width` pixels: names where all of one has
/// room in its stretch, else its number, counted from 1. What would touch its neighbour is left out.
pub(super) fn stretches<'a>(
    names: impl IntoIterator<Item = (f64, f64, &'a str)>,
    width: f64,
) -> Vec<Label> {
    let labels = names.into_iter().zip(1..).map(|((from, to, name), number): (_, u32)| {
        let fits = width >= WIDE && size(name) + GAP <= (to - from) * width;
        let text = if fits { name.to_owned() } else { number.to_string() };
        Label { at: from.midpoint(to), text }
    });
    apart(labels, width)
}

/// Labels of an axis that spans `from` to `to` seconds, apart also in the narrowest plot.
pub(super) fn seconds(from: f64, to: f64) -> Vec<Label> {
    let span = (to - from).max(1e-3);
    let every = SECONDS.into_iter().map(f64::from).find(|every| {
        let longest = size(&format!("{:.0}", to.abs()));
        longest * 2.0 <= NARROW * every / span
    });
    let every = every.unwrap_or(span);
    let mut labels = Vec::new();
    let mut at = (from / every).ceil() * every;
    while at <= to {
        labels.push(Label { at: (at - from) / span, text: format!("{at:.0}") });
        at += every;
    }
    apart(labels, NARROW)
}

/// Those that neither touch the one before nor stand out of a plot of `width` pixels.
fn apart(labels: impl IntoIterator<Item = Label>, width: f64) -> Vec<Label> {
    let mut free = -MARGIN;
    let mut kept = Vec::new();
    for label in labels {
        let (from, to) = extent(&label, width);
        if from >= free && to <= width + MARGIN {
            free = to + GAP;
            kept.push(label);
        }
    }
    kept
}

/// Left and right edge in a plot of `width` pixels.
fn extent(label: &Label, width: f64) -> (f64, f64) {
    let (middle, half) = (label.at * width, size(&label.text) / 2.0);
    (middle - half, middle + half)
}

#[expect(clippy::cast_precision_loss, reason = "a label has few characters")]
fn size(text: &str) -> f64 {
    text.chars().count() as f64 * CHARACTER
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps of these lengths, in percent.
    fn steps(lengths: &[f64], width: f64) -> Vec<Label> {
        let mut from = 0.0;
        let each = lengths.iter().map(|length| {
            let began = from;
            from += length / 100.0;
            (began, from, "contention")
        });
        stretches(each.collect::<Vec<_>>(), width)
    }

    fn texts(labels: &[Label]) -> Vec<&str> {
        labels.iter().map(|label| label.text.as_str()).collect()
    }

    fn touch(labels: &[Label], width: f64) -> bool {
        labels.windows(2).any(|pair| extent(&pair[0], width).1 >= extent(&pair[1], width).0)
    }

    #[test]
    fn a_step_too_short_for_its_name_has_its_number() {
        let lengths = [50.0, 5.0, 45.0];
        assert_eq!(texts(&steps(&lengths, WIDE)), ["contention", "2", "contention"]);
        assert_eq!(texts(&steps(&lengths, NARROW)), ["1", "2", "3"]);
    }

    #[test]
    fn labels_never_touch_at_any_width_from_their_own_up() {
        for lengths in [&[12.5; 8][..], &[1.0, 1.0, 1.0, 1.0, 96.0], &[4.0; 25], &[100.0]] {
            for least in [NARROW, WIDE] {
                let labels = steps(lengths, least);
                assert!(!labels.is_empty());
                for width in [least, least * 1.3, least * 4.0] {
                    assert!(!touch(&labels, width), "{labels:?} at {width}");
                }
            }
        }
        for span in [0.5, 7.0, 59.0, 130.0, 599.0, 4000.0, 90_000.0] {
            let labels = seconds(0.0, span);
            assert!(!labels.is_empty() && !touch(&labels, NARROW), "{span}: {labels:?}");
        }
    }
}
