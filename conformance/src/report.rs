//! What a run came to, for people and for programs.

use crate::case::Verdict;
use crate::versions::Version;
use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// What one case came to in one version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// The case.
    pub case: &'static str,
    /// The rules that it is about.
    pub rules: &'static [&'static str],
    /// In which version.
    pub version: &'static str,
    /// How long it took, in milliseconds.
    pub milliseconds: u64,
    /// What was wrong; `None`: nothing.
    pub fault: Option<String>,
}

/// A case that was not run: nobody asked for it, or for what it needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// The case.
    pub case: &'static str,
    /// Why, for people.
    pub why: String,
}

/// Everything that was tried on one component.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// What was tried: `informant at 127.0.0.1:10301`.
    pub subject: String,
    /// How many cases passed.
    pub passed: usize,
    /// How many failed.
    pub failed: usize,
    /// In the order in which they were run.
    pub outcomes: Vec<Outcome>,
    /// What was not asked for.
    pub left_out: Vec<LeftOut>,
}

// === impl Outcome ===

impl Outcome {
    pub(crate) fn new(
        case: &'static str,
        rules: &'static [&'static str],
        version: Version,
        took: Duration,
        verdict: Verdict,
    ) -> Self {
        let milliseconds = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let fault = verdict.err().map(|fault| fault.0);
        Self { case, rules, version: version.name, milliseconds, fault }
    }
}

/// `ok   v2.0  the-newest-counts  [I-CUR-1 I-CUR-2]`
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.fault.is_some() { "FAIL" } else { "ok" };
        write!(f, "{word:4} {:4}  {}  [{}]", self.version, self.case, self.rules.join(" "))?;
        match &self.fault {
            Some(fault) => write!(f, "\n          {fault}"),
            None => Ok(()),
        }
    }
}

// === impl Report ===

impl Report {
    pub(crate) fn new(subject: String) -> Self {
        Self { subject, passed: 0, failed: 0, outcomes: Vec::new(), left_out: Vec::new() }
    }

    pub(crate) fn add(&mut self, outcome: Outcome) {
        if outcome.fault.is_some() {
            self.failed += 1;
        } else {
            self.passed += 1;
        }
        self.outcomes.push(outcome);
    }

    pub(crate) fn leave_out(&mut self, case: &'static str, why: String) {
        self.left_out.push(LeftOut { case, why });
    }

    /// Whether everything that was tried holds, and something was tried.
    pub fn holds(&self) -> bool {
        self.failed == 0 && self.passed > 0
    }

    /// The names of the cases that failed in some version, each once.
    pub fn failing(&self) -> Vec<&'static str> {
        let mut names = Vec::new();
        for outcome in self.outcomes.iter().filter(|outcome| outcome.fault.is_some()) {
            if !names.contains(&outcome.case) {
                names.push(outcome.case);
            }
        }
        names
    }
}

/// What was left out, what failed, and the figures.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for LeftOut { case, why } in &self.left_out {
            writeln!(f, "not asked for: {case} ({why})")?;
        }
        for outcome in self.outcomes.iter().filter(|outcome| outcome.fault.is_some()) {
            writeln!(f, "{outcome}")?;
        }
        write!(f, "{}: {} passed, {} failed", self.subject, self.passed, self.failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Fault;
    use crate::versions::INFORMANT;

    #[test]
    fn a_report_ends_with_its_figures_and_names_what_failed() {
        let mut report = Report::new("informant at x".to_owned());
        assert!(!report.holds(), "nothing was tried");
        report.add(Outcome::new("a", &["I-X-1"], INFORMANT[0], Duration::from_millis(2), Ok(())));
        assert!(report.holds());
        let wrong = Err(Fault("is 1, expected 2".to_owned()));
        for version in &INFORMANT[..2] {
            let took = Duration::ZERO;
            report.add(Outcome::new("b", &["I-X-2", "J-Y-1"], *version, took, wrong.clone()));
        }
        report.leave_out("c", "needs --provoke".to_owned());
        assert!(!report.holds());
        assert_eq!(report.failing(), ["b"]);
        let text = report.to_string();
        assert!(
            text.starts_with("not asked for: c (needs --provoke)\nFAIL v1.0  b  [I-X-2 J-Y-1]")
        );
        assert!(text.ends_with("informant at x: 1 passed, 2 failed"), "{text}");
        let json = serde_json::to_value(&report).expect("a report is plain data");
        assert_eq!(json["outcomes"][1]["fault"], "is 1, expected 2");
        assert_eq!(json["outcomes"][0]["fault"], serde_json::Value::Null);
    }
}
