//! What was looked at, what was found, what to do, and how that reads.

use crate::explain::wrap;
use crossterm::style::Stylize;
use serde::Serialize;

#[derive(Debug, Default, Serialize)]
pub(super) struct Report {
    sections: Vec<Section>,
}

/// One part of the host.
#[derive(Debug, Serialize)]
struct Section {
    name: String,
    checks: Vec<Check>,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Check {
    verdict: Verdict,
    /// What was found.
    found: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
    /// Where the documents say more.
    #[serde(skip_serializing_if = "Option::is_none")]
    see: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Good,
    Limited,
    Failed,
}

// === impl Report ===

impl Report {
    pub(super) fn add(&mut self, name: &str, checks: Vec<Check>) {
        if !checks.is_empty() {
            self.sections.push(Section { name: name.to_owned(), checks });
        }
    }

    /// Whether anything does not work.
    pub(super) fn has_failed(&self) -> bool {
        self.count(Verdict::Failed) > 0
    }

    /// For people: a line for each check, and below it what to do; lines are broken at `width`.
    pub(super) fn text(&self, colour: bool, width: usize) -> String {
        let mut text = String::new();
        for Section { name, checks } in &self.sections {
            text.push_str(&if colour {
                format!("{}\n", name.as_str().bold())
            } else {
                format!("{name}\n")
            });
            for check in checks {
                text.push_str(&check.text(colour, width));
            }
            text.push('\n');
        }
        let count = |verdict: Verdict| format!("{} {}", self.count(verdict), verdict.sign(colour));
        let counts = [Verdict::Good, Verdict::Limited, Verdict::Failed].map(count).join("  ");
        let verdict = match (self.count(Verdict::Failed), self.count(Verdict::Limited)) {
            (0, 0) => "all is well",
            (0, _) => "works, within limits",
            (_, _) => "something does not work",
        };
        text.push_str(&format!("{counts}  {verdict}\n"));
        text
    }

    fn count(&self, verdict: Verdict) -> usize {
        let all = self.sections.iter().flat_map(|section| &section.checks);
        all.filter(|check| check.verdict == verdict).count()
    }
}

// === impl Check ===

impl Check {
    /// As it should be.
    pub(super) fn good(found: impl Into<String>) -> Self {
        Self { verdict: Verdict::Good, found: found.into(), advice: None, see: None }
    }

    /// It works, within limits.
    pub(super) fn limited(found: impl Into<String>, advice: &str, see: &'static str) -> Self {
        let verdict = Verdict::Limited;
        Self { verdict, found: found.into(), advice: said(advice), see: Some(see) }
    }

    /// It does not work.
    pub(super) fn failed(found: impl Into<String>, advice: &str, see: &'static str) -> Self {
        let verdict = Verdict::Failed;
        Self { verdict, found: found.into(), advice: said(advice), see: Some(see) }
    }

    /// A failure as a limit, with this advice.
    pub(super) fn eased(self, advice: &str) -> Self {
        match self.verdict {
            Verdict::Failed => Self { verdict: Verdict::Limited, advice: said(advice), ..self },
            Verdict::Good | Verdict::Limited => self,
        }
    }

    pub(super) fn is_good(&self) -> bool {
        self.verdict == Verdict::Good
    }

    fn text(&self, colour: bool, width: usize) -> String {
        let plain = self.verdict.sign(false);
        let found = self.found.replace('\n', "\n    ");
        let found = wrap(&format!("  {plain} {found}"), width);
        let mut text = found.replacen(&plain, &self.verdict.sign(colour), 1);
        if let Some(advice) = &self.advice {
            text.push_str(&wrap(&format!("      {advice}"), width));
        }
        if let Some(see) = &self.see {
            text.push_str(&format!("      see {see}\n"));
        }
        text
    }
}

fn said(advice: &str) -> Option<String> {
    (!advice.is_empty()).then(|| advice.to_owned())
}

// === impl Verdict ===

impl Verdict {
    fn sign(self, colour: bool) -> String {
        let (plain, coloured) = match self {
            Self::Good => ("✓", "✓".green()),
            Self::Limited => ("‼", "‼".yellow()),
            Self::Failed => ("✗", "✗".red()),
        };
        if colour { coloured.to_string() } else { plain.to_owned() }
    }
}
