//! Whether the run was decided for the reasons that the script is known to give, in their order.

use super::{Check, Verdict};
use crate::reasons::{self, SCRIPTED};
use crate::recording::Recording;

/// Compares line by line, VM by VM.
pub(crate) fn check(recording: &Recording) -> Verdict {
    against(recording, SCRIPTED)
}

fn against(recording: &Recording, scripted: &str) -> Verdict {
    let mut verdict = Verdict::of(Check::ReasonsOfTheScript);
    let end = recording.ended();
    let given = reasons::of(recording);
    for vm in &recording.vms {
        let lines = |text: &str| -> Vec<String> {
            text.lines()
                .skip_while(|line| *line != vm.name.name)
                .skip(1)
                .take_while(|line| line.starts_with(' '))
                .map(|line| line.trim().to_owned())
                .collect()
        };
        let (given, scripted) = (lines(&given), lines(scripted));
        for place in 0..given.len().max(scripted.len()) {
            let line =
                |lines: &[String]| lines.get(place).map_or("none", String::as_str).to_owned();
            let (is, should) = (line(&given), line(&scripted));
            let wrong = (is != should)
                .then(|| format!("reason {} is “{is}”, and should be “{should}”", place + 1));
            verdict.compare(end, Some(&vm.name), wrong);
        }
    }
    verdict
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rehearsal;

    #[test]
    fn another_reason_is_found_and_so_is_one_too_few() {
        let mut recording = rehearsal::recording();
        assert!(against(&recording, &reasons::of(&recording)).holds());
        assert!(!check(&recording).holds(), "the rehearsal is made up, its reasons too");
        for vm in &mut recording.vms {
            vm.decisions.clear();
        }
        let verdict = check(&recording);
        let scripted = SCRIPTED.lines().filter(|line| line.starts_with(' ')).count();
        assert_eq!(verdict.compared, scripted as u64);
        assert_eq!(verdict.violations.len(), scripted);
    }
}
