//! A case: what is tried, which rules it is about, and in which versions it holds.

use crate::http::{Answer, Lost};
use crate::report::{Outcome, Report};
use crate::versions::{Span, Version};
use serde_json::Value;
use std::fmt;
use std::time::Instant;

/// What a case came to.
pub type Verdict = Result<(), Fault>;

/// Where a component departs from its protocol: what was seen, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault(pub String);

/// One case over a bench `B`, on which the component under test stands.
pub struct Case<B> {
    /// A fact that holds of a component that keeps to the protocol.
    pub name: &'static str,
    /// The rules of `docs/protocol/` that it is about.
    pub rules: &'static [&'static str],
    /// In which versions it holds.
    pub span: Span,
    /// What it needs that not every component can be given.
    pub needs: Option<&'static str>,
    /// Whether it is about what Windlass does and the reference does not.
    pub ours: bool,
    /// Tries it.
    pub run: fn(&B) -> Verdict,
}

/// A case as a list shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub name: &'static str,
    /// The rules that it is about.
    pub rules: &'static [&'static str],
    /// In which versions it holds.
    pub span: Span,
    /// What it needs that not every component can be given.
    pub needs: Option<&'static str>,
    /// Whether it is about what only Windlass does.
    pub ours: bool,
}

/// Why a case is left out that only Windlass is to pass.
pub(crate) const OURS: &str = "only Windlass does this";

/// What of a list of cases is run.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// The versions.
    pub versions: Vec<Version>,
    /// Names of cases; empty: all.
    pub only: Vec<String>,
    /// Without what only Windlass does.
    pub skip_ours: bool,
}

/// Runs each case in each version that it holds in. A case that needs what `has` does not
/// have is named in the report, and neither passed nor failed. `seen` is told of each outcome.
pub fn run<B>(
    subject: String,
    cases: &[Case<B>],
    choice: &Choice,
    has: impl Fn(&str) -> bool,
    mut bench: impl FnMut(Version) -> B,
    seen: &mut dyn FnMut(&Outcome),
) -> Report {
    let mut report = Report::new(subject);
    let chosen = |case: &&Case<B>| {
        choice.only.is_empty() || choice.only.iter().any(|name| name == case.name)
    };
    for case in cases.iter().filter(chosen) {
        if let Some(why) = case.is_left_out(choice.skip_ours, &has) {
            report.leave_out(case.name, why);
        }
    }
    for version in &choice.versions {
        let bench = bench(*version);
        for case in cases.iter().filter(chosen) {
            if !case.span.holds(*version) || case.is_left_out(choice.skip_ours, &has).is_some() {
                continue;
            }
            let started = Instant::now();
            let verdict = (case.run)(&bench);
            let took = started.elapsed();
            let outcome = Outcome::new(case.name, case.rules, *version, took, verdict);
            seen(&outcome);
            report.add(outcome);
        }
    }
    report
}

/// A fault, unless `holds`.
///
/// # Errors
/// If it does not hold.
pub fn ensure(holds: bool, fault: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(Fault(fault())) }
}

// === impl Case ===

impl<B> Case<B> {
    /// One that holds in every version and needs nothing.
    pub const fn new(
        name: &'static str,
        rules: &'static [&'static str],
        run: fn(&B) -> Verdict,
    ) -> Self {
        Self { name, rules, span: Span::ALL, needs: None, ours: false, run }
    }

    /// It holds in these versions.
    #[must_use]
    pub const fn within(self, span: Span) -> Self {
        Self { span, ..self }
    }

    /// Windlass does it, and the reference does not.
    #[must_use]
    pub const fn ours(self) -> Self {
        Self { ours: true, ..self }
    }

    /// As a list shows it.
    pub const fn listed(&self) -> Listed {
        let Self { name, rules, span, needs, ours, .. } = *self;
        Listed { name, rules, span, needs, ours }
    }

    fn is_left_out(&self, skip_ours: bool, has: impl Fn(&str) -> bool) -> Option<String> {
        if self.ours && skip_ours {
            return Some(OURS.to_owned());
        }
        self.needs.filter(|need| !has(need)).map(|need| format!("needs {need}"))
    }

    /// It needs this.
    #[must_use]
    pub const fn needing(self, need: &'static str) -> Self {
        Self { needs: Some(need), ..self }
    }
}

impl<B> fmt::Debug for Case<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Case").field("name", &self.name).field("rules", &self.rules).finish()
    }
}

// === what answers are expected ===

impl Answer {
    /// The JSON value that the answer is.
    ///
    /// # Errors
    /// If its status is not 200, or its body is not one JSON value.
    pub fn json(&self, asked: &str) -> Result<Value, Fault> {
        ensure(self.status == 200, || {
            format!("{asked}: status is {}, 200 was expected; {}", self.status, self.quoted())
        })?;
        serde_json::from_slice(&self.body).map_err(|error| {
            Fault(format!("{asked}: the body is not one JSON value ({error}); {}", self.quoted()))
        })
    }

    /// Whether the answer is exactly this value.
    ///
    /// # Errors
    /// If it is not.
    pub fn is(&self, asked: &str, expected: &Value) -> Verdict {
        let found = self.json(asked)?;
        ensure(found == *expected, || format!("{asked}: answered {found}, expected {expected}"))
    }

    /// Whether it is a refusal with this status, in words that begin so and end no line.
    ///
    /// # Errors
    /// If it is not.
    pub fn refuses(&self, asked: &str, status: u16, words: &str) -> Verdict {
        self.has(asked, status)?;
        let text = self.text();
        ensure(text.starts_with(words) && !text.ends_with('\n'), || {
            format!("{asked}: {}; it was to begin with {words:?}, and end no line", self.quoted())
        })
    }

    /// Whether it is a refusal with this status, and its body these words and nothing else.
    ///
    /// # Errors
    /// If it is not.
    pub fn refuses_with(&self, asked: &str, status: u16, words: &str) -> Verdict {
        self.has(asked, status)?;
        ensure(self.text() == words, || {
            format!("{asked}: {}; {words:?} was expected", self.quoted())
        })
    }

    /// Whether it refuses a body that is not the message: 400 `bad JSON`, perhaps with a colon and
    /// what is wrong.
    ///
    /// # Errors
    /// If it does not.
    pub fn refuses_body(&self, asked: &str) -> Verdict {
        self.refuses(asked, 400, "bad JSON")?;
        let text = self.text();
        ensure(text == "bad JSON" || text.starts_with("bad JSON: "), || {
            format!("{asked}: {}; it was to go on with a colon, or not at all", self.quoted())
        })
    }

    fn has(&self, asked: &str, status: u16) -> Verdict {
        ensure(self.status == status, || {
            format!("{asked}: status is {}, {status} was expected; {}", self.status, self.quoted())
        })
    }

    fn quoted(&self) -> String {
        let text: String = self.text().chars().take(200).collect();
        format!("the body is {text:?}")
    }
}

// === impl Fault ===

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<Lost> for Fault {
    fn from(lost: Lost) -> Self {
        Self(lost.to_string())
    }
}
