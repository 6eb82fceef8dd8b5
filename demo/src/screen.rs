//! A frame on a terminal: drawn over the one before it, and left standing at the end.

use super::view::{Frame, Span, Tone};
use crossterm::style::{Attribute, Color, ContentStyle, StyledContent};
use crossterm::terminal::{self, Clear, ClearType};
use crossterm::{cursor, queue, style};
use std::io::{self, IsTerminal, Stdout, Write, stdout};

/// A terminal with room for frames.
#[derive(Debug)]
pub(crate) struct Screen {
    out: Stdout,
    drawn: u16,
}

// === impl Screen ===

impl Screen {
    /// Standard output, if it is a terminal.
    pub(crate) fn find() -> Option<Self> {
        let out = stdout();
        out.is_terminal().then_some(Self { out, drawn: 0 })
    }

    /// Draws a frame in the place of the last one.
    pub(crate) fn draw(&mut self, frame: &Frame) -> io::Result<()> {
        let columns = terminal::size().map_or(80, |(columns, _)| usize::from(columns));
        let mut out = self.out.lock();
        if self.drawn > 0 {
            queue!(out, cursor::MoveToColumn(0), cursor::MoveUp(self.drawn))?;
        }
        queue!(out, Clear(ClearType::FromCursorDown))?;
        for row in &frame.0 {
            // One column stays free, so that no terminal wraps the row.
            let mut left = columns.saturating_sub(1);
            for span in row {
                let text: String = span.text.chars().take(left).collect();
                left -= text.chars().count();
                queue!(out, style::PrintStyledContent(StyledContent::new(look(span), text)))?;
            }
            queue!(out, style::Print("\r\n"))?;
        }
        self.drawn = u16::try_from(frame.0.len()).unwrap_or(u16::MAX);
        out.flush()
    }
}

fn look(span: &Span) -> ContentStyle {
    let mut look = ContentStyle::new();
    match span.tone {
        Tone::Plain => {}
        Tone::Strong => look.attributes.set(Attribute::Bold),
        Tone::Faint => look.attributes.set(Attribute::Dim),
        Tone::Good => look.foreground_color = Some(Color::Green),
        Tone::Bad => look.foreground_color = Some(Color::Red),
        Tone::Short => look.foreground_color = Some(Color::Yellow),
        Tone::Held => look.foreground_color = Some(Color::Blue),
    }
    look
}
