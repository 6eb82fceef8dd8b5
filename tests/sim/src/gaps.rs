//! What cannot happen, and why: cells of the coverage tables that stay empty by design.

/// Whose table, events, states, and why. An empty list stands for all.
type Argument = (&'static str, &'static [&'static str], &'static [&'static str], &'static str);

const SETTLED: &[&str] = &["absent", "registered", "active", "suspended"];
const IN_SESSION: &[&str] =
    &["registered", "active", "suspended", "registered, open", "active, open", "suspended, open"];

const ARGUMENTS: &[Argument] = &[
    ("agent", &["resized"], SETTLED, "a resize is open until the hypervisor was looked at"),
    ("agent", &["registered"], IN_SESSION, "an agent in a session does not register"),
    (
        "agent",
        &["unregistered"],
        &[
            "absent",
            "registered",
            "suspended",
            "absent, open",
            "registered, open",
            "suspended, open",
        ],
        "a session that takes its leave shows as active until it is answered",
    ),
    (
        "agent",
        &["agreed", "declined", "upscaled"],
        &["registered", "registered, open"],
        "sizes are spoken of in a session that counts, and it does not become one that waits",
    ),
    (
        "informant",
        &["health check", "unregister"],
        &["nobody", "one joins"],
        "it is refused: nobody is registered under that id",
    ),
    (
        "informant",
        &["agrees", "declines", "upscale", "again or stale"],
        &["nobody", "one joins", "one waits", "several wait"],
        "it is refused: only the agent that counts is listened to",
    ),
    ("limit", &["first set"], &["ours", "reset", "found"], "it is the first where there is none"),
    ("limit", &["set again"], &["no limit", "ours", "found"], "one of ours was reset"),
    (
        "limit",
        &["raised"],
        &["no limit", "reset", "found"],
        "there is no limit to raise, and what somebody has set is a ceiling",
    ),
    ("limit", &["lowered"], &["no limit", "reset"], "there is no limit to lower"),
];

/// Why a cell stays empty, if that is by design.
pub fn why([who, event, state]: [&str; 3]) -> Option<&'static str> {
    let holds = |list: &[&str], word: &str| list.is_empty() || list.contains(&word);
    ARGUMENTS
        .iter()
        .find(|(whose, events, states, _)| {
            *whose == who && holds(events, event) && holds(states, state)
        })
        .map(|(.., why)| *why)
}

/// What never happened though it could, a line each; and how many cells are empty by design.
pub fn unexplained(gaps: &[[&str; 3]]) -> (String, usize) {
    let open: Vec<_> = gaps.iter().filter(|gap| why(**gap).is_none()).collect();
    let lines =
        open.iter().map(|[who, event, state]| format!("never: {who}: {event} while {state}\n"));
    (lines.collect(), gaps.len() - open.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_world::Coverage;

    #[test]
    fn every_argument_is_about_cells_that_are_there() {
        let cells = Coverage::new().gaps();
        for argument in ARGUMENTS {
            let (who, events, states, _) = argument;
            for event in *events {
                assert!(cells.iter().any(|[w, e, _]| w == who && e == event), "{argument:?}");
            }
            for state in *states {
                assert!(cells.iter().any(|[w, _, s]| w == who && s == state), "{argument:?}");
            }
        }
    }
}
