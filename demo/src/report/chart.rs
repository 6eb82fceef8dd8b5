//! One chart: lines over time, with steps, zones and marks behind them.
//!
//! Knows no VMs. The drawing is inline SVG, stretched to the room that the page has; the words stand
//! around it as text of the page, placed by parts of its width and height, so that they keep their
//! size on a telephone and on a wide screen (`labels` says which have room). Colours and dashes are
//! classes of the page's style sheet, so that light and dark differ there alone; a line differs from
//! its neighbours by dash as well as by colour.

use super::escape::escape;
use super::labels::{self, Label};
use std::fmt::Write;

/// The drawing's own units, before it is stretched.
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 200.0;
/// The most values beside the upright axis, of which each takes a line of text.
const TICKS: f64 = 8.0;
/// What a mark needs above its value, as a part of the height.
const MARK: f64 = 0.08;

/// A chart.
pub(super) struct Chart {
    /// Above it.
    pub(super) title: String,
    /// Beside the upright axis.
    pub(super) unit: &'static str,
    /// From and to, in seconds.
    pub(super) span: (f64, f64),
    /// The largest value that must fit.
    pub(super) top: f64,
    /// Between two lines of the grid; twice as much, and again, where there would be many.
    pub(super) tick: f64,
    /// What was going on.
    pub(super) bands: Vec<Zone>,
    /// Where something was short.
    pub(super) zones: Vec<Zone>,
    /// Areas, drawn first.
    pub(super) areas: Vec<Area>,
    /// Lines, drawn in this order.
    pub(super) lines: Vec<Line>,
    /// Single events.
    pub(super) marks: Vec<Mark>,
}

/// A stretch of time.
pub(super) struct Zone {
    /// From, in seconds.
    pub(super) from: f64,
    /// To, in seconds.
    pub(super) to: f64,
    /// What it is.
    pub(super) name: String,
}

/// A line.
pub(super) struct Line {
    /// The class that says how it looks.
    pub(super) class: &'static str,
    /// What it is.
    pub(super) name: &'static str,
    /// Whether a value holds until the next.
    pub(super) steps: bool,
    /// Seconds and values; `None` is a gap.
    pub(super) points: Vec<(f64, Option<f64>)>,
}

/// A band between two lines of steps.
pub(super) struct Area {
    /// The class that says how it looks.
    pub(super) class: &'static str,
    /// What it is.
    pub(super) name: String,
    /// Seconds, lower and upper value; each holds until the next.
    pub(super) points: Vec<(f64, f64, f64)>,
}

/// An event.
pub(super) struct Mark {
    /// When, in seconds.
    pub(super) at: f64,
    /// How high.
    pub(super) value: f64,
    /// What.
    pub(super) name: String,
}

// === impl Chart ===

impl Chart {
    /// Title, legend and drawing.
    pub(super) fn figure(&self) -> String {
        format!(
            "<figure>\n<figcaption>{}</figcaption>\n{}<div class=\"chart\">\n{}{}\
             <div class=\"plot\">\n{}{}</div>\n</div>\n</figure>\n",
            escape(&self.title),
            self.legend(),
            self.words(),
            self.values(),
            self.svg(),
            self.flags()
        )
    }

    /// What the lines mean.
    fn legend(&self) -> String {
        let mut legend = String::from("<p class=\"legend\">");
        for area in &self.areas {
            legend.push_str(&key(&swatch("rect", area.class), &area.name));
        }
        for line in &self.lines {
            legend.push_str(&key(&swatch("path", line.class), line.name));
        }
        if !self.zones.is_empty() {
            legend.push_str(&key(&swatch("rect", "zone"), "waits for room"));
        }
        if !self.marks.is_empty() {
            let mark = "<path class=\"mark\" d=\"M8 1h12l-6 11z\"/>";
            legend.push_str(&key(mark, "the guest declined to shrink"));
        }
        legend.push_str("</p>\n");
        legend
    }

    /// Above the plot the steps, below it the seconds.
    fn words(&self) -> String {
        let stretches = || {
            let each = self.bands.iter();
            each.map(|band| (self.part(band.from), self.part(band.to), band.name.as_str()))
        };
        let mut words = String::new();
        for (class, labels) in [
            ("steps wide", labels::stretches(stretches(), labels::WIDE)),
            ("steps narrow", labels::stretches(stretches(), labels::NARROW)),
            ("times", labels::seconds(self.span.0, self.span.1)),
        ] {
            let _ = writeln!(words, "<div class=\"{class}\">{}</div>", row(&labels));
        }
        words
    }

    /// Beside the plot the values and their units.
    fn values(&self) -> String {
        let mut values = String::from("<div class=\"values\">");
        for value in self.ticks() {
            let part = value / self.ceiling() * 100.0;
            let _ = write!(values, "<span style=\"bottom:{part:.2}%\">{value}</span>");
        }
        let _ = writeln!(
            values,
            "</div>\n<div class=\"unit\">{}</div>\n<div class=\"unit time\">seconds</div>",
            escape(self.unit)
        );
        values
    }

    /// The drawing.
    fn svg(&self) -> String {
        let mut svg = format!(
            "<svg class=\"lines\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=\"none\" \
             role=\"img\" aria-label=\"{}\">\n",
            escape(&self.title)
        );
        for (index, band) in self.bands.iter().enumerate() {
            let class = if index % 2 == 0 { "band even" } else { "band odd" };
            let _ = writeln!(svg, "{}", self.stretch(class, band, 0.0));
        }
        for value in self.ticks() {
            let _ = writeln!(svg, "<path class=\"grid\" d=\"M0 {:.1}H{WIDTH}\"/>", self.y(value));
        }
        let _ = writeln!(svg, "<path class=\"axis\" d=\"M0 0V{HEIGHT}H{WIDTH}\"/>");
        for zone in &self.zones {
            let _ = writeln!(svg, "{}", self.stretch("zone", zone, 1.0));
        }
        for area in &self.areas {
            self.draw_area(&mut svg, area);
        }
        for line in &self.lines {
            self.draw_line(&mut svg, line);
        }
        svg.push_str("</svg>\n");
        svg
    }

    /// Marks, which are not stretched with the drawing.
    fn flags(&self) -> String {
        let flag = |mark: &Mark| {
            format!(
                "<svg class=\"flag\" style=\"left:{:.2}%;bottom:{:.2}%\" viewBox=\"0 0 14 12\">\
                 <path class=\"mark\" d=\"M1 .5h12l-6 11z\"><title>{}</title></path></svg>\n",
                self.part(mark.at) * 100.0,
                mark.value / self.ceiling() * 100.0,
                escape(&mark.name)
            )
        };
        self.marks.iter().map(flag).collect()
    }

    fn stretch(&self, class: &str, zone: &Zone, least: f64) -> String {
        let (from, to) = (self.x(zone.from), self.x(zone.to));
        format!(
            "<rect class=\"{class}\" x=\"{from:.1}\" width=\"{:.1}\" height=\"{HEIGHT}\">\
             <title>{}</title></rect>",
            (to - from).max(least),
            escape(&zone.name)
        )
    }

    fn draw_area(&self, svg: &mut String, area: &Area) {
        let mut upper = String::new();
        let mut lower = Vec::new();
        for (index, &(at, low, high)) in area.points.iter().enumerate() {
            let until = area.points.get(index + 1).map_or(at, |next| next.0);
            let (from, to) = (self.x(at), self.x(until));
            let first = if index == 0 { 'M' } else { 'L' };
            let _ = write!(upper, "{first}{from:.1} {0:.1}L{to:.1} {0:.1}", self.y(high));
            lower.push(format!("L{to:.1} {0:.1}L{from:.1} {0:.1}", self.y(low)));
        }
        lower.reverse();
        let _ = writeln!(
            svg,
            "<path class=\"{}\" d=\"{upper}{}Z\"><title>{}</title></path>",
            area.class,
            lower.concat(),
            escape(&area.name)
        );
    }

    fn draw_line(&self, svg: &mut String, line: &Line) {
        let mut path = String::new();
        let mut drawn: Option<f64> = None;
        for &(at, value) in &line.points {
            let Some(value) = value else {
                drawn = None;
                continue;
            };
            let (x, y) = (self.x(at), self.y(value));
            let _ = match drawn {
                None => write!(path, "M{x:.1} {y:.1}"),
                Some(_) if line.steps => write!(path, "H{x:.1}V{y:.1}"),
                Some(_) => write!(path, "L{x:.1} {y:.1}"),
            };
            drawn = Some(value);
        }
        if !path.is_empty() {
            let _ = writeln!(
                svg,
                "<path class=\"line {}\" d=\"{path}\"><title>{}</title></path>",
                line.class,
                escape(line.name)
            );
        }
    }

    /// The values of the grid, from zero to the upper edge.
    fn ticks(&self) -> Vec<f64> {
        let tick = self.spacing();
        let values = std::iter::successors(Some(0.0), |value| Some(value + tick));
        values.take_while(|value| *value <= self.ceiling() + 1e-9).collect()
    }

    /// Between two values of the grid: a multiple of [`Chart::tick`] by which few are enough.
    fn spacing(&self) -> f64 {
        let wider = std::iter::successors(Some(self.tick), |tick| Some(tick * 2.0));
        wider.take(64).find(|tick| self.highest() <= tick * TICKS).unwrap_or(self.highest())
    }

    /// The value at the upper edge, on the grid.
    fn ceiling(&self) -> f64 {
        let tick = self.spacing();
        (self.highest() / tick).ceil().max(1.0) * tick
    }

    /// What must fit: no line is above it, and no mark.
    fn highest(&self) -> f64 {
        let marks = self.marks.iter().map(|mark| mark.value / (1.0 - MARK));
        marks.fold(self.top, f64::max)
    }

    /// A moment as a part of the width.
    fn part(&self, second: f64) -> f64 {
        let part = (second - self.span.0) / (self.span.1 - self.span.0).max(1e-3);
        part.clamp(0.0, 1.0)
    }

    fn x(&self, second: f64) -> f64 {
        self.part(second) * WIDTH
    }

    fn y(&self, value: f64) -> f64 {
        let part = (value / self.ceiling()).clamp(0.0, 1.0);
        HEIGHT - part * HEIGHT
    }
}

fn row(labels: &[Label]) -> String {
    let mut row = String::new();
    for label in labels {
        let (at, text) = (label.at * 100.0, escape(&label.text));
        let _ = write!(row, "<span style=\"left:{at:.2}%\">{text}</span>");
    }
    row
}

fn swatch(shape: &str, class: &str) -> String {
    if shape == "rect" {
        format!("<rect class=\"{class}\" width=\"28\" height=\"12\" y=\"1\"/>")
    } else {
        format!("<path class=\"line {class}\" d=\"M0 7H28\"/>")
    }
}

fn key(drawing: &str, name: &str) -> String {
    format!(
        "<span><svg viewBox=\"0 0 28 14\" aria-hidden=\"true\">{drawing}</svg>{}</span> ",
        escape(name)
    )
}
