//! The versions of the protocol between agent and plugin, and the features of each, as data.
//!
//! The agent states the version of each request, and the plugin refuses an unknown version. This table has
//! all differences between versions: codecs, checks, `VERSIONING.md` and the tests follow it.

use super::{Versions, numbered};

/// A version of the protocol between agent and plugin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PluginVersion(u32);

/// The features of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PluginFeatures {
    /// The name.
    pub name: &'static str,
    /// A request may omit the metrics.
    pub metrics_may_be_missing: bool,
    /// CPU may be parts of a vCPU.
    pub fractional_cpu: bool,
    /// A request names the last permit.
    pub last_permit: bool,
    /// A request's metrics have the used memory.
    pub memory_usage: bool,
    /// A request's metrics have the load over five minutes.
    pub five_minutes: bool,
    /// An answer names the plugin's compute unit.
    pub plugin_sends_unit: bool,
    /// A request names the agent's compute unit.
    pub agent_sends_unit: bool,
    /// Memory counts in bytes, not in slots.
    pub memory_in_bytes: bool,
    /// An agent asks again after an answer that is a refusal. Without it, the reference's agent asks this plugin nothing more.
    pub refusals_pass: bool,
    /// A request of an agent of ours may tell people of its VM; others pass over it.
    pub tells_people: bool,
}

const V1_0: PluginFeatures = PluginFeatures {
    name: "v1.0",
    metrics_may_be_missing: false,
    fractional_cpu: false,
    last_permit: false,
    memory_usage: false,
    five_minutes: true,
    plugin_sends_unit: true,
    agent_sends_unit: false,
    memory_in_bytes: false,
    refusals_pass: false,
    tells_people: false,
};
const V1_1: PluginFeatures = PluginFeatures { name: "v1.1", metrics_may_be_missing: true, ..V1_0 };
const V2_0: PluginFeatures = PluginFeatures { name: "v2.0", fractional_cpu: true, ..V1_1 };
const V2_1: PluginFeatures = PluginFeatures {
    name: "v2.1",
    last_permit: true,
    memory_usage: true,
    refusals_pass: true,
    ..V2_0
};
const V3_0: PluginFeatures = PluginFeatures { name: "v3.0", plugin_sends_unit: false, ..V2_1 };
const V4_0: PluginFeatures =
    PluginFeatures { name: "v4.0", agent_sends_unit: true, memory_in_bytes: true, ..V3_0 };
const V5_0: PluginFeatures = PluginFeatures {
    name: "v5.0",
    memory_usage: false,
    five_minutes: false,
    tells_people: true,
    ..V4_0
};

/// Version number `n` is entry `n - 1`.
const TABLE: [PluginFeatures; 7] = [V1_0, V1_1, V2_0, V2_1, V3_0, V4_0, V5_0];

numbered!(PluginVersion, &TABLE.map(|version| version.name));

// === impl PluginVersion ===

impl PluginVersion {
    /// Whole CPUs, memory in 16-bit slots, metrics in every request.
    pub const V1_0: Self = Self(1);
    /// Metrics may be missing.
    pub const V1_1: Self = Self(2);
    /// Fractional CPUs.
    pub const V2_0: Self = Self(3);
    /// A request names the last permit.
    pub const V2_1: Self = Self(4);
    /// The plugin's compute unit is gone.
    pub const V3_0: Self = Self(5);
    /// Memory in bytes; the agent's compute unit.
    pub const V4_0: Self = Self(6);
    /// Metrics have only the load over one minute.
    pub const V5_0: Self = Self(7);

    /// The versions that this release speaks.
    pub const SPOKEN: Versions<Self> = Versions { min: Self::V1_0, max: Self::V5_0 };

    /// All known versions, the oldest first.
    pub fn known() -> impl Iterator<Item = Self> {
        (1..).map(Self).take(TABLE.len())
    }

    /// The version before this one.
    pub fn before(self) -> Option<Self> {
        self.0.checked_sub(1).map(Self).filter(|version| version.is_valid())
    }

    /// The features. A future version has those of the latest, zero those of the oldest.
    pub fn features(self) -> &'static PluginFeatures {
        let index = usize::try_from(self.0.saturating_sub(1)).unwrap_or(usize::MAX);
        &TABLE[index.min(TABLE.len() - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_with_a_version_stays_changed() {
        let all: Vec<_> = PluginVersion::known().map(PluginVersion::features).collect();
        assert_eq!(all.len(), TABLE.len());
        for (older, newer) in all.iter().zip(&all[1..]) {
            assert!(newer.metrics_may_be_missing >= older.metrics_may_be_missing);
            assert!(newer.fractional_cpu >= older.fractional_cpu);
            assert!(newer.last_permit >= older.last_permit);
            assert!(newer.plugin_sends_unit <= older.plugin_sends_unit);
            assert!(newer.agent_sends_unit >= older.agent_sends_unit);
            assert_eq!(newer.agent_sends_unit, newer.memory_in_bytes);
        }
    }

    #[test]
    fn every_number_has_a_name_and_features() {
        for (number, name, features) in [
            (0, "<invalid: zero>", &V1_0),
            (1, "v1.0", &V1_0),
            (2, "v1.1", &V1_1),
            (3, "v2.0", &V2_0),
            (4, "v2.1", &V2_1),
            (5, "v3.0", &V3_0),
            (6, "v4.0", &V4_0),
            (7, "v5.0", &V5_0),
            (8, "<unknown = v5.0 + 1>", &V5_0),
            (u32::MAX, "<unknown = v5.0 + 4294967288>", &V5_0),
        ] {
            let version = PluginVersion::from_number(number);
            assert_eq!(version.to_string(), name);
            assert_eq!(version.features(), features);
        }
        assert_eq!(PluginVersion::V1_0.before(), None);
        assert_eq!(PluginVersion::V5_0.before(), Some(PluginVersion::V4_0));
    }
    #[test]
    fn each_version_says_what_it_says_on_the_wire() {
        let words = |of: &PluginFeatures| {
            let has = [
                (of.metrics_may_be_missing, "may be without metrics"),
                (of.fractional_cpu, "parts of vCPUs"),
                (of.last_permit, "last permit"),
                (of.memory_usage, "memory in use"),
                (of.five_minutes, "five minutes"),
                (of.plugin_sends_unit, "unit of the plugin"),
                (of.agent_sends_unit, "unit of the agent"),
                (of.memory_in_bytes, "bytes"),
                (of.tells_people, "words for people"),
            ];
            let said = has.iter().filter(|(said, _)| *said).map(|(_, word)| *word);
            said.collect::<Vec<_>>().join(", ")
        };
        let older = "may be without metrics, parts of vCPUs, last permit, memory in use";
        assert_eq!(
            TABLE.each_ref().map(words),
            [
                "five minutes, unit of the plugin".to_owned(),
                "may be without metrics, five minutes, unit of the plugin".to_owned(),
                "may be without metrics, parts of vCPUs, five minutes, unit of the plugin"
                    .to_owned(),
                format!("{older}, five minutes, unit of the plugin"),
                format!("{older}, five minutes"),
                format!("{older}, five minutes, unit of the agent, bytes"),
                format!(
                    "{}, unit of the agent, bytes, words for people",
                    older.replace(", memory in use", "")
                ),
            ]
        );
    }
}
