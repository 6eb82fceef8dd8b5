//! What becomes of a request, drawn from a seed.

use http::{Method, Request};

/// Requests of one kind are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A pod is bound.
    Binding,
    /// A ceiling is replaced.
    Ceiling,
    /// A pod is changed otherwise.
    Patch,
    /// The lease is read or written.
    Lease,
    /// Objects are listed.
    List,
    /// Objects are watched.
    Watch,
    /// One object is read.
    Read,
    /// A token is reviewed.
    Review,
    /// Any other.
    Other,
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// It passes.
    Passes,
    /// It is answered with 429.
    Throttled,
    /// It is answered with 500.
    Fails,
    /// It is answered with 409.
    Conflicts,
    /// It takes no effect, and has no answer.
    IsLost,
    /// It takes effect, and has no answer.
    IsNotAnswered,
}

// === impl Kind ===

impl Kind {
    /// What a request of the plugin is.
    pub(super) fn of<B>(request: &Request<B>) -> Self {
        let (path, method) = (request.uri().path(), request.method());
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let content = request.headers().get("content-type").map(|value| value.as_bytes());
        let is_list = path.ends_with("/pods") || path.ends_with("/nodes");
        match *method {
            _ if path.contains("/leases") => Self::Lease,
            _ if path.ends_with("/tokenreviews") => Self::Review,
            _ if path.ends_with("/binding") => Self::Binding,
            // Only the replacement of a ceiling is a JSON patch.
            Method::PATCH if content == Some(b"application/json-patch+json") => Self::Ceiling,
            Method::PATCH => Self::Patch,
            Method::GET if is_watch => Self::Watch,
            Method::GET if is_list => Self::List,
            Method::GET => Self::Read,
            _ => Self::Other,
        }
    }
}

// === impl Fate ===

impl Fate {
    /// What becomes of the `nth` request of this kind, where so many of a thousand go wrong. A quarter of these is answered
    /// with each of three statuses; a half of the rest takes effect.
    pub(super) fn draw(seed: u64, kind: Kind, nth: u64, of_thousand: u64) -> Self {
        let drawn = mixed(mixed(seed ^ kind as u64) ^ nth);
        if drawn % 1000 >= of_thousand {
            return Self::Passes;
        }
        match (drawn / 1000) % 8 {
            0 | 1 => Self::Throttled,
            2 | 3 => Self::Fails,
            4 | 5 => Self::Conflicts,
            6 => Self::IsLost,
            _ => Self::IsNotAnswered,
        }
    }
}

/// SplitMix64.
fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_plays_the_same_faults_and_as_many_as_are_asked_for() {
        let play = |seed: u64| -> Vec<Fate> {
            (0..10_000).map(|nth| Fate::draw(seed, Kind::Ceiling, nth, 200)).collect()
        };
        assert_eq!(play(1), play(1));
        assert_ne!(play(1), play(2));
        let count = |fate: Fate| play(3).iter().filter(|it| **it == fate).count();
        for (fate, about) in [
            (Fate::Passes, 8000),
            (Fate::Throttled, 500),
            (Fate::Fails, 500),
            (Fate::Conflicts, 500),
            (Fate::IsLost, 250),
            (Fate::IsNotAnswered, 250),
        ] {
            assert!(count(fate).abs_diff(about) < about / 5, "{fate:?}: {}", count(fate));
        }
    }
}
