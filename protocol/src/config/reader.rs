//! Reads a file key by key, by its table, and finds all its problems.
//!
//! A key that the table lacks is a problem: without it, a misspelt key would silently be a default. One
//! mistake gives one problem: a key that is only missing because its name is misspelt, or because its
//! table is not a table, is not reported as missing too.

use super::field::{Field, Form, Table, spelled};
use super::kind::Kind;
use super::node::Node;
use super::problem::Problem;
use super::typed::Typed;
use crate::words;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::time::Duration;

/// The values of a file, and its problems.
///
/// Each method that takes the name of a key panics if the table has no such key, or if the key lacks
/// the default that the method needs.
#[derive(Debug)]
pub struct Reader {
    table: &'static Table,
    /// The keys that the table has, by their names in the file.
    nodes: BTreeMap<String, Node>,
    /// The keys that the table lacks.
    unknown: BTreeMap<String, Node>,
    /// All names in the file: keys, `null` or not, and tables.
    written: BTreeSet<String>,
    /// The tables in the file, empty ones too.
    tables: BTreeSet<String>,
    problems: Vec<Problem>,
    adjusted: Vec<Problem>,
    /// Required keys that are missing; each has a problem.
    missing: BTreeSet<String>,
}

// === impl Reader ===

impl Reader {
    /// Reads a file with these keys. The table `node` becomes keys such as `node.cpu`. A `null` counts
    /// as a missing key.
    pub fn of(table: &'static Table, nodes: BTreeMap<String, Node>) -> Self {
        let mut reader = Self {
            table,
            nodes: BTreeMap::new(),
            unknown: BTreeMap::new(),
            written: BTreeSet::new(),
            tables: BTreeSet::new(),
            problems: Vec::new(),
            adjusted: Vec::new(),
            missing: BTreeSet::new(),
        };
        reader.flatten("", nodes);
        reader
    }

    /// The value of this key, or its default.
    pub fn get<T: Typed>(&mut self, name: &str) -> T {
        let kind = self.table.field(name).kind;
        self.get_with(name, |node| T::read(&kind, node))
    }

    /// The value of this key as `read` reads it, or its default.
    pub fn get_with<T>(&mut self, name: &str, read: impl Fn(&Node) -> Option<T>) -> T {
        // Computed even if unused, so that the first test notices a wrong default.
        let default = self.table.field(name).default(&read);
        self.find_with(name, read).unwrap_or(default)
    }

    /// The value of this key, if it is present and valid.
    pub fn find<T: Typed>(&mut self, name: &str) -> Option<T> {
        let kind = self.table.field(name).kind;
        self.find_as(name, kind, |node| T::read(&kind, node))
    }

    /// The value of this key as `read` reads it, with the errors of `kind`.
    pub fn find_as<T>(
        &mut self,
        name: &str,
        kind: Kind,
        read: impl FnOnce(&Node) -> Option<T>,
    ) -> Option<T> {
        let field = self.table.field(name);
        let node = self.peek(name)?;
        let value = read(node);
        if value.is_none() {
            let complaint = kind.complaint(node, &field.range(self.table.form));
            self.wrong(name, node.to_string(), &complaint);
        }
        value
    }

    /// The value of this key as `read` reads it.
    pub fn find_with<T>(&mut self, name: &str, read: impl FnOnce(&Node) -> Option<T>) -> Option<T> {
        self.find_as(name, self.table.field(name).kind, read)
    }

    /// The value of this required key.
    pub fn required<T: Typed>(&mut self, name: &str) -> Option<T> {
        self.require(name);
        self.find(name)
    }

    /// The value of this required key as `read` reads it.
    pub fn required_with<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&Node) -> Option<T>,
    ) -> Option<T> {
        self.require(name);
        self.find_with(name, read)
    }

    /// Notes a problem if this key is missing.
    pub fn require(&mut self, name: &str) {
        if self.peek(name).is_none() {
            let limit = format!("is missing: {}", self.table.field(name).range(self.table.form));
            let name = self.spelled(name).into_owned();
            self.problems.push(Problem::without_value(&name, limit));
            self.missing.insert(name);
        }
    }

    /// The seconds of a [`Kind::Clamped`] key, moved into its range, or the default. [`Self::adjusted`]
    /// lists each number that was moved.
    pub fn seconds(&mut self, name: &str) -> Duration {
        let field = self.table.field(name);
        let default = field.default(|node| Duration::read(&field.kind, node));
        let (Some(given), Kind::Clamped { from, to, .. }) = (self.find(name), field.kind) else {
            return default;
        };
        let counts = u64::clamp(given, from, to);
        if given != counts {
            let end = if given > counts { "most" } else { "least" };
            self.adjust(name, given, format!("counts as {counts}, the {end} that is taken"));
        }
        Duration::from_secs(counts)
    }

    /// Notes that a value counts as another one.
    pub fn adjust(&mut self, name: &str, value: impl Display, limit: impl Into<String>) {
        self.adjusted.push(Problem::new(&*self.spelled(name), value, limit));
    }

    /// The values that count as another one.
    pub fn adjusted(&mut self) -> Vec<Problem> {
        std::mem::take(&mut self.adjusted)
    }

    /// The unchecked value of this key.
    pub fn peek(&self, name: &str) -> Option<&Node> {
        self.nodes.get(&*self.spelled(name))
    }

    /// Whether the file has the table of this name, even if it is empty.
    pub fn has_table(&self, name: &str) -> bool {
        self.tables.contains(name)
    }

    /// Whether the table of keys has a key of this name, as a file spells it.
    pub fn is_key(&self, name: &str) -> bool {
        self.table.fields().any(|field| self.spelled(field.name) == name)
    }

    /// Whether all these keys and tables are free of problems, so that they can be compared.
    pub fn are_sound(&self, names: &[&str]) -> bool {
        let is_of = |problem: &Problem, name: &&str| is_within(&problem.field, &self.spelled(name));
        !self.problems.iter().any(|problem| names.iter().any(|name| is_of(problem, name)))
    }

    /// Notes that a key contradicts another, which its range names. Does nothing if either has a problem.
    pub fn misfit(&mut self, name: &str, other: &str, value: impl Display) {
        if self.are_sound(&[name, other]) {
            let range = self.table.field(name).range(self.table.form);
            self.wrong(name, value, &format!("must be {range}"));
        }
    }

    /// Removes the keys of these tables, with a problem for each.
    pub fn forbid(&mut self, tables: &[&str], limit: &str) {
        let within =
            |name: &String| name.split_once('.').is_some_and(|(table, _)| tables.contains(&table));
        let beside = self.nodes.extract_if(.., |name, _| within(name));
        self.problems.extend(beside.map(|(name, node)| Problem::new(name, node, limit)));
    }

    /// Notes a problem of a key.
    pub fn wrong(&mut self, name: &str, value: impl Display, limit: &str) {
        self.problems.push(Problem::new(&*self.spelled(name), value, limit));
    }

    /// Notes problems.
    pub fn add(&mut self, problems: impl IntoIterator<Item = Problem>) {
        self.problems.extend(problems);
    }

    /// `value`, if the file has no problem.
    ///
    /// # Errors
    /// All problems of the file.
    ///
    /// # Panics
    /// If the file has neither a value nor a problem.
    pub fn finish<T>(mut self, value: Option<T>) -> Result<T, Vec<Problem>> {
        self.explain();
        if !self.problems.is_empty() {
            return Err(self.problems);
        }
        Ok(value.expect("a file without a problem has a value"))
    }

    /// Adds a problem for each unknown key, with the key that replaces it or was probably meant. Drops the problem that
    /// the meant key is missing.
    fn explain(&mut self) {
        let keys: Vec<_> = self.table.fields().map(|field| self.spelled(field.name)).collect();
        let all = format!("is not a key; the keys are {}", keys.join(", "));
        // Invalid tables, and names that are meant.
        let fields = self.problems.iter().map(|problem| &problem.field);
        let mut reasons: Vec<String> =
            fields.filter(|field| !self.missing.contains(*field)).cloned().collect();
        let mut unknown = Vec::new();
        for (name, node) in &self.unknown {
            let by = |field: &'static Field| Some((field, field.instead_of(name)?));
            if let Some((field, instead)) = self.table.fields().find_map(by) {
                unknown.push(Problem::new(name.as_str(), node, instead));
                reasons.push(self.spelled(field.name).into_owned());
                continue;
            }
            let meant = self.meant(name, &keys);
            let ask = |meant| format!("is not a key; did you mean {meant}?");
            let limit = meant.map_or_else(|| all.clone(), ask);
            unknown.push(Problem::new(name.as_str(), node, limit));
            reasons.extend(meant.map(str::to_owned));
        }
        let missing = &self.missing;
        self.problems.retain(|problem| {
            !missing.contains(&problem.field)
                || !reasons.iter().any(|reason| is_within(&problem.field, reason))
        });
        self.problems.extend(unknown);
    }

    /// The key or table that an unknown name probably means, if the file lacks it: a name that differs in
    /// few letters, or the only key of that name in another table.
    fn meant<'a>(&self, name: &str, keys: &'a [Cow<'static, str>]) -> Option<&'a str> {
        let absent = |meant: &&str| !self.written.contains(*meant);
        let ends = |key: &'a Cow<'_, str>| {
            let tables = key.match_indices('.').map(|(at, _)| &key[..at]);
            tables.chain([&**key])
        };
        let near = words::meant(name, keys.iter().flat_map(ends).filter(absent));
        if near.is_some() && !name.contains('"') {
            return near;
        }
        let last = |name: &str| name.rsplit('.').next().map(str::to_owned);
        let mut same = keys.iter().map(|key| &**key).filter(|key| last(key) == last(name));
        match (same.next(), same.next()) {
            (Some(only), None) => Some(only).filter(absent),
            _ => None,
        }
    }

    fn flatten(&mut self, place: &str, nodes: BTreeMap<String, Node>) {
        for (key, node) in nodes {
            let name = self.known(format!("{place}{}", shown(key)));
            if !self.written.insert(name.clone()) {
                self.problems.push(Problem::new(name, node, "is written twice"));
                continue;
            }
            match (node, self.is_table(&name)) {
                (Node::Table(inner), true) => {
                    self.flatten(&format!("{name}."), inner);
                    self.tables.insert(name);
                }
                // Counts as missing.
                (Node::Null, true) => {}
                (node, true) => {
                    let limit = match self.table.form {
                        Form::Toml => format!("must be a table, as [{name}]"),
                        Form::Json => "must be an object".to_owned(),
                    };
                    self.problems.push(Problem::new(name, node, limit));
                }
                (node, false) if !self.is_key(&name) => drop(self.unknown.insert(name, node)),
                (Node::Null, false) => {}
                (node, false) => drop(self.nodes.insert(name, node)),
            }
        }
    }

    /// The name of the key or table, in the case of the table of keys.
    fn known(&self, name: String) -> String {
        if self.table.form == Form::Toml {
            return name;
        }
        let meant = self.table.fields().find_map(|field| {
            let key = self.spelled(field.name);
            let start = key.get(..name.len())?;
            let ends = matches!(key.as_bytes().get(name.len()), None | Some(b'.'));
            (ends && start.eq_ignore_ascii_case(&name)).then(|| start.to_owned())
        });
        meant.unwrap_or(name)
    }

    fn is_table(&self, name: &str) -> bool {
        let within = |key: &str| key != name && is_within(key, name);
        self.table.fields().any(|field| within(&self.spelled(field.name)))
    }

    fn spelled<'a>(&self, name: &'a str) -> Cow<'a, str> {
        spelled(name, self.table.form)
    }
}

/// Whether a key has this name, or is in the table of this name.
fn is_within(key: &str, name: &str) -> bool {
    key.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The name of a key as written; in quotes if it is empty or has a dot, which no key of ours has.
fn shown(written: String) -> String {
    if written.is_empty() || written.contains('.') { format!("{written:?}") } else { written }
}
