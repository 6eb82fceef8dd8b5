//! The report of a made-up recording: what is in it, and what is not.

use super::render;
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
    let charts = page.matches("<svg class=\"chart\"").count();
    assert_eq!(charts, 2 * (recording.vms.len() + 1));
    for shown in [">seconds</text>", "class=\"tick y\"", "class=\"step\"", "<p class=\"legend\">"] {
        assert!(page.matches(shown).count() >= charts, "{shown}");
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
    for tag in ["svg", "section", "table", "tbody", "figure", "main", "pre", "p", "span", "text"] {
        let opened =
            page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
        assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{tag}");
        assert!(opened > 0, "{tag}");
    }
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
            "small" | "li" => text.push_str(" - "),
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
