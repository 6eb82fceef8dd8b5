//! The report of a made-up recording: what is in it, and what is not.

use super::{labels, render};
use crate::laws::check;
use crate::recording::Recording;
use crate::rehearsal::recording;
use expect_test::expect_file;
use windlass_protocol::MilliCpu;

#[test]
fn the_report_of_an_honest_recording_reads_as_it_should() {
    expect_file!["golden.txt"].assert_eq(&text(&page(&recording())));
}

#[test]
fn each_vm_has_two_charts_with_axes_legend_and_steps() {
    let recording = recording();
    let page = page(&recording);
    let charts = page.matches("<div class=\"chart\"").count();
    assert_eq!(charts, 2 * (recording.vms.len() + 1));
    for shown in [
        "<svg class=\"lines\"",
        ">seconds</div>",
        "<div class=\"values\"><span",
        "<div class=\"times\"><span",
        "<div class=\"steps wide\"><span",
        "<div class=\"steps narrow\"><span",
        "<p class=\"legend\">",
    ] {
        assert_eq!(page.matches(shown).count(), charts, "{shown}");
    }
    // Once in the legend, once in a chart.
    assert_eq!(page.matches("class=\"mark\"").count(), 2);
    assert!(page.contains("s: declined to shrink below 512MiB"));
    assert!(page.contains("wants 2 vCPU / 512MiB, may have 1 vCPU / 512MiB"));
}

#[test]
fn the_page_asks_for_nothing_from_outside() {
    let page = page(&recording());
    for loads in ["http:", "https:", "src=", "href=", "url(", "@import", "<script", "<link"] {
        assert!(!page.contains(loads), "{loads}");
    }
}

#[test]
fn every_tag_that_is_opened_is_closed() {
    let page = page(&recording());
    let tags = [
        "svg", "section", "table", "tbody", "tr", "td", "figure", "div", "main", "pre", "p",
        "span", "dl", "dt", "dd",
    ];
    for tag in tags {
        let opened =
            page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
        assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{tag}");
        assert!(opened > 0, "{tag}");
    }
}

/// Nothing is wider than a page of 320 pixels, and no words are stretched with a drawing.
#[test]
fn the_page_fits_any_width() {
    let page = page(&recording());
    assert!(page.contains("name=\"viewport\" content=\"width=device-width, initial-scale=1\""));
    for drawing in page.split("<svg").skip(1) {
        let (drawing, _) = drawing.split_once("</svg>").unwrap();
        assert!(!drawing.contains("<text"), "{drawing}");
    }
    for kept in ["<pre width", "<table width", "<svg width", "style=\"width", "<nobr"] {
        assert!(!page.contains(kept), "{kept}");
    }
    for rule in STYLE.split(['{', ';', '}']).map(str::trim) {
        let widest = rule.strip_prefix("width:").or(rule.strip_prefix("min-width:"));
        let pixels = widest.and_then(|width| width.trim().strip_suffix("px"));
        assert!(pixels.is_none_or(|pixels| pixels.parse::<u32>().unwrap() <= 110), "{rule}");
        assert!(!rule.starts_with("overflow-x"), "{rule}: what is cut off is not read");
        assert!(!rule.starts_with("white-space: pre;"), "{rule}");
    }
}

/// Where a table is a stack of cards, the figures have their names from the cells.
#[test]
fn every_figure_of_a_table_has_a_name_of_its_own() {
    let page = page(&recording());
    for class in ["number", "size", "good", "bad"] {
        for cell in page.split(&format!("<td class=\"{class}\" ")).skip(1) {
            assert!(!cell.starts_with("data-label=\"\""), "{class}");
        }
    }
    let stacked = STYLE.find("thead { display: none; }").unwrap();
    assert!(STYLE[stacked..].contains("content: attr(data-label)"));
}

#[test]
fn light_and_dark_name_the_same_colours() {
    let (light, dark) = STYLE.split_once("@media (prefers-color-scheme: dark)").unwrap();
    let (dark, rules) = dark.split_once("\n}\n").unwrap();
    let names = |text: &str| -> Vec<String> {
        let words = text.split_whitespace().filter(|word| word.starts_with("--"));
        words.map(str::to_owned).collect()
    };
    assert!(light.contains("color-scheme: light dark;"));
    assert!(names(light).len() > 10);
    assert_eq!(names(light), names(dark));
    assert!(!rules.contains('#'), "a colour that does not change with the scheme");
}

#[test]
fn names_of_steps_appear_where_they_have_room() {
    assert!(STYLE.contains("grid-template-columns: 58px "));
    let from = labels::WIDE + 58.0;
    assert!(STYLE.contains(&format!("@container (min-width: {from}px) {{\n  .steps.wide")));
    let page = page(&recording());
    let row = |class: &str| {
        let (_, row) = page.split_once(&format!("<div class=\"steps {class}\">")).unwrap();
        row.split_once("</div>").unwrap().0.to_owned()
    };
    assert!(row("wide").contains(">contention</span>"));
    assert!(row("narrow").contains(">3</span>") && !row("narrow").contains("contention"));
    assert!(page.contains("3 <b>contention</b>"), "the table says which is 3");
}

#[test]
fn compared_and_unknown_are_explained_where_they_stand() {
    let page = page(&recording());
    let (_, checked) = page.split_once("<h2>What was checked</h2>").unwrap();
    let (checked, _) = checked.split_once("</section>").unwrap();
    assert!(checked.contains("<b>Unknown</b>: how often that could not be done"));
    assert!(checked.contains("within 6 seconds"));
}

#[test]
fn what_a_guest_or_host_says_stays_text() {
    assert!(page(&recording()).contains("load 2.0 &lt;of two processes&gt; &amp; more"));
}

#[test]
fn a_broken_law_is_in_the_headline_and_in_its_row() {
    let mut recording = recording();
    let web = &mut recording.vms[0];
    for reading in web.inside.iter_mut().skip(70).take(8) {
        reading.value.online = MilliCpu::from_cores(3);
    }
    let page = page(&recording);
    assert!(page.contains("checks failed"), "headline");
    assert!(page.contains("web: has 3 vCPU online, its permit is 1 vCPU"), "row");
}

const STYLE: &str = include_str!("style.css");

/// What a reader reads: without drawings, a line per block.
fn text(page: &str) -> String {
    let (_, body) = page.split_once("<main>").unwrap();
    let mut text = String::new();
    let mut drawing = 0_u32;
    for part in body.split('<') {
        let (tag, words) = part.split_once('>').unwrap_or(("", part));
        match tag.split(' ').next().unwrap() {
            "svg" => drawing += 1,
            "/svg" => drawing -= 1,
            "td" | "th" => text.push_str(" | "),
            "small" | "li" | "dd" => text.push_str(" - "),
            "span" => text.push(' '),
            _ => {}
        }
        if drawing == 0 {
            text.push_str(words);
        }
    }
    text
}

fn page(recording: &Recording) -> String {
    render(recording, &check(recording))
}
