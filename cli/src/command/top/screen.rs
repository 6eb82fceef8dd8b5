//! What `top` draws: the table, a story or the help, and below them what can be done.
//!
//! What has no room is cut with `…`, left out with a word about it, or scrolled to.

use super::app::{App, Page, Question, SPANS, Story};
use super::columns::Columns;
use super::order::Tone;
use super::sight::Sight;
use super::table::{Cells, empty, head, rowless, titles};
use crate::explain::{fit, frozen, page, summary, wrap};
use crate::problem::Report;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style};
use ratatui::widgets::{Paragraph, Row, Table};

/// VMs without a row that are named at most, and problems that are: the table comes first.
const NAMED: usize = 3;

/// The columns, also for `windlass help top`.
pub(super) const COLUMNS: &str = "\
Columns:
  CPU       what the VM has; `2 of 4` where 4 are plugged and the guest uses 2
  MEMORY    what the VM has; USED  how much of it is in use
  LOAD      load average over the VM's window
  GOAL      what the load calls for, as vCPU/memory
  GRANTED   what the books allow the VM
  BOUNDS    least and most, as its file says
  CHANGED   when the last resize within an hour ended, ↑ to more, ↓ to less:
            it ends when the VM has its goal, or gets another goal
  STATE     at goal, or what keeps the VM from its goal
";

/// Which colours there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Paint {
    /// Without it, what colours say stands in words alone.
    pub(super) colour: bool,
}

// === impl Paint ===

impl Paint {
    fn of(self, colour: Color) -> Style {
        if self.colour { Style::default().fg(colour) } else { Style::default() }
    }

    fn tone(self, tone: Tone) -> Style {
        match tone {
            Tone::Calm => Style::default(),
            Tone::Held => self.of(Color::Cyan),
            Tone::Waits => self.of(Color::Yellow),
            Tone::Fails => self.of(Color::Red),
        }
    }
}

/// Draws what is open.
pub(super) fn draw(frame: &mut Frame<'_>, app: &mut App, paint: Paint) {
    let width = usize::from(frame.area().width);
    let (below, style) = below(app, width, paint);
    let [main, bottom, keys] = Layout::vertical([
        Constraint::Min(3),
        Constraint::Length(rows(&below)),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    match &mut app.page {
        Page::List => draw_list(frame, main, app, paint),
        Page::Story(story) => draw_story(frame, main, story),
        Page::Help(scroll) => {
            draw_text(frame, main, "windlass top", &help(&app.sight), scroll);
        }
    }
    frame.render_widget(Paragraph::new(below).style(style), bottom);
    let (line, style) = last_line(app, width);
    frame.render_widget(Paragraph::new(line).style(style), keys);
}

fn draw_list(frame: &mut Frame<'_>, area: Rect, app: &mut App, paint: Paint) {
    let width = usize::from(area.width);
    let mut above = wrap(&head(&app.sight).join("\n"), width);
    for line in few(rowless(&app.sight), "`windlass vm list` has all") {
        above.push_str(&format!("{}\n", fit(&line, width)));
    }
    let [top, middle] =
        Layout::vertical([Constraint::Length(rows(&above) + 1), Constraint::Min(3)]).areas(area);
    frame.render_widget(Paragraph::new(above).style(Style::new().bold()), top);
    if app.lines.is_empty() {
        let none = wrap(empty(&app.sight), width);
        return frame.render_widget(Paragraph::new(none), middle);
    }
    let titles = titles(Some(app.sorting));
    let columns = Columns::of(&titles, app.lines.iter().map(|line| &line.cells), width);
    let left_out: Vec<&str> =
        columns.left_out().into_iter().map(|column| titles[column].as_str()).collect();
    let wider = format!("a wider terminal shows {}", left_out.join(", "));
    let note = Constraint::Length(u16::from(!left_out.is_empty()));
    let [middle, bottom] = Layout::vertical([Constraint::Min(2), note]).areas(middle);
    frame.render_widget(Paragraph::new(fit(&wider, width)).style(Style::new().dim()), bottom);
    let cells = |cells: &Cells| Row::new(columns.cells(cells).collect::<Vec<_>>());
    let rows = app.lines.iter().map(|line| cells(&line.cells).style(paint.tone(line.tone)));
    let widths = columns.widths().map(|wide| Constraint::Length(short(wide)));
    let table = Table::new(rows, widths)
        .header(cells(&titles).style(Style::new().bold()))
        .column_spacing(2)
        .row_highlight_style(Style::new().reversed());
    frame.render_stateful_widget(table, middle, &mut app.table);
}

fn draw_story(frame: &mut Frame<'_>, area: Rect, story: &mut Story) {
    let text = match &story.told {
        None => "The host is asked …".to_owned(),
        Some(Err(why)) => why.clone(),
        Some(Ok(told)) if story.verbose => page(told),
        Some(Ok(told)) => summary(told),
    };
    draw_text(frame, area, &story.vm, &text, &mut story.scroll);
}

/// A title and text that can be scrolled, as far as there is more.
fn draw_text(frame: &mut Frame<'_>, area: Rect, title: &str, text: &str, scroll: &mut usize) {
    let width = usize::from(area.width);
    let [top, middle] = Layout::vertical([Constraint::Length(1), Constraint::Min(1)]).areas(area);
    // What fits stays as it is aligned.
    let fitted = |line: &str| {
        if line.chars().count() > width { wrap(line, width) } else { format!("{line}\n") }
    };
    let text: String = text.lines().map(fitted).collect();
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let height = usize::from(middle.height);
    *scroll = (*scroll).min(lines.len().saturating_sub(height));
    let last = (*scroll + height).min(lines.len());
    let place = if lines.len() > height {
        format!("  lines {} to {last} of {}", *scroll + 1, lines.len())
    } else {
        String::new()
    };
    let title = fit(&format!("{title}{place}"), width);
    frame.render_widget(Paragraph::new(title).style(Style::new().bold()), top);
    // A word that is longer than the screen is cut with a sign.
    let shown = lines.iter().skip(*scroll).take(height);
    let shown: Vec<String> = shown.map(|line| fit(line, width)).collect();
    frame.render_widget(Paragraph::new(shown.join("\n")), middle);
}

/// What stands above the keys: what an order led to, else what is wrong.
fn below(app: &App, width: usize, paint: Paint) -> (String, Style) {
    match &app.said {
        Some(Ok(said)) => return (wrap(said, width), Style::new().bold()),
        Some(Err(why)) => return (wrap(&format!("! {why}"), width), paint.of(Color::Red)),
        None => {}
    }
    // A line each: the table comes first.
    let mut notes = few(app.sight.reports.iter().map(brief).collect(), "`windlass doctor` has all");
    notes.extend(app.trouble.iter().map(|why| format!("! {why}; what is shown is old")));
    let lines: Vec<String> = notes.iter().map(|note| fit(note, width)).collect();
    (lines.join("\n"), paint.of(Color::Red))
}

/// The first problem of a report, and how many more it has.
fn brief(report: &Report) -> String {
    let Report { subject, problems, .. } = report;
    let first = problems.first().map(ToString::to_string).unwrap_or_default();
    let more = match problems.len() {
        0 | 1 => String::new(),
        count => format!(" (1 of {count})"),
    };
    format!("! {subject}{more}: {first}")
}

/// The question that is asked, or what the keys do.
fn last_line(app: &App, width: usize) -> (String, Style) {
    let asked = Style::new().bold().reversed();
    match (&app.question, &app.page) {
        (Some(Question::Pause(vm)), _) => {
            let spans = SPANS.map(|(key, _, span)| format!("{key}: {span}")).join("  ");
            (asking(&format!("Pause {vm}?"), &format!("  {spans}  Esc: no"), width), asked)
        }
        (Some(Question::Resume(vm)), _) => {
            (asking(&format!("Resume {vm}?"), "  y: yes  Esc: no", width), asked)
        }
        (None, Page::List) => (keys_of_list(app, width), Style::default()),
        (None, Page::Story(story)) => {
            let verbose = if story.verbose { "v shorter" } else { "v every decision" };
            let pause = pause_key(app, &story.vm);
            (keys(&["Esc back", "↑↓ scroll", verbose, pause], width), Style::default())
        }
        (None, Page::Help(_)) => (keys(&["Esc back", "↑↓ scroll"], width), Style::default()),
    }
}

/// A question and its answers: the answers are never cut.
fn asking(question: &str, answers: &str, width: usize) -> String {
    let room = width.saturating_sub(answers.chars().count());
    fit(&format!("{}{answers}", fit(question, room)), width)
}

fn keys_of_list(app: &App, width: usize) -> String {
    let selected = app.table.selected().and_then(|at| app.lines.get(at));
    let pause = selected.map_or("", |line| pause_key(app, &line.vm));
    let place = match app.table.selected() {
        Some(at) => format!("{}/{}", at + 1, app.lines.len()),
        None => String::new(),
    };
    let all =
        ["q quit", "? help", "Enter explain", pause, "↑↓ select", "←→ sort", "r reverse", &place];
    keys(&all, width)
}

/// What `p` does; nothing for a user who may only look.
fn pause_key(app: &App, vm: &str) -> &'static str {
    match (app.only_looks, app.sight.is_paused(vm)) {
        (true, _) => "",
        (false, true) => "p resume",
        (false, false) => "p pause",
    }
}

/// As many of these as there is room for, the most important first.
fn keys(all: &[&str], width: usize) -> String {
    let mut line = String::new();
    for key in all.iter().filter(|key| !key.is_empty()) {
        let more = if line.is_empty() { (*key).to_owned() } else { format!("{line}  {key}") };
        if more.chars().count() > width {
            break;
        }
        line = more;
    }
    line
}

/// The first of some lines, and how many more there are.
fn few(mut lines: Vec<String>, whole: &str) -> Vec<String> {
    let more = lines.len().saturating_sub(NAMED);
    // One more takes no more room than a word about it.
    if more > 1 {
        lines.truncate(NAMED);
        lines.push(format!("… and {more} more; {whole}"));
    }
    lines
}

fn rows(text: &str) -> u16 {
    short(text.lines().count())
}

fn short(count: usize) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}

/// The text of the help page.
fn help(sight: &Sight) -> String {
    let frozen = frozen(&sight.state).map_or(String::new(), |line| format!("{line}\n\n"));
    format!(
        "{frozen}\
Keys:
  ↑ ↓ j k    select a VM; PgUp PgDn by ten, Home End g G to the first and the last
  Enter      explain the VM: its state, why not more, why not less; there, v shows every decision
  p          pause the VM, or resume it; it asks first
  ← →        sort by another column, which is marked; r turns the order
  q Esc      end; on another page, back; Ctrl-C ends everywhere

{COLUMNS}
  A narrow terminal leaves out BOUNDS, GRANTED, USED, CHANGED, GOAL, one by one:
  never the one by which the VMs are sorted.

Colours (none where NO_COLOR is set):
  red        a part does not answer, and a person has to look: `windlass doctor`
  yellow     the VM waits for room, or for something else that it needs
  cyan       frozen, paused, observed, or not run by QEMU
"
    )
}
