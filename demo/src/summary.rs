//! What is printed when the demo is over: steps, checks, and the story of one VM.

use super::laws::{NEAR, Verdict};
use super::recording::Recording;
use std::fmt::Write;

/// The whole text.
pub(crate) fn summary(recording: &Recording, verdicts: &[Verdict]) -> String {
    let mut text = String::new();
    text.push('\n');
    if let Some(explained) = &recording.explained {
        let _ = writeln!(text, "windlass explain {}\n\n{}", explained.vm.name, explained.text);
    }
    steps(&mut text, recording);
    checks(&mut text, recording, verdicts);
    text
}

fn steps(text: &mut String, recording: &Recording) {
    let _ = write!(text, "{:<12}{:>9}  ", "step", "there");
    for vm in &recording.vms {
        let _ = write!(text, "{:<20}", vm.name.name);
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    for act in &recording.acts {
        let there = act
            .reached
            .map_or("never".to_owned(), |at| format!("{:.1} s", at.since(act.began).as_secs_f64()));
        let _ = write!(text, "{:<12}{there:>9}  ", act.name);
        for end in &act.ends {
            let had = end.had.map_or("not seen".to_owned(), |had| had.to_string());
            let sign = if end.had != Some(end.should) {
                " !"
            } else if end.wanted.is_some() {
                " <"
            } else {
                ""
            };
            let _ = write!(text, "{:<20}", format!("{had}{sign}"));
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text.push_str("(< has less than it wants, for want of room; ! is not where it should be)\n\n");
}

fn checks(text: &mut String, recording: &Recording, verdicts: &[Verdict]) {
    for verdict in verdicts {
        let law = verdict.check.law().map_or(String::new(), |law| format!("law {law}"));
        let _ = writeln!(
            text,
            "{law:<7}{:<56}{:<10}{:>6} compared, {} unknown",
            verdict.check.sentence(),
            verdict.word(),
            verdict.compared,
            verdict.unknown
        );
        for violation in &verdict.violations {
            let vm = violation.vm.as_ref().map_or(String::new(), |vm| format!("{}: ", vm.name));
            let seconds = recording.seconds(violation.at);
            let _ = writeln!(text, "       {seconds:.1} s  {vm}{}", violation.what);
        }
    }
    let _ = writeln!(
        text,
        "(unknown: the figure to compare with was not read within {} s; counts neither for nor against)",
        NEAR.as_secs()
    );
}

#[cfg(test)]
mod tests {
    use super::super::laws::check;
    use super::super::rehearsal::recording;
    use super::*;
    use expect_test::expect;

    #[test]
    fn the_summary_reads_as_it_should() {
        let mut recording = recording();
        recording.acts.truncate(4);
        recording.acts[3].reached = None;
        recording.acts[3].ends[2].had = None;
        expect![[r#"

            windlass explain web

            12:00:00 web: load 2.0 <of two processes> & more

            step            there  web                 batch               cache
            idle            7.8 s  1 vCPU / 256MiB     1 vCPU / 256MiB     1 vCPU / 256MiB
            rise            7.8 s  1 vCPU / 256MiB     3 vCPU / 768MiB     1 vCPU / 256MiB
            contention      7.8 s  1 vCPU / 512MiB <   3 vCPU / 768MiB     1 vCPU / 256MiB
            burst           never  1 vCPU / 512MiB <   3 vCPU / 768MiB     not seen !
            (< has less than it wants, for want of room; ! is not where it should be)

            law 1  A VM never has more than its permit                     held        1536 compared, 12 unknown
            law 2  All VMs together never have more than the node          held         768 compared, 4 unknown
            law 3  Memory is asked back only as far as the guest agreed    held           4 compared, 0 unknown
            law 3  Memory never goes below what is in use inside           held         771 compared, 6 unknown
            law 8  Every VM got where it should, in each step              broken        16 compared, 0 unknown
                   64.3 s  cache: in step "burst" it should have 1 vCPU / 512MiB, and nothing was seen of it
                   64.3 s  step "burst" did not come to its end within 60s
                   Every VM was seen from all sides, in each step          held          36 compared, 0 unknown
            (unknown: the figure to compare with was not read within 6 s; counts neither for nor against)
        "#]].assert_eq(&summary(&recording, &check(&recording)));
    }
}
