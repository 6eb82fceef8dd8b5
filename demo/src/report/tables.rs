//! What of a report is better read as text: checks, steps, facts of a VM.

use super::escape::escape;
use super::series::refusals;
use crate::laws::Verdict;
use crate::recording::{End, Recording, Track};
use std::fmt::Write;

/// Violations told of one check; more are counted.
const TOLD: usize = 12;

/// Each check, and what it found.
pub(super) fn laws(recording: &Recording, verdicts: &[Verdict]) -> String {
    let mut table = String::from(
        "<table>\n<thead><tr><th>law</th><th>what must hold</th><th>result</th>\
         <th class=\"number\">compared</th><th class=\"number\">unknown</th></tr></thead>\n<tbody>\n",
    );
    for verdict in verdicts {
        let law = verdict.check.law().map_or("–".to_owned(), |law| law.to_string());
        let class = if verdict.holds() { "good" } else { "bad" };
        let _ = writeln!(
            table,
            "<tr><td>{law}</td><td>{}<small>{}</small>{}</td><td class=\"{class}\">{}</td>\
             <td class=\"number\">{}</td><td class=\"number\">{}</td></tr>",
            escape(verdict.check.sentence()),
            escape(verdict.check.how()),
            violations(recording, verdict),
            verdict.word(),
            verdict.compared,
            verdict.unknown,
        );
    }
    table.push_str("</tbody>\n</table>\n");
    table
}

/// Each step: what the watcher should see, and when it was seen.
pub(super) fn acts(recording: &Recording) -> String {
    let mut table = String::from(
        "<table>\n<thead><tr><th>step</th><th>what should be seen</th>\
         <th class=\"number\">from</th><th class=\"number\">there after</th>",
    );
    for vm in &recording.vms {
        let _ = write!(table, "<th>{}</th>", escape(&vm.name.name));
    }
    table.push_str("</tr></thead>\n<tbody>\n");
    for act in &recording.acts {
        let reached = act.reached.map_or("<span class=\"bad\">never</span>".to_owned(), |at| {
            format!("{:.1} s", at.since(act.began).as_secs_f64())
        });
        let _ = write!(
            table,
            "<tr><td><b>{}</b></td><td>{}</td><td class=\"number\">{:.1} s</td>\
             <td class=\"number\">{reached}</td>",
            escape(&act.name),
            escape(&act.says),
            recording.seconds(act.began),
        );
        for end in &act.ends {
            let _ = write!(table, "<td class=\"size\">{}</td>", end_of(end));
        }
        table.push_str("</tr>\n");
    }
    table.push_str("</tbody>\n</table>\n");
    table
}

/// One line about a VM: what it is, and what happened to it.
pub(super) fn facts(vm: &Track) -> String {
    format!(
        "<p>{}; priority {}; between {} and {}; {}, {} by its guest.</p>\n",
        escape(&vm.role),
        vm.priority,
        vm.bounds.min,
        vm.bounds.max,
        count(vm.decisions.len(), "decision"),
        count(refusals(vm).len(), "refusal"),
    )
}

fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

fn end_of(end: &End) -> String {
    let had = match end.had {
        None => "<span class=\"bad\">not seen</span>".to_owned(),
        Some(had) if had == end.should => escape(&had.to_string()),
        Some(had) => format!(
            "<span class=\"bad\">{}</span><small>should have {}</small>",
            escape(&had.to_string()),
            escape(&end.should.to_string())
        ),
    };
    match end.wanted {
        Some(wanted) => format!("{had}<small>wants {}</small>", escape(&wanted.to_string())),
        None => had,
    }
}

fn violations(recording: &Recording, verdict: &Verdict) -> String {
    let mut list = String::new();
    for violation in verdict.violations.iter().take(TOLD) {
        let vm = violation.vm.as_ref().map_or(String::new(), |vm| format!("{}: ", vm.name));
        let _ = write!(
            list,
            "<li>{:.1} s, {}</li>",
            recording.seconds(violation.at),
            escape(&format!("{vm}{}", violation.what))
        );
    }
    let more = verdict.violations.len().saturating_sub(TOLD);
    if more > 0 {
        let _ = write!(list, "<li>and {more} more</li>");
    }
    if list.is_empty() { list } else { format!("<ul class=\"bad\">{list}</ul>") }
}
