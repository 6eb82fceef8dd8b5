//! What billing is told: the `billing` part of the agent's configuration, in TOML and in the
//! reference's JSON.

use crate::receiver::Receiver;
use std::time::Duration;
use windlass_agent_billing_core::{Names, Rule};
use windlass_protocol::config::Value::{Text, Whole};
use windlass_protocol::config::{Field, Kind, Node, Reader, key};

/// The longest time between two looks that is billed: an agent that is replaced is back sooner.
const LONGEST_SLICE: Duration = Duration::from_secs(300);

/// Endpoints that are known at a time; about 200 bytes each.
const ENDPOINTS: usize = 10_000;

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

/// The keys of the `billing` part.
pub const KEYS: &[Field] = &[
    key(
        "billing.url",
        Kind::Other { written: TEXT, allowed: "http://HOST, with :PORT and /PATH if need be" },
        "Where events go; /usage_events is added.",
    ),
    key("billing.cpu_metric_name", NAME, "What the receiver calls CPU seconds.")
        .or(Text("effective_compute_seconds")),
    key(
        "billing.active_time_metric_name",
        NAME,
        "What the receiver calls seconds in which the VM was there.",
    )
    .or(Text("active_time_seconds"))
    .note(", other than cpu_metric_name"),
    key("billing.collect_every_seconds", up_to(60), "How often VMs are looked at.").or(Whole(4)),
    key(
        "billing.accumulate_every_seconds",
        up_to(86_400),
        "The length of a window: so often an endpoint has new events.",
    )
    .or(Whole(24))
    .note(", no less than collect_every_seconds"),
    key(
        "billing.push_every_seconds",
        up_to(3_600),
        "How often what waits is sent, and the longest wait after a failure.",
    )
    .or(Whole(30)),
    key("billing.push_request_timeout_seconds", up_to(300), "How long one request may take.")
        .or(Whole(30)),
    key("billing.max_batch_size", up_to(10_000), "Events in one request.").or(Whole(200)),
    key(
        "billing.max_queue_size",
        Kind::Whole { least: 100, most: 200_000 },
        "Events that may wait; where there are as many, windows become longer. The reference has no such key.",
    )
    .or(Whole(20_000))
    .note(", no less than max_batch_size"),
];

const TEXT: &str = "a text";
const NAME: Kind =
    Kind::Other { written: TEXT, allowed: "1 to 128 letters, digits and punctuation of ASCII" };

const fn up_to(most: i64) -> Kind {
    Kind::Whole { least: 1, most }
}

// === impl Config ===

impl Config {
    /// Reads the `billing` part of a file with [`KEYS`], if that has one.
    pub fn read(file: &mut Reader) -> Option<Self> {
        if !file.has_table("billing") {
            return None;
        }
        let url = file.required_with("billing.url", |node| node.text().map(str::to_owned));
        let receiver = url.and_then(|url| {
            let read = Receiver::from_url(&url);
            read.map_err(|limit| file.wrong("billing.url", Node::Text(url), limit)).ok()
        });
        let cpu = file.get_with("billing.cpu_metric_name", name);
        let active = file.get_with("billing.active_time_metric_name", name);
        if cpu == active {
            let (name, other) = ("billing.active_time_metric_name", "billing.cpu_metric_name");
            file.misfit(name, other, format!("\"{active}\""));
        }
        let collect_every = file.get("billing.collect_every_seconds");
        let accumulate_every: Duration = file.get("billing.accumulate_every_seconds");
        if accumulate_every < collect_every {
            let (name, other) =
                ("billing.accumulate_every_seconds", "billing.collect_every_seconds");
            file.misfit(name, other, accumulate_every.as_secs());
        }
        let push_every = file.get("billing.push_every_seconds");
        let request_timeout = file.get("billing.push_request_timeout_seconds");
        let max_batch = file.get("billing.max_batch_size");
        let max_queue = file.get("billing.max_queue_size");
        if max_queue < max_batch {
            file.misfit("billing.max_queue_size", "billing.max_batch_size", max_queue);
        }
        Some(Self {
            receiver: receiver?,
            names: Names { cpu, active },
            collect_every,
            accumulate_every,
            push_every,
            request_timeout,
            max_batch,
            max_queue,
        })
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

fn name(node: &Node) -> Option<String> {
    let text = node.text()?;
    let good = (1..=128).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
    good.then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_protocol::config::{Problem, Table};

    const TOML: Table = Table::toml(&[KEYS]);
    const JSON: Table = Table::json(&[KEYS]);

    fn json(text: &str) -> Result<Config, Vec<Problem>> {
        read(&JSON, &format!("{{\"billing\": {text}}}"))
    }

    fn toml(text: &str) -> Result<Config, Vec<Problem>> {
        read(&TOML, &format!("[billing]\n{text}"))
    }

    fn read(table: &'static Table, text: &str) -> Result<Config, Vec<Problem>> {
        let mut file = windlass_kit::config::read(table, text).unwrap();
        let config = Config::read(&mut file);
        file.finish(config)
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
        let lines = TOML.rows().into_iter().map(|key| {
            let name = key.name.trim_start_matches("billing.");
            match key.default.as_str() {
                "required" => format!("{name} = \"http://a\"\n"),
                number if number.parse::<u64>().is_ok() => format!("{name} = {number}\n"),
                text => format!("{name} = \"{text}\"\n"),
            }
        });
        assert_eq!(toml(&lines.collect::<String>()), toml("url = \"http://a\""));
    }

    #[test]
    fn what_moves_a_cursor_is_not_shown() {
        let problems = json("{\"url\": \"htt\\u0000p\", \"\\u001b[2J\": 1, \"\": 2}").unwrap_err();
        let said: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert!(said[0].starts_with("billing.url = \"htt\u{fffd}p\": must be"), "{said:?}");
        assert!(said[1].starts_with("billing.\u{fffd}[2J = 1: is not a key"), "{said:?}");
        assert!(said[2].starts_with("billing.\"\" = 2: is not a key"), "{said:?}");
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
            "billing.collectEverySeconds = 0: must be a whole number from 1 to 60",
            "billing.accumulateEverySeconds = \"24\": must be a whole number from 1 to 86400, no less \
             than collectEverySeconds",
            "billing.pushEverySeconds = 1.5: must be a whole number from 1 to 3600",
            "billing.maxBatchSize = 10001: must be a whole number from 1 to 10000",
            "billing.maxQueueSize = -1: must be a whole number from 100 to 200000",
            "billing.collect_every_seconds = 4: is not a key; the keys are billing.url, billing.cpuMetricName",
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
        assert!(
            missing[0].to_string().starts_with("billing.url: is missing: http://HOST"),
            "{missing:?}"
        );
    }
}
