//! The reasons of a run, in order: what must be the same each time the script is played.
//!
//! A real guest's load rises by fractions at odd moments, so how many decisions there are,
//! and at which sizes, differs from run to run. What does not differ is kept: which signal
//! won and what clipped it, whether the books gave all that was asked for, at once or later,
//! what the guest said, and what became of it. Equal neighbours are one line.

use super::recording::{Recording, Track};
use std::fmt::Write;
use windlass_protocol::{Clip, Decision, Outcome};

/// The reasons of the script, as they come when it is played in the world.
pub(crate) const SCRIPTED: &str = include_str!("reasons.txt");

/// Per VM a heading, then a line per reason.
pub fn list<'a>(vms: impl IntoIterator<Item = (&'a str, &'a [Decision])>) -> String {
    let mut text = String::new();
    for (vm, decisions) in vms {
        let _ = writeln!(text, "{vm}");
        let mut last = String::new();
        for decision in decisions {
            let line = line(decision);
            if line != last {
                let _ = writeln!(text, "  {line}");
                last = line;
            }
        }
    }
    text
}

/// The reasons of a recording.
pub(crate) fn of(recording: &Recording) -> String {
    let track = |vm: &'_ Track| (vm.name.name.clone(), vm.decisions.clone());
    let vms: Vec<(String, Vec<Decision>)> = recording.vms.iter().map(track).collect();
    list(vms.iter().map(|(name, decisions)| (name.as_str(), decisions.as_slice())))
}

/// `load cpu=maximum; permit short; agreed; replaced`.
fn line(decision: &Decision) -> String {
    let reason = decision.reason;
    let clip = |axis: &str, clip: Option<Clip>| {
        // Whether whole units made an axis larger depends on the moment, too.
        let clip = clip.filter(|clip| *clip != Clip::Unit);
        clip.map_or(String::new(), |clip| format!(" {axis}={}", clip))
    };
    let permit = match decision.permit {
        None => "not asked",
        Some(answer) if !answer.is_full() => "permit short",
        Some(_) if decision.short.is_some() => "permit short, then full",
        Some(_) => "permit full",
    };
    let consent = match &decision.consent {
        None => "",
        Some(consent) if !consent.agreed => "; declined",
        Some(_) if decision.refusal.is_some() => "; declined, then agreed",
        Some(_) => "; agreed",
    };
    let outcome = match decision.outcome {
        Outcome::Open => "open",
        Outcome::Reached { .. } => "reached",
        Outcome::Replaced { .. } => "replaced",
        Outcome::Observed => "observed",
        Outcome::Interrupted { .. } => "interrupted",
    };
    format!(
        "{}{}{}; {permit}{consent}; {outcome}",
        reason.signal,
        clip("cpu", reason.cpu),
        clip("mem", reason.mem),
    )
}

#[cfg(test)]
mod tests {
    use super::super::rehearsal;
    use super::*;
    use expect_test::expect;

    #[test]
    fn equal_neighbours_are_one_line() {
        expect![[r#"
            web
              load; permit short; reached
              load; permit full; reached
              load; permit full; declined; reached
              load; permit full; agreed; reached
            batch
              load; permit full; reached
              load; permit full; agreed; reached
            cache
              load; permit short; reached
              load; permit full; reached
              load; permit full; agreed; reached
        "#]]
        .assert_eq(&of(&rehearsal::recording()));
    }
}
