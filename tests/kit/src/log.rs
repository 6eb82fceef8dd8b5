//! What is logged in a test of one thread.

use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Metadata, Subscriber};

/// The lines that were logged, `WARN message`, for as long as it lives.
pub struct Log {
    lines: Lines,
    _kept: DefaultGuard,
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

struct Message<'a>(&'a mut String);

// === impl Log ===

impl Log {
    /// Keeps what this thread logs from here on.
    pub fn kept() -> Self {
        let lines = Lines::default();
        let kept = tracing::subscriber::set_default(lines.clone());
        Self { lines, _kept: kept }
    }

    /// How often this was logged.
    pub fn count(&self, line: &str) -> usize {
        self.lines.0.lock().unwrap().iter().filter(|logged| *logged == line).count()
    }
}

// === impl Lines ===

impl Subscriber for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = event.metadata().level().to_string();
        event.record(&mut Message(&mut line));
        self.0.lock().unwrap().push(line);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

// === impl Message ===

impl Visit for Message<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            write!(self.0, " {value:?}").unwrap();
        }
    }
}
