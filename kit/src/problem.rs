//! All problems of a file or other subject.
//!
//! All problems of a file are reported at once. They never affect another file.

use serde::{Deserialize, Serialize};
use std::fmt;

pub use windlass_protocol::config::Problem;

/// The problems of one file or other subject, and their consequence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// A file's path, `node`, or `state`.
    pub subject: String,
    /// The problems.
    pub problems: Vec<Problem>,
    /// The consequence: `the last valid one stays in force`.
    pub meanwhile: String,
}

// === impl Report ===

/// One line per problem, each with the subject.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, problem) in self.problems.iter().enumerate() {
            let end = if nth == 0 { "" } else { "\n" };
            write!(f, "{end}{}: {problem}", self.subject)?;
        }
        if !self.meanwhile.is_empty() {
            write!(f, " ({})", self.meanwhile)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_a_line_for_each_problem_and_then_what_is_done() {
        let report = Report {
            subject: "a.toml".to_owned(),
            problems: vec![
                Problem::new("memory", "lots", "must be a size"),
                Problem::without_value("memory", "must be there"),
            ],
            meanwhile: "it is left out".to_owned(),
        };
        let both = "a.toml: memory = lots: must be a size\na.toml: memory: must be there";
        assert_eq!(report.to_string(), format!("{both} (it is left out)"));
        let report = Report { meanwhile: String::new(), ..report };
        assert_eq!(report.to_string(), both);
    }
}
