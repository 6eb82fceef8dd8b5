//! What of a report is better read as text: checks, steps, facts of a VM.

use super::escape::escape;
use super::series::refusals;
use crate::laws::{NEAR, Verdict};
use crate::recording::{End, Recording, Track};
use std::fmt::Write;

/// Violations told of one check; more are counted.
const TOLD: usize = 12;

/// Each check, what it found, and what its figures mean.
pub(super) fn laws(recording: &Recording, verdicts: &[Verdict]) -> String {
    let mut table = table(&["law", "what must hold", "result", "compared", "unknown"]);
    for verdict in verdicts {
        let law = verdict.check.law().map_or("–".to_owned(), |law| law.to_string());
        let class = if verdict.holds() { "good" } else { "bad" };
        let sentence = format!(
            "{}<small>{}</small>{}",
            escape(verdict.check.sentence()),
            escape(verdict.check.how()),
            violations(recording, verdict)
        );
        table.push_str("<tr>");
        cell(&mut table, "", "law", &law);
        cell(&mut table, "wide", "", &sentence);
        cell(&mut table, class, "result", verdict.word());
        cell(&mut table, "number", "compared", &verdict.compared.to_string());
        cell(&mut table, "number", "unknown", &verdict.unknown.to_string());
        table.push_str("</tr>\n");
    }
    table.push_str("</tbody>\n</table>\n");
    let _ = writeln!(table, "<p class=\"note\">{}</p>", figures());
    table
}

/// What "compared" and "unknown" count.
fn figures() -> String {
    format!(
        "A law has its number of ARCHITECTURE.md. <b>Compared</b>: how often a figure was held against \
         what must hold of it. <b>Unknown</b>: how often that could not be done, because the other \
         figure was not read within {} seconds before and after, as at the very beginning and end of \
         the run. What is unknown counts neither for nor against; a check with no more compared than \
         unknown is “not shown”, and has failed.",
        NEAR.as_secs()
    )
}

/// Each step: what the watcher should see, and when it was seen.
pub(super) fn acts(recording: &Recording) -> String {
    let mut heads = vec!["step", "what should be seen", "from", "there after"];
    heads.extend(recording.vms.iter().map(|vm| vm.name.name.as_str()));
    let mut table = table(&heads);
    for (act, number) in recording.acts.iter().zip(1..) {
        let reached = act.reached.map_or("<span class=\"bad\">never</span>".to_owned(), |at| {
            format!("{:.1} s", at.since(act.began).as_secs_f64())
        });
        let (number, name): (u32, _) = (number, escape(&act.name));
        let began = format!("{:.1} s", recording.seconds(act.began));
        table.push_str("<tr>");
        cell(&mut table, "step", "", &format!("{number} <b>{name}</b>"));
        cell(&mut table, "wide", "", &escape(&act.says));
        cell(&mut table, "number", "from", &began);
        cell(&mut table, "number", "there after", &reached);
        for end in &act.ends {
            cell(&mut table, "size", &end.vm.name, &end_of(end));
        }
        table.push_str("</tr>\n");
    }
    table.push_str("</tbody>\n</table>\n");
    table
}

/// A table up to its first row.
fn table(heads: &[&str]) -> String {
    let mut table = String::from("<table>\n<thead><tr>");
    for head in heads {
        let _ = write!(table, "<th>{}</th>", escape(head));
    }
    table.push_str("</tr></thead>\n<tbody>\n");
    table
}

/// A cell; `label` names it where a page is too narrow for columns.
fn cell(table: &mut String, class: &str, label: &str, content: &str) {
    let label = escape(label);
    let _ = write!(table, "<td class=\"{class}\" data-label=\"{label}\">{content}</td>");
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
