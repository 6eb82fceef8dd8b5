//! The picture of a made-up recording: what stands where, when, and in which light.

use super::super::rehearsal::recording;
use super::super::script::SCRIPT;
use super::super::view::Span;
use super::*;

fn one(spans: &[(&str, Tone)]) -> Frame {
    let span = |(text, tone): &(&str, Tone)| Span { text: (*text).to_owned(), tone: *tone };
    Frame(vec![spans.iter().map(span).collect()])
}

#[test]
fn every_word_has_its_place_and_stays_text() {
    let frame = one(&[(" a ", Tone::Plain), ("<b> & c", Tone::Bad)]);
    let svg = drawn(&[frame], 0, "\"x\"");
    for word in [
        "<text class=\"plain\" x=\"22.4\" y=\"58.0\" textLength=\"8.4\">a</text>",
        "<text class=\"bad\" x=\"39.2\" y=\"58.0\" textLength=\"25.2\">&lt;b&gt;</text>",
        "<text class=\"bad\" x=\"72.8\" y=\"58.0\" textLength=\"8.4\">&amp;</text>",
        "<text class=\"bad\" x=\"89.6\" y=\"58.0\" textLength=\"8.4\">c</text>",
        "<title>&quot;x&quot;</title>",
    ] {
        assert!(svg.contains(word), "{word} in {svg}");
    }
}

#[test]
fn blocks_are_drawn_and_no_font_is_asked_for_them() {
    let svg = drawn(&[one(&[("■□ ", Tone::Held), ("■", Tone::Good)])], 0, "x");
    assert!(!svg.contains("<text") && !svg.contains(BLOCKS));
    let places: Vec<&str> = svg.split("<rect class=\"").skip(2).collect();
    assert_eq!(places.len(), 3);
    assert!(places[0].starts_with("held\" x=\"14.7\""), "{svg}");
    assert!(places[1].starts_with("held empty\" x=\"23.1\""), "{svg}");
    assert!(places[2].starts_with("good\" x=\"39.9\""), "{svg}");
}

#[test]
fn what_changes_is_shown_in_its_frames_and_what_stays_is_there_once() {
    let frames = ["x 1", "x 2", "x 2", "x 1"].map(|text| one(&[(text, Tone::Plain)]));
    let svg = drawn(&frames, 1, "x");
    assert_eq!(svg.matches(">x</text>").count(), 1);
    assert!(svg.contains(".m{animation:1.6s step-end infinite}"), "{svg}");
    let hides = "{0%{visibility:visible}25%{visibility:hidden}75%{visibility:visible}}";
    let shows = "{0%{visibility:hidden}25%{visibility:visible}75%{visibility:hidden}}";
    assert!(svg.contains(hides) && svg.contains(shows), "{svg}");
    // Where nothing moves, the second frame stands.
    let still = svg.split("<g").find(|group| group.contains(">1</text>")).unwrap();
    assert!(still.contains("visibility=\"hidden\""));
    let still = svg.split("<g").find(|group| group.contains(">2</text>")).unwrap();
    assert!(!still.contains("visibility=\"hidden\""));
}

#[test]
fn no_two_words_of_a_frame_touch_and_none_leaves_the_window() {
    let recording = recording();
    let steps: Vec<&str> = SCRIPT.steps.iter().map(|step| step.name).collect();
    let svg = svg(&recording, &SCRIPT);
    let width: f64 =
        svg.split("width=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap();
    for at in moments(&recording) {
        let words = words_of(&frame(&recording.until(at), &steps, at));
        for pair in words.windows(2).filter(|pair| pair[0].row == pair[1].row) {
            assert!(pair[0].column + length(&pair[0].text) <= pair[1].column, "{pair:?}");
        }
        let right = words.iter().map(|word| MARGIN + cells(word.column + length(&word.text)));
        assert!(right.fold(0.0, f64::max) <= width, "{at:?}");
    }
}

/// As a page of GitHub shows it: an image, of which only markup and style sheet count.
#[test]
fn the_picture_moves_in_light_and_dark_and_asks_for_nothing() {
    let drawn = svg(&recording(), &SCRIPT);
    let kept = include_str!("../../../docs/demo.svg");
    for svg in [drawn.as_str(), kept] {
        for has in [
            "@keyframes ",
            "@media (prefers-color-scheme: dark)",
            "@media (prefers-reduced-motion: no-preference)",
            ">contention</text>",
        ] {
            assert!(svg.contains(has), "{has}");
        }
        let (_, inside) = svg.split_once("svg\"").unwrap();
        for loads in ["http", "href", "url(", "@import", "<script", "<image", " fill=", " style="] {
            assert!(!inside.contains(loads), "{loads}");
        }
        assert!(svg.len() < 150_000, "{} bytes", svg.len());
        for group in ["g", "text", "style", "title"] {
            let opened = svg.matches(&format!("<{group}>")).count()
                + svg.matches(&format!("<{group} ")).count();
            assert_eq!(opened, svg.matches(&format!("</{group}>")).count(), "{group}");
        }
    }
}

#[test]
fn a_long_run_has_no_more_frames() {
    let mut recording = recording();
    let late = recording.began.after(Duration::from_secs(3600));
    recording.acts.last_mut().unwrap().reached = Some(late);
    let moments = moments(&recording);
    assert!(moments.len() <= 65 + STAYS, "{}", moments.len());
    assert_eq!(moments.last(), Some(&late));
}

#[test]
fn where_nothing_moves_the_picture_is_the_end_of_its_step() {
    let mut recording = recording();
    for act in &mut recording.acts {
        act.reached = Some(act.began.after(Duration::from_secs(5)));
    }
    let svg = svg(&recording, &SCRIPT);
    let still: String = svg.split("<g").filter(|group| !group.contains("\"hidden\"")).collect();
    assert!(still.contains(">burst</text>") && still.contains(">short</text>"));
    assert_eq!(still.matches(">✓</text>").count(), 4);
}
