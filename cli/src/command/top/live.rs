//! The table on a terminal, drawn again each second, until `q`.

use super::table::{TITLES, head, held, row};
use super::{Sight, look};
use crate::client::{self, Client};
use crate::failure::Failure;
use crossterm::event::{self, Event, KeyCode, KeyModifiers};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Paragraph, Row, Table, Wrap};
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
struct Drawn {
    head: Vec<String>,
    rows: Vec<([String; 9], bool)>,
    notes: Vec<String>,
}

fn table_of(sight: &Sight) -> Drawn {
    Drawn {
        head: head(sight),
        rows: sight.state.vms.iter().map(|vm| (row(vm), held(vm))).collect(),
        notes: sight.reports.iter().map(|report| format!("! {report}")).collect(),
    }
}

fn draw(frame: &mut Frame<'_>, drawn: Option<&Drawn>, trouble: Option<&str>) {
    let Some(drawn) = drawn else { return };
    let lines = |count: usize| u16::try_from(count).unwrap_or(u16::MAX);
    let mut notes = drawn.notes.clone();
    notes.extend(trouble.map(|trouble| format!("! {trouble}; what is shown is old")));
    let [top, middle, bottom, keys] = Layout::vertical([
        Constraint::Length(lines(drawn.head.len()) + 1),
        Constraint::Min(3),
        Constraint::Length(lines(notes.len() * 2)),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let text: Vec<Line<'_>> = drawn.head.iter().map(|line| Line::from(line.as_str())).collect();
    frame.render_widget(Paragraph::new(Text::from(text)).style(bold()), top);
    let rows = drawn.rows.iter().map(|(row, held)| {
        let style = if *held { Style::default().fg(Color::Yellow) } else { Style::default() };
        Row::new(row.iter().map(String::as_str)).style(style)
    });
    let table = Table::new(rows, widths(drawn)).header(Row::new(TITLES).style(bold()));
    frame.render_widget(table.column_spacing(2), middle);
    let red = Style::default().fg(Color::Red);
    let notes = Paragraph::new(notes.join("\n")).wrap(Wrap { trim: true }).style(red);
    frame.render_widget(notes, bottom);
    frame.render_widget(Paragraph::new("q quits; `windlass explain VM` says why"), keys);
}

/// Each column as wide as its longest cell; the last takes the rest.
fn widths(drawn: &Drawn) -> Vec<Constraint> {
    let widest = |column: usize, title: &str| {
        let cells = drawn.rows.iter().map(|(row, _)| row[column].chars().count());
        u16::try_from(cells.fold(title.chars().count(), usize::max)).unwrap_or(u16::MAX)
    };
    let last = TITLES.len() - 1;
    TITLES
        .iter()
        .enumerate()
        .map(|(column, title)| {
            if column == last {
                Constraint::Min(10)
            } else {
                Constraint::Length(widest(column, title))
            }
        })
        .collect()
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
