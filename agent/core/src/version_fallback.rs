//! Which version of its protocol the agent uses with the plugin.
//!
//! A request states one version. When the plugin refuses it by version, the agent tries the next lower
//! one at once, and remembers the one that the plugin took. Now and then, and soon after a silence (the
//! plugin may have been replaced), one request states the highest again. If the plugin refuses that,
//! the version that it took goes on: a trial costs one request and no permit.

use std::time::Duration;
use windlass_protocol::{Moment, PluginVersion, Versions};

/// The highest version is tried again after this.
const TRY_AGAIN: Duration = Duration::from_secs(60);
/// The same after a silence.
const TRY_AFTER_SILENCE: Duration = Duration::from_secs(10);

/// What is known of the plugin's versions.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct VersionFallback {
    ours: Versions<PluginVersion>,
    next: PluginVersion,
    /// The one that it took last.
    taken: Option<PluginVersion>,
    /// When the highest was last tried.
    tried_at: Moment,
    was_silent: bool,
    /// The highest that it refused since it took one, and whether all of them were refused.
    refused_from: Option<PluginVersion>,
    takes_none: bool,
}

// === impl VersionFallback ===

impl VersionFallback {
    pub(crate) fn new(ours: Versions<PluginVersion>) -> Self {
        Self {
            ours,
            next: ours.max,
            taken: None,
            tried_at: Moment::default(),
            was_silent: false,
            refused_from: None,
            takes_none: false,
        }
    }

    /// What a request that is sent now states.
    pub(crate) fn stated(&self, now: Moment) -> PluginVersion {
        let wait = if self.was_silent { TRY_AFTER_SILENCE } else { TRY_AGAIN };
        let again = self.taken.is_some() && now >= self.tried_at.after(wait);
        if again { self.ours.max } else { self.next }
    }

    pub(crate) fn sent(&mut self, now: Moment, version: PluginVersion) {
        if version == self.ours.max {
            self.tried_at = now;
            self.was_silent = false;
        }
    }

    /// It was answered in this version, or refused for another reason than that.
    pub(crate) fn took(&mut self, version: PluginVersion) {
        (self.next, self.taken) = (version, Some(version));
        (self.refused_from, self.takes_none) = (None, false);
    }

    /// Whether every version was refused since one was taken, if one was.
    pub(crate) fn takes_none(&self) -> bool {
        self.takes_none
    }

    pub(crate) fn silent(&mut self) {
        self.was_silent = true;
    }

    /// The plugin does not speak this version. Says whether there is another to be tried at once.
    pub(crate) fn refused(&mut self, version: PluginVersion) -> bool {
        self.refused_from = self.refused_from.max(Some(version));
        self.takes_none |= version == self.ours.min && self.refused_from == Some(self.ours.max);
        if let Some(taken) = self.taken.filter(|taken| *taken != version) {
            self.next = taken;
            return true;
        }
        self.taken = None;
        let lower = version.before().filter(|lower| self.ours.contains(*lower));
        self.next = lower.unwrap_or(self.ours.max);
        lower.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is stated until the plugin of this range takes it.
    fn walk(
        fallback: &mut VersionFallback,
        now: Moment,
        theirs: Versions<PluginVersion>,
    ) -> Vec<String> {
        let mut stated = Vec::new();
        loop {
            let version = fallback.stated(now);
            stated.push(version.to_string());
            fallback.sent(now, version);
            if theirs.contains(version) {
                fallback.took(version);
                return stated;
            }
            if !fallback.refused(version) {
                stated.push("none".to_owned());
                return stated;
            }
        }
    }

    fn range(min: PluginVersion, max: PluginVersion) -> Versions<PluginVersion> {
        Versions { min, max }
    }

    #[test]
    fn the_next_lower_one_is_tried_and_what_was_taken_is_remembered() {
        let mut fallback = VersionFallback::new(PluginVersion::SPOKEN);
        let start = Moment::from_millis(1_000_000);
        let old = range(PluginVersion::V1_0, PluginVersion::V2_1);
        assert_eq!(walk(&mut fallback, start, old), ["v5.0", "v4.0", "v3.0", "v2.1"]);
        assert_eq!(walk(&mut fallback, start, old), ["v2.1"]);
        // Now and then the highest: refused, the one that was taken goes on.
        let later = start.after(Duration::from_secs(60));
        assert_eq!(walk(&mut fallback, later, old), ["v5.0", "v2.1"]);
        assert_eq!(walk(&mut fallback, later, old), ["v2.1"]);
        // It was replaced by a newer one.
        fallback.silent();
        let soon = later.after(Duration::from_secs(10));
        assert_eq!(walk(&mut fallback, soon, PluginVersion::SPOKEN), ["v5.0"]);
        // By one that is older than what it had taken, and by one that is newer and narrow.
        assert_eq!(walk(&mut fallback, soon, old), ["v5.0", "v4.0", "v3.0", "v2.1"]);
        let narrow = range(PluginVersion::V4_0, PluginVersion::V4_0);
        let down = ["v2.1", "v2.0", "v1.1", "v1.0", "none"];
        assert_eq!(walk(&mut fallback, soon, narrow), down);
        assert!(!fallback.takes_none(), "not all were tried");
        assert_eq!(walk(&mut fallback, soon, narrow), ["v5.0", "v4.0"]);
    }

    #[test]
    fn only_what_is_ours_is_stated() {
        let mut fallback = VersionFallback::new(range(PluginVersion::V2_0, PluginVersion::V2_1));
        let start = Moment::from_millis(1_000_000);
        let v1_1 = range(PluginVersion::V1_0, PluginVersion::V1_1);
        assert!(!fallback.takes_none());
        assert_eq!(walk(&mut fallback, start, v1_1), ["v2.1", "v2.0", "none"]);
        assert!(fallback.takes_none());
        fallback.silent();
        assert_eq!(walk(&mut fallback, start, v1_1), ["v2.1", "v2.0", "none"]);
        assert!(fallback.takes_none());
        assert_eq!(walk(&mut fallback, start, PluginVersion::SPOKEN), ["v2.1"]);
        assert!(!fallback.takes_none());
    }
}
