//! What the terminal shows while the demo runs: a function of the recording so far.
//!
//! A frame is rows of toned text; [`super::screen`] puts it on a terminal, and
//! [`super::picture`] draws the same frames as SVG.

use super::recording::{Act, Ours, Recording, Track};
use super::waits::waits;
use windlass_protocol::{Bytes, Moment, Resources, Seen};

/// Columns of a frame; no row is longer.
pub(crate) const WIDTH: usize = 100;

/// Rows of toned text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Frame(pub(crate) Vec<Vec<Span>>);

/// Some text in one tone.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Span {
    /// The words.
    pub(crate) text: String,
    /// How they look.
    pub(crate) tone: Tone,
}

/// How text looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tone {
    /// As usual.
    Plain,
    /// Standing out.
    Strong,
    /// Standing back.
    Faint,
    /// As it should be.
    Good,
    /// Not as it should be.
    Bad,
    /// Short of something.
    Short,
    /// What is held.
    Held,
}

/// The frame at this moment, while the step `step` of `steps` is played.
pub(crate) fn frame(recording: &Recording, steps: &[&str], now: Moment) -> Frame {
    let mut rows = vec![headline(recording, steps.len(), now)];
    let says = recording.acts.last().map_or("", |act| act.says.as_str());
    rows.push(vec![span(format!(" {says}"), Tone::Strong)]);
    rows.push(Vec::new());
    let head = format!(
        " {:<7}{:>5}  {:<10}{:<10}{:<12}{:<10}{:<9}{}",
        "vm", "load", "goal", "permit", "hypervisor", "inside", "has", "waits for"
    );
    rows.push(vec![span(head, Tone::Faint)]);
    let most = recording.vms.iter().map(|vm| vm.bounds.max).fold(Resources::ZERO, Resources::max);
    let blocks = (most.cpu.whole(recording.unit.cpu), most.mem.whole(recording.unit.mem));
    rows.extend(recording.vms.iter().map(|vm| vm_row(vm, recording.unit, blocks)));
    rows.push(node_row(recording));
    rows.push(Vec::new());
    rows.push(checklist(recording, steps));
    Frame(rows.into_iter().map(fitted).collect())
}

fn headline(recording: &Recording, steps: usize, now: Moment) -> Vec<Span> {
    let seconds = now.since(recording.began).as_secs();
    let played = recording.acts.iter().filter(|act| act.reached.is_some()).count();
    let name = recording.acts.last().map_or("", |act| act.name.as_str());
    let bar: String = (0..steps).map(|step| if step < played { '■' } else { '□' }).collect();
    vec![
        span(" windlass demo  ", Tone::Faint),
        span(bar, Tone::Good),
        span(format!("  {name}"), Tone::Strong),
        span(format!("  {}:{:02}  ", seconds / 60, seconds % 60), Tone::Faint),
        span("(sizes in vCPU · MiB)", Tone::Faint),
    ]
}

/// `columns` is the most blocks of vCPU and of memory that any VM has.
fn vm_row(vm: &Track, unit: Resources, columns: (u64, u64)) -> Vec<Span> {
    let ours = vm.ours.last().map(|reading| &reading.value);
    let seen = vm.outside.last().map(|reading| reading.value);
    let inside = vm.inside.last().map(|reading| reading.value);
    let load = ours.and_then(|ours| ours.load).map_or("?".to_owned(), |load| format!("{load:.2}"));
    let goal = ours.and_then(|ours| ours.goal);
    let permit = ours.and_then(|ours| ours.permit);
    let short = goal.zip(permit).is_some_and(|(goal, permit)| !permit.covers(goal));
    let hypervisor = seen.map(|seen| Resources { cpu: seen.plugged, mem: seen.memory.present() });
    let guest = inside.map(|inside| Resources { cpu: inside.online, mem: inside.total });
    let cpu = inside.map_or(0, |inside| inside.online.whole(unit.cpu));
    let memory = seen.map_or(0, |seen: Seen| seen.memory.present().whole(unit.mem));
    let most = vm.bounds.max;
    let mut row = vec![
        span(format!(" {:<7}", vm.name.name), Tone::Strong),
        span(format!("{load:>5}  "), Tone::Plain),
        span(format!("{:<10}", size(goal)), if short { Tone::Short } else { Tone::Plain }),
        span(format!("{:<10}", size(permit)), if short { Tone::Short } else { Tone::Plain }),
        span(format!("{:<12}", size(hypervisor)), Tone::Plain),
        span(format!("{:<10}", size(guest)), Tone::Plain),
        span(blocks(cpu, most.cpu.whole(unit.cpu), columns.0), Tone::Held),
        span(blocks(memory, most.mem.whole(unit.mem), columns.1), Tone::Good),
    ];
    row.push(ours.map_or(span("?", Tone::Faint), waiting));
    row
}

/// The first thing that is waited for.
fn waiting(ours: &Ours) -> Span {
    let text = ours.waiting.first().map_or(String::new(), waits);
    let tone = if text == "–" { Tone::Faint } else { Tone::Short };
    span(text, tone)
}

fn node_row(recording: &Recording) -> Vec<Span> {
    let Some(books) = recording.books.last().map(|reading| reading.value) else {
        return vec![span(" node", Tone::Strong)];
    };
    let tone = if books.room.covers(books.reserved) { Tone::Faint } else { Tone::Bad };
    vec![
        span(format!(" {:<14}", "node"), Tone::Strong),
        span(format!("reserved {} of {}", books.reserved, books.room), tone),
    ]
}

fn checklist(recording: &Recording, steps: &[&str]) -> Vec<Span> {
    let mut row = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        let (sign, tone) = match recording.acts.get(index) {
            None => (" ", Tone::Faint),
            Some(Act { reached: Some(_), .. }) => ("✓", Tone::Good),
            Some(_) if index + 1 < recording.acts.len() => ("✗", Tone::Bad),
            Some(_) => ("▸", Tone::Strong),
        };
        row.push(span(format!(" {sign} {step}"), tone));
    }
    row
}

fn size(size: Option<Resources>) -> String {
    size.map_or("?".to_owned(), |size| format!("{} · {}", size.cpu, whole_mib(size.mem)))
}

fn whole_mib(memory: Bytes) -> u64 {
    memory.round_up(Bytes::from_mib(1)).mib()
}

/// A block per unit, full where it is held, and blanks up to `columns` and one more.
fn blocks(held: u64, most: u64, columns: u64) -> String {
    let most = most.max(held);
    let block = |place| match place {
        place if place < held => '■',
        place if place < most => '□',
        _ => ' ',
    };
    (0..=columns.max(most)).map(block).collect()
}

fn span(text: impl Into<String>, tone: Tone) -> Span {
    Span { text: text.into(), tone }
}

/// A row cut at [`WIDTH`].
fn fitted(row: Vec<Span>) -> Vec<Span> {
    let mut left = WIDTH;
    let mut kept = Vec::new();
    for mut part in row {
        let length = part.text.chars().count();
        if length > left {
            part.text = part.text.chars().take(left).collect();
        }
        left = left.saturating_sub(length);
        kept.push(part);
    }
    kept
}

// === impl Frame ===

impl Frame {
    /// Without tones.
    #[cfg(test)]
    pub(crate) fn text(&self) -> String {
        let row = |row: &Vec<Span>| row.iter().map(|span| span.text.as_str()).collect::<String>();
        self.0.iter().map(|spans| row(spans).trim_end().to_owned() + "\n").collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{rehearsal, script::SCRIPT};
    use super::*;
    use expect_test::expect;

    #[test]
    fn a_frame_in_contention_shows_who_is_short_of_what() {
        let recording = rehearsal::recording();
        let over = recording.acts[3].reached.unwrap();
        let recording = recording.until(over);
        let steps: Vec<&str> = SCRIPT.steps.iter().map(|step| step.name).collect();
        expect![[r#"
            frame:
             windlass demo  ■■■■□□□□  burst  0:31  (sizes in vCPU · MiB)
             cache takes 16 MiB every quarter of a second; memory comes at once, a vCPU does not

             vm      load  goal      permit    hypervisor  inside    has      waits for
             web     4.00  2 · 512   1 · 512   3 · 512     1 · 474   ■□  ■■   room: 1 vCPU short
             batch   6.00  3 · 768   3 · 768   3 · 768     3 · 730   ■■■ ■■■  –
             cache   0.00  2 · 512   1 · 512   3 · 512     1 · 474   ■□□ ■■□□ room: 1 vCPU short
             node          reserved 5 vCPU / 1.75GiB of 5 vCPU / 1.75GiB

             ✓ idle ✓ rise ✓ contention ✓ burst   ease   yield   refusal   fall
        "#]]
        .assert_eq(&format!("frame:\n{}", frame(&recording, &steps, over).text()));
    }

    #[test]
    fn columns_stand_straight() {
        let recording = rehearsal::recording();
        for at in [recording.began, recording.acts[3].began, recording.ended()] {
            let frame = frame(&recording.until(at), &["idle"], at);
            let start = |row: &Vec<Span>| {
                let before = row.iter().take(row.len() - 1);
                before.map(|span| span.text.chars().count()).sum::<usize>()
            };
            let text = frame.text();
            let head = text.lines().find(|line| line.starts_with(" vm")).unwrap();
            let waits = head.find("waits for").unwrap();
            for row in &frame.0[4..4 + recording.vms.len()] {
                assert_eq!(start(row), waits, "{text}");
            }
        }
    }

    #[test]
    fn no_row_is_longer_than_the_frame() {
        let mut recording = rehearsal::recording();
        recording.acts[0].says = "x".repeat(200);
        recording.acts.truncate(1);
        let frame = frame(&recording, &["idle"], recording.began);
        let length = |row: &Vec<Span>| row.iter().map(|s| s.text.chars().count()).sum::<usize>();
        assert!(frame.0.iter().all(|row| length(row) <= WIDTH));
    }
}
