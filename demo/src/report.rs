//! The report of a demo: one HTML page with everything in it.
//!
//! A pure function of the recording and of what was found in it: the page loads nothing, runs
//! nothing, and reads well in light and dark, from 320 pixels up. Charts are inline SVG drawn by
//! `chart`; `series` turns readings into lines; `tables` has what is better read as text.

mod chart;
mod escape;
mod labels;
mod page;
mod series;
mod tables;

use crate::laws::Verdict;
use crate::recording::Recording;
use escape::escape;

/// The whole page.
pub(crate) fn render(recording: &Recording, verdicts: &[Verdict]) -> String {
    let mut body = String::new();
    body.push_str(&page::head(recording, verdicts));
    body.push_str(&section("What was checked", &tables::laws(recording, verdicts)));
    body.push_str(&section("What was played", &tables::acts(recording)));
    body.push_str(&section("The node", &charts(&series::node(recording))));
    for vm in &recording.vms {
        let mut content = tables::facts(vm);
        content.push_str(&charts(&series::vm(recording, vm)));
        body.push_str(&section(&vm.name.name, &content));
    }
    if let Some(explained) = &recording.explained {
        let title = format!("windlass explain {}", explained.vm.name);
        body.push_str(&section(&title, &format!("<pre>{}</pre>\n", escape(&explained.text))));
    }
    body.push_str(&section("How to read this", page::READING));
    page::whole(&body)
}

fn section(title: &str, content: &str) -> String {
    format!("<section>\n<h2>{}</h2>\n{content}</section>\n", escape(title))
}

/// Beside each other where the page is wide enough for two.
fn charts(charts: &[chart::Chart]) -> String {
    let figures: String = charts.iter().map(chart::Chart::figure).collect();
    format!("<div class=\"charts\">\n{figures}</div>\n")
}

#[cfg(test)]
mod tests;
