//! Law 8 in the demo: every VM got where the script says, in each step.

use super::{Check, Verdict};
use crate::recording::Recording;

/// Where each VM was at the end of each step against where it should have been.
pub(super) fn check(recording: &Recording) -> Verdict {
    let mut verdict = Verdict::of(Check::EveryGoalReached);
    let ended = recording.ended();
    for act in &recording.acts {
        for end in &act.ends {
            let step = format!("in step \"{}\" it should have {}", act.name, end.should);
            let wrong = match end.had {
                Some(had) if had == end.should => None,
                Some(had) => Some(format!("{step}, it has {had}")),
                None => Some(format!("{step}, and nothing was seen of it")),
            };
            verdict.compare(act.over(ended), Some(&end.vm), wrong);
        }
        let late = act.reached.is_none().then(|| {
            format!("step \"{}\" did not come to its end within {:?}", act.name, act.within)
        });
        verdict.compare(act.over(ended), None, late);
    }
    verdict
}
