//! The table on a terminal, drawn again each second, until `q`.

use super::columns::Columns;
use super::sight::{Sight, look};
use super::table::{TITLES, head, held, row};
use crate::client::{self, Client};
use crate::explain::{fit, wrap};
use crate::failure::Failure;
use crossterm::event::{self, Event, KeyCode, KeyModifiers};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::widgets::{Paragraph, Row, Table};
use std::io;
use std::time::{Duration, Instant};

/// How often the host is asked.
const EACH: Duration = Duration::from_secs(1);

/// Shows the table until a person has seen enough.
pub(super) fn run(client: &Client) -> Result<(), Failure> {
    // Before the screen is taken over: a host that does not answer is said in plain text.
    let first = client::run(look(client))?;
    let mut terminal = ratatui::try_init()
        .map_err(|error| Failure::CannotCreate(format!("cannot use the terminal: {error}")))?;
    let result = watch(client, &mut terminal, first);
    ratatui::restore();
    result.map_err(|error| Failure::CannotCreate(format!("cannot draw on the terminal: {error}")))
}

fn watch(client: &Client, terminal: &mut ratatui::DefaultTerminal, first: Sight) -> io::Result<()> {
    let mut sight = Ok(first);
    let mut last = None;
    loop {
        if let Ok(sight) = &sight {
            last = Some(table_of(sight));
        }
        let trouble = sight.as_ref().err().map(|error: &Failure| error.to_string());
        terminal.draw(|frame| draw(frame, last.as_ref(), trouble.as_deref()))?;
        if quit_within(EACH)? {
            return Ok(());
        }
        sight = client::run(look(client));
    }
}

/// What is drawn of one look.
pub(super) struct Drawn {
    head: Vec<String>,
    rows: Vec<[String; 9]>,
    /// Which of the rows are of a VM that something keeps from its goal.
    held: Vec<bool>,
    notes: Vec<String>,
}

pub(super) fn table_of(sight: &Sight) -> Drawn {
    Drawn {
        head: head(sight),
        rows: sight.state.vms.iter().map(|vm| row(vm, sight.state.at)).collect(),
        held: sight.state.vms.iter().map(held).collect(),
        notes: sight.reports.iter().map(|report| format!("! {report}")).collect(),
    }
}

pub(super) fn draw(frame: &mut Frame<'_>, drawn: Option<&Drawn>, trouble: Option<&str>) {
    let Some(drawn) = drawn else { return };
    let width = usize::from(frame.area().width);
    let mut notes = drawn.notes.clone();
    notes.extend(trouble.map(|trouble| format!("! {trouble}; what is shown is old")));
    let (head, notes) = (wrap(&drawn.head.join("\n"), width), wrap(&notes.join("\n"), width));
    let columns = Columns::of(&drawn.rows, width);
    let [top, middle, bottom, keys] = Layout::vertical([
        Constraint::Length(lines(&head) + 1),
        Constraint::Min(3),
        Constraint::Length(lines(&notes)),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(Paragraph::new(head).style(bold()), top);
    let rows = drawn.rows.iter().zip(&drawn.held).map(|(row, held)| {
        let style = if *held { Style::default().fg(Color::Yellow) } else { Style::default() };
        Row::new(columns.cells(row)).style(style)
    });
    let widths = columns.widths().map(|wide| Constraint::Length(short(wide)));
    let titles = Row::new(columns.cells(&TITLES)).style(bold());
    let table = Table::new(rows, widths).header(titles);
    frame.render_widget(table.column_spacing(2), middle);
    let red = Style::default().fg(Color::Red);
    frame.render_widget(Paragraph::new(notes).style(red), bottom);
    frame.render_widget(Paragraph::new(fit(&footer(&columns), width)), keys);
}

fn footer(columns: &Columns) -> String {
    let left_out = columns.left_out();
    let wider = if left_out.is_empty() {
        String::new()
    } else {
        format!("; a wider terminal shows {}", left_out.join(", "))
    };
    format!("q quits; `windlass explain VM` says why{wider}")
}

fn lines(text: &str) -> u16 {
    short(text.lines().count())
}

fn short(count: usize) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}

fn bold() -> Style {
    Style::default().add_modifier(Modifier::BOLD)
}

/// Waits this long, unless a person asks for the end before.
fn quit_within(wait: Duration) -> io::Result<bool> {
    let end = Instant::now() + wait;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if !event::poll(left)? {
            return Ok(false);
        }
        if let Event::Key(key) = event::read()? {
            let interrupt =
                key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
            if interrupt || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc) {
                return Ok(true);
            }
        }
        if left.is_zero() {
            return Ok(false);
        }
    }
}
