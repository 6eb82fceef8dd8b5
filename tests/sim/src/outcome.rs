//! How a schedule came out, of whatever it was.

use std::any::Any;
use std::fmt::Write;
use std::time::Duration;

/// How it came out; `M` is what it met.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome<M> {
    /// What went wrong, oldest first; empty if nothing did.
    pub wrong: Vec<String>,
    /// The law that was broken first, or another word for what went wrong.
    pub first: Option<String>,
    /// How much happened.
    pub events: u64,
    /// How much virtual time went by.
    pub time: Duration,
    /// What it met.
    pub met: M,
    /// A line per event, if it was to be told.
    pub story: Vec<String>,
}

// === impl Outcome ===

impl<M> Outcome<M> {
    /// Whether nothing went wrong.
    pub fn passed(&self) -> bool {
        self.wrong.is_empty()
    }

    /// Its figures, and what went wrong, a line each.
    pub fn verdict(&self) -> String {
        let (seconds, word) =
            (self.time.as_secs_f64(), if self.passed() { "passed" } else { "failed" });
        let mut text = format!("{} events in {seconds:.1} virtual seconds: {word}\n", self.events);
        for wrong in &self.wrong {
            // Writing to a string does not fail.
            let _ = writeln!(text, "  {wrong}");
        }
        text
    }

    pub(crate) fn fails(&mut self, kind: &str, what: String) {
        self.first.get_or_insert_with(|| kind.to_owned());
        self.wrong.push(what);
    }

    /// A core or the world panicked, which is an outcome like others, so that it has a seed.
    pub(crate) fn panics(&mut self, panic: &(dyn Any + Send)) {
        let formatted = panic.downcast_ref::<String>().map(String::as_str);
        let said = formatted.or_else(|| panic.downcast_ref::<&str>().copied());
        self.fails("panic", format!("panicked: {}", said.unwrap_or("without a word")));
    }
}
