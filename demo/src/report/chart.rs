//! One chart as inline SVG: lines over time, with steps, zones and marks behind them.
//!
//! Knows no VMs. Colours and dashes are classes of the page's style sheet, so that light and
//! dark differ there alone; a line differs from its neighbours by dash as well as by colour.

use super::escape::escape;
use std::fmt::Write;

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 230.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 22.0;
const BOTTOM: f64 = 34.0;

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
    /// Between two lines of the grid.
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
    /// The drawing.
    pub(super) fn svg(&self) -> String {
        let mut svg = format!(
            "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">\n",
            escape(&self.title)
        );
        self.draw_bands(&mut svg);
        self.draw_axes(&mut svg);
        self.draw_zones(&mut svg);
        for area in &self.areas {
            self.draw_area(&mut svg, area);
        }
        for line in &self.lines {
            self.draw_line(&mut svg, line);
        }
        for mark in &self.marks {
            let (x, y) = (self.x(mark.at), self.y(mark.value));
            let _ = writeln!(
                svg,
                "<path class=\"mark\" d=\"M{x:.1} {y:.1}m-6 -11h12l-6 11z\"><title>{}</title></path>",
                escape(&mark.name)
            );
        }
        svg.push_str("</svg>\n");
        svg
    }

    /// What the lines mean.
    pub(super) fn legend(&self) -> String {
        let mut legend = String::from("<p class=\"legend\">");
        for area in &self.areas {
            let _ = write!(legend, "{}", key(&swatch("rect", area.class), &area.name));
        }
        for line in &self.lines {
            let _ = write!(legend, "{}", key(&swatch("path", line.class), line.name));
        }
        if !self.zones.is_empty() {
            let _ = write!(legend, "{}", key(&swatch("rect", "zone"), "waits for room"));
        }
        if !self.marks.is_empty() {
            let mark = "<path class=\"mark\" d=\"M8 1h12l-6 11z\"/>";
            let _ = write!(legend, "{}", key(mark, "the guest declined to shrink"));
        }
        legend.push_str("</p>\n");
        legend
    }

    fn draw_bands(&self, svg: &mut String) {
        for (index, band) in self.bands.iter().enumerate() {
            let (from, to) = (self.x(band.from), self.x(band.to));
            let shade = if index % 2 == 0 { "band even" } else { "band odd" };
            let _ = writeln!(
                svg,
                "<rect class=\"{shade}\" x=\"{from:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{:.1}\"/>\
                 <text class=\"step\" x=\"{:.1}\" y=\"14\">{}</text>",
                (to - from).max(0.0),
                HEIGHT - TOP - BOTTOM,
                from.midpoint(to),
                escape(&band.name)
            );
        }
    }

    fn draw_axes(&self, svg: &mut String) {
        let (left, right, floor) = (LEFT, WIDTH - RIGHT, HEIGHT - BOTTOM);
        let mut value = 0.0;
        while value <= self.ceiling() + 1e-9 {
            let y = self.y(value);
            let _ = writeln!(
                svg,
                "<path class=\"grid\" d=\"M{left} {y:.1}H{right}\"/>\
                 <text class=\"tick y\" x=\"{:.1}\" y=\"{:.1}\">{value}</text>",
                left - 6.0,
                y + 4.0
            );
            value += self.tick;
        }
        let step = if self.span.1 - self.span.0 > 200.0 { 30.0 } else { 10.0 };
        let mut second = (self.span.0 / step).ceil() * step;
        while second <= self.span.1 {
            let x = self.x(second);
            let _ = writeln!(
                svg,
                "<path class=\"grid\" d=\"M{x:.1} {floor}v4\"/>\
                 <text class=\"tick\" x=\"{x:.1}\" y=\"{:.1}\">{second}</text>",
                floor + 16.0
            );
            second += step;
        }
        let _ = writeln!(
            svg,
            "<path class=\"axis\" d=\"M{left} {TOP}V{floor}H{right}\"/>\
             <text class=\"unit\" x=\"{:.1}\" y=\"{:.1}\">seconds</text>\
             <text class=\"unit\" transform=\"translate(14 {:.1}) rotate(-90)\">{}</text>",
            left.midpoint(right),
            HEIGHT - 4.0,
            TOP.midpoint(floor),
            escape(self.unit)
        );
    }

    fn draw_zones(&self, svg: &mut String) {
        for zone in &self.zones {
            let (from, to) = (self.x(zone.from), self.x(zone.to));
            let _ = writeln!(
                svg,
                "<rect class=\"zone\" x=\"{from:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{:.1}\">\
                 <title>{}</title></rect>",
                (to - from).max(1.0),
                HEIGHT - TOP - BOTTOM,
                escape(&zone.name)
            );
        }
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

    /// The value at the upper edge.
    fn ceiling(&self) -> f64 {
        (self.top / self.tick).ceil().max(1.0) * self.tick
    }

    fn x(&self, second: f64) -> f64 {
        let part = (second - self.span.0) / (self.span.1 - self.span.0).max(1e-3);
        LEFT + part.clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        let part = (value / self.ceiling()).clamp(0.0, 1.0);
        HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM)
    }
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
