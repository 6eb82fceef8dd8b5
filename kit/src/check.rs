//! A table that a person wrote, looked at key by key; all its problems are found, not the first.
//!
//! Whoever knows the keys asks for each by its full name (`node.cpu`), and what nobody asked for
//! is no key: a misspelt one would otherwise be a silent default. Errors quote the range that the
//! list of keys gives, so that the list, the documents and the errors say the same.

use crate::problem::Problem;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;
use windlass_protocol::vm_file::{Key, Node};
use windlass_protocol::{Bytes, MilliCpu};

/// How amounts of CPU are written.
pub const CPU: &str = "vCPUs, as 6, 0.25 or \"250m\"";
/// How amounts of memory are written.
pub const MEMORY: &str = "bytes, or a text as \"24GiB\"";
/// How times are written.
pub const TIME: &str = "seconds, or a text as \"250ms\"";
/// How addresses are written.
pub const ADDRESS: &str = "an IP address and a port";
/// What an address to listen at may be.
pub const SOCKET: &str = "an IP address and a port; port 0 takes a free one";

/// A key of the reference's JSON, where every value is written as JSON is.
pub const fn json_key(
    name: &'static str,
    default: &'static str,
    range: &'static str,
    meaning: &'static str,
) -> Key {
    Key { name, kind: "JSON", default, range, meaning }
}

/// The values that were not looked at yet, and what was found wrong with the others.
#[derive(Debug)]
pub struct Check {
    keys: &'static [Key],
    nodes: BTreeMap<String, Node>,
    /// The tables that became their keys, empty ones too.
    tables: BTreeSet<String>,
    problems: Vec<Problem>,
    form: Form,
}

/// What the text was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// TOML.
    Toml,
    /// JSON, whose keys match whatever their case, as Go reads them.
    Json,
}

// === impl Check ===

impl Check {
    /// Of a table with these keys. A table inside of it becomes its keys, as `node.cpu`, if a key
    /// begins with its name. A key that is `null` is not there.
    pub fn of(keys: &'static [Key], table: BTreeMap<String, Node>, form: Form) -> Self {
        let (nodes, tables, problems) = (BTreeMap::new(), BTreeSet::new(), Vec::new());
        let mut check = Self { keys, nodes, tables, problems, form };
        check.flatten("", table);
        check
    }

    /// The value of this key, if it is there and `read` makes something of it.
    pub fn get<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&Node) -> Option<T>,
    ) -> Option<T> {
        let node = self.nodes.remove(name)?;
        let value = read(&node);
        if value.is_none() {
            let complaint = self.key(name).complaint(&node);
            self.wrong(name, &node, &complaint);
        }
        value
    }

    /// The same, of a key that must be there.
    pub fn required<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&Node) -> Option<T>,
    ) -> Option<T> {
        if !self.nodes.contains_key(name) {
            let limit = format!("is missing: {}", self.range(name));
            self.problems.push(Problem::without_value(name, limit));
        }
        self.get(name, read)
    }

    /// What stands at this key, if it was not looked at yet.
    pub fn peek(&self, name: &str) -> Option<&Node> {
        self.nodes.get(name)
    }

    /// Whether the table of this name is there, with or without keys.
    pub fn has_table(&self, name: &str) -> bool {
        self.tables.contains(name)
    }

    /// Notes a problem of a key.
    pub fn wrong(&mut self, name: &str, value: &impl Display, limit: &str) {
        self.problems.push(Problem::new(name, value, limit));
    }

    /// Notes problems that were found elsewhere.
    pub fn add(&mut self, problems: impl IntoIterator<Item = Problem>) {
        self.problems.extend(problems);
    }

    /// What nobody looked at is not a key.
    pub fn unknown(&mut self) {
        let keys: Vec<_> = self.keys.iter().map(|key| key.name).collect();
        let limit = format!("is not a key; the keys are {}", keys.join(", "));
        for (name, node) in std::mem::take(&mut self.nodes) {
            self.wrong(&name, &node, &limit);
        }
    }

    /// `value`, if nothing is wrong with the table.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn finish<T>(mut self, value: T) -> Result<T, Vec<Problem>> {
        self.unknown();
        if self.problems.is_empty() { Ok(value) } else { Err(self.problems) }
    }

    fn flatten(&mut self, place: &str, table: BTreeMap<String, Node>) {
        for (key, node) in table {
            let name = self.spelling(format!("{place}{}", Key::spelt(key)));
            if self.nodes.contains_key(&name) || self.tables.contains(&name) {
                self.wrong(&name, &node, "is written twice");
                continue;
            }
            match node {
                Node::Table(inner) if self.is_table(&name) => {
                    self.flatten(&format!("{name}."), inner);
                    self.tables.insert(name);
                }
                // As if it were not there, if it may be.
                Node::Null if self.is_table(&name) || self.is_key(&name) => {}
                Node::Null
                | Node::Bool(_)
                | Node::Whole(_)
                | Node::Float(_)
                | Node::Text(_)
                | Node::List(_)
                | Node::Table(_) => {
                    if self.is_table(&name) {
                        let limit = match self.form {
                            Form::Toml => format!("must be a table, as [{name}]"),
                            Form::Json => "must be an object".to_owned(),
                        };
                        self.wrong(&name, &node, &limit);
                    } else {
                        self.nodes.insert(name, node);
                    }
                }
            }
        }
    }

    /// The name of the key, or of the table, that is meant.
    fn spelling(&self, name: String) -> String {
        if self.form == Form::Toml {
            return name;
        }
        let meant = self.keys.iter().find_map(|key| {
            let start = key.name.get(..name.len())?;
            let ends = matches!(key.name.as_bytes().get(name.len()), None | Some(b'.'));
            (ends && start.eq_ignore_ascii_case(&name)).then(|| start.to_owned())
        });
        meant.unwrap_or(name)
    }

    fn is_table(&self, name: &str) -> bool {
        self.keys
            .iter()
            .any(|key| key.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')))
    }

    fn is_key(&self, name: &str) -> bool {
        self.keys.iter().any(|key| key.name == name)
    }

    fn range(&self, name: &str) -> &'static str {
        self.key(name).range
    }

    fn key(&self, name: &str) -> &'static Key {
        let key = self.keys.iter().find(|key| key.name == name);
        key.expect("every key that is read stands in the list of keys")
    }
}

/// An absolute path.
pub fn path(node: &Node) -> Option<PathBuf> {
    let text = node.text()?;
    (Path::new(text).is_absolute() && !text.contains('\0')).then(|| PathBuf::from(text))
}

/// An IP address and a port; names are not looked up.
pub fn address(node: &Node) -> Option<SocketAddr> {
    node.text()?.parse().ok()
}

/// An amount of CPU from 0.05 to so many vCPUs.
pub fn cpu(node: &Node, most: u64) -> Option<MilliCpu> {
    let least = MilliCpu::from_milli(50);
    node.cpu().filter(|cpu| (least..=MilliCpu::from_cores(most)).contains(cpu))
}

/// An amount of memory in this range.
pub fn memory(node: &Node, least: Bytes, most: Bytes) -> Option<Bytes> {
    node.memory().filter(|memory| (least..=most).contains(memory))
}

/// `FIRST-LAST`, from 1 to 65535.
pub fn ports(node: &Node) -> Option<RangeInclusive<u16>> {
    let (first, last) = node.text()?.split_once('-')?;
    let (first, last): (u16, u16) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    (first > 0 && first <= last).then_some(first..=last)
}

/// A time in this range: seconds as a number, or a text as `"5s"` or `"250ms"`.
pub fn time(node: &Node, range: &RangeInclusive<Duration>) -> Option<Duration> {
    let (number, unit) = match node {
        Node::Text(text) => {
            let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
            let unit = match &text[end..] {
                "s" => 1.0,
                "ms" => 1e-3,
                _ => return None,
            };
            (text[..end].parse::<f64>().ok()?, unit)
        }
        Node::Whole(_) | Node::Float(_) => (node.number()?, 1.0),
        Node::Null | Node::Bool(_) | Node::List(_) | Node::Table(_) => return None,
    };
    let time = Duration::try_from_secs_f64(number * unit).ok()?;
    range.contains(&time).then_some(time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{parse_json, parse_toml};

    const KEYS: &[Key] =
        &[key("name", "a text"), key("cpu.top", "a number"), key("cpu.low", "a number")];

    #[test]
    fn every_problem_is_found_and_every_key_that_nobody_knows() {
        let text = "name = 1\nother = 2\n[cpu]\ntop = \"x\"\nmiddle = 3\n";
        let mut check = Check::of(KEYS, parse_toml(text).unwrap(), Form::Toml);
        assert!(check.has_table("cpu") && check.peek("name").is_some());
        let name = check.get("name", |node| node.text().map(str::to_owned));
        let top = check.get("cpu.top", Node::number);
        let low = check.required("cpu.low", Node::number);
        assert_eq!((name, top, low), (None, None, None));
        let problems = check.finish(()).unwrap_err();
        let said: Vec<String> = problems.iter().map(ToString::to_string).collect();
        let unknown = "is not a key; the keys are name, cpu.top, cpu.low";
        assert_eq!(
            said,
            [
                "name = 1: must be a text".to_owned(),
                "cpu.top = \"x\": must be a number".to_owned(),
                "cpu.low: is missing: a number".to_owned(),
                format!("cpu.middle = 3: {unknown}"),
                format!("other = 2: {unknown}"),
            ]
        );
    }

    #[test]
    fn json_keys_match_whatever_their_case_and_null_is_absent() {
        let text = r#"{"NAME":"a","Cpu":{"TOP":1,"low":null}}"#;
        let mut check = Check::of(KEYS, parse_json(text).unwrap(), Form::Json);
        assert_eq!(check.get("name", |node| node.text().map(str::to_owned)).unwrap(), "a");
        assert_eq!(check.get("cpu.top", Node::whole), Some(1));
        assert_eq!(check.get("cpu.low", Node::whole), None);
        check.finish(()).unwrap();
        let flat = Check::of(KEYS, parse_json(r#"{"cpu":7}"#).unwrap(), Form::Json);
        assert_eq!(flat.finish(()).unwrap_err()[0].to_string(), "cpu = 7: must be an object");
        for (text, line) in [("{", Some(1)), ("[]", None), ("{}\n{", Some(2))] {
            assert_eq!(parse_json(text).unwrap_err().line, line, "{text}");
        }
    }

    #[test]
    fn what_is_null_is_a_key_all_the_same() {
        let text = r#"{"nmae":null,"CPU":{"middle":null,"top":null},"name":null}"#;
        let said = Check::of(KEYS, parse_json(text).unwrap(), Form::Json).finish(()).unwrap_err();
        let said: Vec<String> = said.iter().map(ToString::to_string).collect();
        let unknown = "null: is not a key; the keys are name, cpu.top, cpu.low";
        assert_eq!(said, [format!("cpu.middle = {unknown}"), format!("nmae = {unknown}")]);
    }

    #[test]
    fn a_key_with_a_dot_is_no_table_and_none_is_written_twice() {
        let text = r#"{"":0,"cpu.top":1,"name":"a","Name":"b","cpu":{"top":2,"TOP":3}}"#;
        let said = Check::of(KEYS, parse_json(text).unwrap(), Form::Json).finish(()).unwrap_err();
        let said: Vec<String> = said.iter().map(ToString::to_string).collect();
        let has = |text: &str| said.iter().any(|said| said.contains(text));
        assert!(has(r#""cpu.top" = 1: is not a key"#), "{said:?}");
        assert!(has(r#""" = 0: is not a key"#), "{said:?}");
        assert!(has("cpu.top = 2: is written twice"), "{said:?}");
        assert!(has(r#"name = "a": is written twice"#), "{said:?}");
    }

    #[test]
    fn an_empty_table_is_there_and_one_that_is_null_is_not() {
        for (text, there) in [("{\"CPU\":{}}", true), ("{\"cpu\":null}", false), ("{}", false)] {
            let check = Check::of(KEYS, parse_json(text).unwrap(), Form::Json);
            assert_eq!(check.has_table("cpu"), there, "{text}");
            check.finish(()).unwrap();
        }
    }

    #[test]
    fn ports_are_a_range_that_begins_above_zero() {
        let of = |text: &str| ports(&Node::Text(text.to_owned()));
        assert_eq!(of("1-1"), Some(1..=1));
        assert_eq!(of("10310 - 65535"), Some(10_310..=65_535));
        for wrong in ["0-5", "0-0", "9-8", "5", "-1-5", "1-65536", ""] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_path_begins_at_the_root_and_can_be_one() {
        let of = |text: &str| path(&Node::Text(text.to_owned()));
        assert_eq!(of("/run/a"), Some(PathBuf::from("/run/a")));
        for wrong in ["run/a", "/run\0/a", ""] {
            assert_eq!(of(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn times_are_seconds_or_say_their_unit() {
        let range = Duration::from_millis(100)..=Duration::from_secs(10);
        let text = |text: &str| time(&Node::Text(text.to_owned()), &range);
        assert_eq!(time(&Node::Whole(5), &range), Some(Duration::from_secs(5)));
        assert_eq!(time(&Node::Float(0.5), &range), Some(Duration::from_millis(500)));
        assert_eq!(text("250ms"), Some(Duration::from_millis(250)));
        assert_eq!(text("1.5s"), Some(Duration::from_millis(1500)));
        for wrong in ["5", "5m", "-1s", "11s", "s", "", "nans", "1.2.3s", "1e3s"] {
            assert_eq!(text(wrong), None, "{wrong}");
        }
        for wrong in [Node::Whole(-1), Node::Float(f64::NAN), Node::Float(1e300)] {
            assert_eq!(time(&wrong, &range), None, "{wrong}");
        }
    }

    const fn key(name: &'static str, range: &'static str) -> Key {
        Key { name, kind: "", default: "", range, meaning: "" }
    }
}
