//! Who of two agents did what, and whether both acted.
//!
//! An agent acts when a command that changes what the VM has leaves it, a size that the informant
//! heeds, or a request for a permit. It may from when it was told to run (`/resume`) until the
//! other one is, and no longer than its lease: ten seconds after that, or after it sent a health
//! check that was answered.

use std::fmt;
use std::time::{Duration, Instant};

/// How long an agent may act without a word of the informant (v1.2 and later).
pub const LEASE: Duration = Duration::from_secs(10);

/// One of two agents, by when it was first started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// The first.
    Old,
    /// The second.
    New,
}

/// What an agent was told, said or did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// It is told to run; it may not hear it.
    Resumed,
    /// It sent a health check that was answered.
    Checked,
    /// It changed what the VM has, or may have, by this command to QEMU or request.
    Changed(String),
}

/// That, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Act {
    /// When it passed between the two.
    pub at: Instant,
    /// The agent.
    pub who: Who,
    /// What it was.
    pub what: What,
}

/// Changes of one agent, without one of the other between them.
struct Tenure {
    who: Who,
    from: Instant,
    to: Instant,
    changes: usize,
}

/// What should not have been done, of acts in their order.
pub fn breaches(acts: &[Act]) -> Vec<String> {
    let mut told = None;
    let mut leased: [Option<Instant>; 2] = [None; 2];
    let mut breaches = Vec::new();
    for Act { at, who, what } in acts {
        let lease = &mut leased[*who as usize];
        match what {
            What::Resumed => (told, *lease) = (Some(*who), Some(*at)),
            What::Checked => *lease = Some(*at),
            What::Changed(command) if told != Some(*who) => breaches.push(match told {
                Some(other) => format!("{who} did this, though {other} was told to run: {command}"),
                None => format!("{who} did this, and was never told to run: {command}"),
            }),
            What::Changed(command) => {
                let since = lease.map_or(Duration::MAX, |lease| at.duration_since(lease));
                if since > LEASE {
                    breaches.push(format!("{who} did this {since:?} after a word: {command}"));
                }
            }
        }
    }
    breaches
}

/// Who acted when, for people: seconds since `start`.
pub fn tenures(acts: &[Act], start: Instant) -> String {
    let mut tenures: Vec<Tenure> = Vec::new();
    for act in acts.iter().filter(|act| matches!(act.what, What::Changed(_))) {
        match tenures.last_mut() {
            Some(last) if last.who == act.who => {
                last.to = act.at;
                last.changes += 1;
            }
            Some(_) | None => {
                tenures.push(Tenure { who: act.who, from: act.at, to: act.at, changes: 1 });
            }
        }
    }
    let seconds = |at: Instant| at.duration_since(start).as_secs_f64();
    let told = |tenure: &Tenure| {
        let Tenure { who, from, to, changes } = tenure;
        format!("{who}: {changes} changes, {:.1} to {:.1} s", seconds(*from), seconds(*to))
    };
    tenures.iter().map(told).collect::<Vec<_>>().join("; ")
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Old => "the old one",
            Self::New => "the new one",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Who::{New, Old};

    #[test]
    fn who_was_told_last_may_act() {
        let acts = story(&[
            (0, Old, What::Resumed),
            (1, Old, changed()),
            (2, New, What::Resumed),
            (3, New, changed()),
            (4, Old, What::Resumed),
            (5, Old, changed()),
        ]);
        assert_eq!(breaches(&acts), Vec::<String>::new());
        let told = tenures(&acts, acts[0].at);
        assert_eq!(
            told,
            "the old one: 1 changes, 1.0 to 1.0 s; the new one: 1 changes, 3.0 to 3.0 s; \
             the old one: 1 changes, 5.0 to 5.0 s"
        );
    }

    #[test]
    fn who_acts_beside_another_or_unasked_is_found() {
        let beside = [(0, Old, What::Resumed), (1, New, What::Resumed), (2, Old, changed())];
        assert_eq!(
            breaches(&story(&beside)),
            ["the old one did this, though the new one was told to run: qom-set"]
        );
        let unasked = [(0, New, What::Checked), (1, New, changed())];
        assert_eq!(
            breaches(&story(&unasked)),
            ["the new one did this, and was never told to run: qom-set"]
        );
    }

    #[test]
    fn who_acts_after_its_lease_is_found() {
        let acts = [(0, Old, What::Resumed), (9, Old, What::Checked), (19, Old, changed())];
        assert_eq!(breaches(&story(&acts)), Vec::<String>::new());
        let late = [(0, Old, What::Resumed), (11, Old, changed())];
        assert_eq!(breaches(&story(&late)), ["the old one did this 11s after a word: qom-set"]);
    }

    fn changed() -> What {
        What::Changed("qom-set".to_owned())
    }

    fn story(told: &[(u64, Who, What)]) -> Vec<Act> {
        let start = Instant::now();
        let act = |(after, who, what): &(u64, Who, What)| Act {
            at: start + Duration::from_secs(*after),
            who: *who,
            what: what.clone(),
        };
        told.iter().map(act).collect()
    }
}
