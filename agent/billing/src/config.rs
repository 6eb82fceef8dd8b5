//! What billing is told: the `billing` part of the agent's configuration.
//!
//! The same keys in two spellings: the reference's in JSON, ours in TOML. Every problem is
//! reported, each with the field, what stands there and what may; an unknown key is a problem.

use crate::receiver::Receiver;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;
use windlass_agent_billing_core::{Names, Rule};
use windlass_protocol::FieldError;
use windlass_protocol::vm_file::{self, Node};
use windlass_protocol::words::defused;

/// The longest time between two looks that is billed: an agent that is replaced is back sooner.
const LONGEST_SLICE: Duration = Duration::from_secs(300);

/// Endpoints that are known at a time; about 200 bytes each.
const ENDPOINTS: usize = 10_000;
/// Characters of a key or a value that are enough for a person to know it again.
const SHOWN: usize = 60;

/// What billing is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Where events go.
    pub receiver: Receiver,
    /// What the receiver calls the metrics.
    pub names: Names,
    /// How often VMs are looked at.
    pub collect_every: Duration,
    /// The length of a window.
    pub accumulate_every: Duration,
    /// How often what waits is sent.
    pub push_every: Duration,
    /// How long one request may take.
    pub request_timeout: Duration,
    /// Events in one request.
    pub max_batch: usize,
    /// Events that may wait.
    pub max_queue: usize,
}

/// How keys are spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spelling {
    /// As in the reference's JSON: `collectEverySeconds`.
    Camel,
    /// As in our TOML: `collect_every_seconds`.
    Snake,
}

/// One key of the `billing` part.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its name in TOML.
    pub snake: &'static str,
    /// Its name in JSON.
    pub camel: &'static str,
    /// What holds without it.
    pub default: &'static str,
    /// What may stand there.
    pub range: &'static str,
    /// What it does.
    pub meaning: &'static str,
}

const fn key(
    [snake, camel]: [&'static str; 2],
    default: &'static str,
    range: &'static str,
    meaning: &'static str,
) -> Key {
    Key { snake, camel, default, range, meaning }
}

const NAME: &str = "1 to 128 letters, digits and punctuation of ASCII";

/// Every key.
pub const KEYS: [Key; 9] = [
    key(
        ["url", "url"],
        "required",
        "http://HOST, with :PORT and /PATH if need be",
        "Where events go; /usage_events is added.",
    ),
    key(
        ["cpu_metric_name", "cpuMetricName"],
        "effective_compute_seconds",
        NAME,
        "What the receiver calls CPU seconds.",
    ),
    key(
        ["active_time_metric_name", "activeTimeMetricName"],
        "active_time_seconds",
        "1 to 128 letters, digits and punctuation of ASCII, other than cpu_metric_name",
        "What the receiver calls seconds in which the VM was there.",
    ),
    key(
        ["collect_every_seconds", "collectEverySeconds"],
        "4",
        "a whole number, 1 to 60",
        "How often VMs are looked at.",
    ),
    key(
        ["accumulate_every_seconds", "accumulateEverySeconds"],
        "24",
        "a whole number, 1 to 86400, no less than collect_every_seconds",
        "The length of a window: so often an endpoint has new events.",
    ),
    key(
        ["push_every_seconds", "pushEverySeconds"],
        "30",
        "a whole number, 1 to 3600",
        "How often what waits is sent, and the longest wait after a failure.",
    ),
    key(
        ["push_request_timeout_seconds", "pushRequestTimeoutSeconds"],
        "30",
        "a whole number, 1 to 300",
        "How long one request may take.",
    ),
    key(
        ["max_batch_size", "maxBatchSize"],
        "200",
        "a whole number, 1 to 10000",
        "Events in one request.",
    ),
    key(
        ["max_queue_size", "maxQueueSize"],
        "20000",
        "a whole number, 100 to 200000, no less than max_batch_size",
        "Events that may wait; where there are as many, windows become longer. The reference has no such key.",
    ),
];

// === impl Config ===

impl Config {
    /// Checks the `billing` part.
    ///
    /// # Errors
    /// Everything that is wrong with it, in the order of the keys; unknown ones come last.
    pub fn from_table(
        table: BTreeMap<String, Node>,
        spelling: Spelling,
    ) -> Result<Self, Vec<FieldError>> {
        let mut check = Check { table, spelling, problems: Vec::new() };
        let receiver = check.receiver();
        let cpu = check.name("cpu_metric_name");
        let active = check.name("active_time_metric_name");
        let [collect_every, accumulate_every, push_every, request_timeout] = [
            ("collect_every_seconds", 1..=60),
            ("accumulate_every_seconds", 1..=86_400),
            ("push_every_seconds", 1..=3_600),
            ("push_request_timeout_seconds", 1..=300),
        ]
        .map(|(key, range)| Duration::from_secs(check.whole(key, range)));
        let [max_batch, max_queue] =
            [("max_batch_size", 1..=10_000), ("max_queue_size", 100..=200_000)]
                .map(|(key, range)| usize::try_from(check.whole(key, range)).unwrap_or(usize::MAX));
        if cpu == active {
            check.wrong("active_time_metric_name", &format!("\"{active}\""));
        }
        if accumulate_every < collect_every {
            check.wrong("accumulate_every_seconds", &accumulate_every.as_secs());
        }
        if max_queue < max_batch {
            check.wrong("max_queue_size", &max_queue);
        }
        check.unknown();
        let names = Names { cpu, active };
        match receiver {
            Some(receiver) if check.problems.is_empty() => Ok(Self {
                receiver,
                names,
                collect_every,
                accumulate_every,
                push_every,
                request_timeout,
                max_batch,
                max_queue,
            }),
            Some(_) | None => Err(check.problems),
        }
    }

    /// What decisions follow from it.
    pub fn rule(&self) -> Rule {
        Rule {
            window: self.accumulate_every,
            longest_slice: LONGEST_SLICE,
            queue: self.max_queue,
            endpoints: ENDPOINTS,
        }
    }
}

/// The values that were not looked at yet, and what was found wrong with the others.
struct Check {
    table: BTreeMap<String, Node>,
    spelling: Spelling,
    problems: Vec<FieldError>,
}

// === impl Check ===

impl Check {
    fn receiver(&mut self) -> Option<Receiver> {
        let Some(node) = self.table.remove("url") else {
            self.problem("url", String::new(), "is required, as \"http://127.0.0.1:8080\"");
            return None;
        };
        let read = node.text().ok_or("must be a text").and_then(Receiver::from_url);
        read.map_err(|limit| self.problem("url", node.to_string(), limit)).ok()
    }

    fn name(&mut self, key: &'static str) -> String {
        let default = of(key).default.to_owned();
        let Some(node) = self.take(key) else { return default };
        let is_name = |text: &&str| {
            (1..=128).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
        };
        match node.text().filter(is_name) {
            Some(text) => text.to_owned(),
            None => {
                self.wrong(key, &node);
                default
            }
        }
    }

    fn whole(&mut self, key: &'static str, range: RangeInclusive<u64>) -> u64 {
        let default = of(key).default.parse().expect("a default is a number in its range");
        let Some(node) = self.take(key) else { return default };
        let whole = node.whole().and_then(|whole| u64::try_from(whole).ok());
        whole.filter(|whole| range.contains(whole)).unwrap_or_else(|| {
            self.wrong(key, &node);
            default
        })
    }

    fn take(&mut self, key: &'static str) -> Option<Node> {
        self.table.remove(self.spelled(of(key)))
    }

    /// What nobody looked at is not a key.
    fn unknown(&mut self) {
        let keys: Vec<_> = KEYS.iter().map(|key| self.spelled(key)).collect();
        let limit = format!("is not a key; the keys are {}", keys.join(", "));
        for (name, node) in std::mem::take(&mut self.table) {
            let name = vm_file::Key::spelt(name);
            self.problem(&defused(&name, SHOWN), node.to_string(), &limit);
        }
    }

    fn wrong(&mut self, key: &'static str, value: &impl Display) {
        let key = of(key);
        // Ranges name other keys as they are spelled in TOML.
        let mut range = key.range.to_owned();
        for other in &KEYS {
            range = range.replace(other.snake, self.spelled(other));
        }
        self.problem(self.spelled(key), value.to_string(), &format!("must be {range}"));
    }

    fn problem(&mut self, key: &str, value: String, limit: &str) {
        let field = format!("billing.{key}");
        if self.problems.iter().all(|known| known.field != field) {
            let (value, limit) = (defused(&value, SHOWN), limit.to_owned());
            self.problems.push(FieldError { field, value, limit });
        }
    }

    const fn spelled(&self, key: &Key) -> &'static str {
        match self.spelling {
            Spelling::Camel => key.camel,
            Spelling::Snake => key.snake,
        }
    }
}

fn of(snake: &'static str) -> &'static Key {
    KEYS.iter().find(|key| key.snake == snake).expect("only keys of the table are looked at")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Result<Config, Vec<FieldError>> {
        Config::from_table(serde_json::from_str(text).unwrap(), Spelling::Camel)
    }

    fn toml(text: &str) -> Result<Config, Vec<FieldError>> {
        Config::from_table(toml::from_str(text).unwrap(), Spelling::Snake)
    }

    #[test]
    fn the_references_part_is_read_as_it_is() {
        let config = json(
            r#"{ "url": "http://billing.example", "cpuMetricName": "effective_compute_seconds",
                 "activeTimeMetricName": "active_time_seconds", "collectEverySeconds": 4,
                 "accumulateEverySeconds": 24, "pushEverySeconds": 30,
                 "pushRequestTimeoutSeconds": 30, "maxBatchSize": 200 }"#,
        );
        assert_eq!(config, toml("url = \"http://billing.example\""));
        assert_eq!(config.unwrap().rule().window, Duration::from_secs(24));
    }

    #[test]
    fn every_key_has_its_default_in_its_range() {
        let lines = KEYS.iter().map(|key| match key.default {
            "required" => format!("{} = \"http://a\"\n", key.snake),
            number if number.parse::<u64>().is_ok() => format!("{} = {number}\n", key.snake),
            text => format!("{} = \"{text}\"\n", key.snake),
        });
        assert_eq!(toml(&lines.collect::<String>()), toml("url = \"http://a\""));
    }

    #[test]
    fn what_moves_a_cursor_is_not_shown() {
        let problems = json("{\"url\": \"htt\\u0000p\", \"\\u001b[2J\": 1, \"\": 2}").unwrap_err();
        let said: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert!(said[0].starts_with("billing.url = \"htt\u{fffd}p\": must be"), "{said:?}");
        assert!(said[1].starts_with("billing.\"\" = 2: is not a key"), "{said:?}");
        assert!(said[2].starts_with("billing.\u{fffd}[2J = 1: is not a key"), "{said:?}");
    }

    #[test]
    fn all_problems_are_reported_at_once_with_field_value_and_limit() {
        let problems = json(
            r#"{ "url": "https://billing.example", "cpuMetricName": "", "collectEverySeconds": 0,
                 "accumulateEverySeconds": "24", "pushEverySeconds": 1.5, "maxBatchSize": 10001,
                 "maxQueueSize": -1, "collect_every_seconds": 4, "surprise": [] }"#,
        );
        let said: Vec<String> = problems.unwrap_err().iter().map(ToString::to_string).collect();
        for (line, parts) in said.iter().zip([
            "billing.url = \"https://billing.example\": must be http://: TLS is not spoken here",
            "billing.cpuMetricName = \"\": must be 1 to 128 letters",
            "billing.collectEverySeconds = 0: must be a whole number, 1 to 60",
            "billing.accumulateEverySeconds = \"24\": must be a whole number, 1 to 86400, no less \
             than collectEverySeconds",
            "billing.pushEverySeconds = 1.5: must be a whole number, 1 to 3600",
            "billing.maxBatchSize = 10001: must be a whole number, 1 to 10000",
            "billing.maxQueueSize = -1: must be a whole number, 100 to 200000",
            "billing.collect_every_seconds = 4: is not a key; the keys are url, cpuMetricName",
            "billing.surprise = a list: is not a key",
        ]) {
            assert!(line.starts_with(parts), "{line}");
        }
        assert_eq!(said.len(), 9, "{said:#?}");
    }

    #[test]
    fn what_is_right_by_itself_may_be_wrong_together() {
        for (text, field) in [
            ("collect_every_seconds = 5\naccumulate_every_seconds = 4", "accumulate_every_seconds"),
            ("max_batch_size = 101\nmax_queue_size = 100", "max_queue_size"),
            ("cpu_metric_name = \"active_time_seconds\"", "active_time_metric_name"),
        ] {
            let problems = toml(&format!("url = \"http://a\"\n{text}")).unwrap_err();
            assert_eq!(problems.len(), 1, "{problems:?}");
            assert_eq!(problems[0].field, format!("billing.{field}"));
        }
        let missing = toml("").unwrap_err();
        assert!(missing[0].to_string().starts_with("billing.url: is required"), "{missing:?}");
    }
}
