//! A file, read key by key by its table; all its problems are found, not the first.
//!
//! A key that does not stand in the table is a problem: a misspelt one would otherwise be a silent
//! default. One mistake is one problem: what is missing because it is misspelt, or because its whole
//! table is none, is not said again.

use super::field::{Form, Table, spelled};
use super::kind::{Kind, Typed};
use super::node::Node;
use super::problem::Problem;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::time::Duration;

/// Letters by which a misspelt name may differ from the one that is meant.
const TYPOS: usize = 3;

/// The values of a file, and what was found wrong with it.
#[derive(Debug)]
pub struct Reader {
    table: &'static Table,
    /// Those of the table that are there, by their names in the file.
    nodes: BTreeMap<String, Node>,
    /// Those that are not of the table.
    unknown: BTreeMap<String, Node>,
    /// What is written at all, `null` too: keys, and tables that became their keys.
    written: BTreeSet<String>,
    /// The tables that became their keys, empty ones too.
    tables: BTreeSet<String>,
    problems: Vec<Problem>,
    adjusted: Vec<Problem>,
    /// Keys that should be there, and have a problem for it.
    missing: BTreeSet<String>,
}

// === impl Reader ===

impl Reader {
    /// Of a file with these keys. A table inside of it becomes its keys, as `node.cpu`, if a key
    /// begins with its name. A key that is `null` is not there.
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
    ///
    /// # Panics
    /// If the table has no such key, or that has no default of this type.
    pub fn get<T: Typed>(&mut self, name: &str) -> T {
        let kind = self.table.field(name).kind;
        self.get_with(name, |node| T::read(&kind, node))
    }

    /// The same, of a kind for which the program has a function of its own.
    ///
    /// # Panics
    /// If the table has no such key, or that has no default that is read by this.
    pub fn get_with<T>(&mut self, name: &str, read: impl Fn(&Node) -> Option<T>) -> T {
        // Also where it is not needed: a wrong one is noticed by the first test.
        let default = self.table.field(name).default(&read);
        self.find_with(name, read).unwrap_or(default)
    }

    /// The value of this key, if it is there and allowed.
    ///
    /// # Panics
    /// If the table has no such key.
    pub fn find<T: Typed>(&mut self, name: &str) -> Option<T> {
        let kind = self.table.field(name).kind;
        self.find_as(name, kind, |node| T::read(&kind, node))
    }

    /// The same, of a kind that this file has for it, and read in a way of its own.
    ///
    /// # Panics
    /// If the table has no such key.
    pub fn find_as<T>(
        &mut self,
        name: &str,
        kind: Kind,
        read: impl FnOnce(&Node) -> Option<T>,
    ) -> Option<T> {
        let field = self.table.field(name);
        let node = self.peek(name)?.clone();
        let value = read(&node);
        if value.is_none() {
            self.wrong(name, &node, &field.complaint(&kind, &node, self.table.form()));
        }
        value
    }

    /// The same, of a kind for which the program has a function of its own.
    ///
    /// # Panics
    /// If the table has no such key.
    pub fn find_with<T>(&mut self, name: &str, read: impl FnOnce(&Node) -> Option<T>) -> Option<T> {
        self.find_as(name, self.table.field(name).kind, read)
    }

    /// The value of this key, which must be there.
    ///
    /// # Panics
    /// If the table has no such key.
    pub fn required<T: Typed>(&mut self, name: &str) -> Option<T> {
        self.require(name);
        self.find(name)
    }

    /// The same, of a kind for which the program has a function of its own.
    ///
    /// # Panics
    /// If the table has no such key.
    pub fn required_with<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&Node) -> Option<T>,
    ) -> Option<T> {
        self.require(name);
        self.find_with(name, read)
    }

    /// Notes a problem if this key is not there.
    ///
    /// # Panics
    /// If the table has no such key.
    pub fn require(&mut self, name: &str) {
        let field = self.table.field(name);
        let spelled = self.spelled(name);
        if !self.nodes.contains_key(&*spelled) {
            let limit = format!("is missing: {}", field.range(self.table.form()));
            self.problems.push(Problem::without_value(&*spelled, limit));
            self.missing.insert(spelled.into_owned());
        }
    }

    /// The number of a key of [`Kind::Clamped`], at the end of the range where it is beyond; then
    /// [`Self::adjusted`] has it.
    ///
    /// # Panics
    /// If the table has no such key.
    pub fn clamped(&mut self, name: &str) -> Option<u64> {
        let given = self.find(name)?;
        let Kind::Clamped { from, to, .. } = self.table.field(name).kind else { return None };
        let counts = u64::clamp(given, from, to);
        if given != counts {
            let end = if given > counts { "most" } else { "least" };
            self.adjust(name, given, format!("counts as {counts}, the {end} that is taken"));
        }
        Some(counts)
    }

    /// The same in seconds, or the default.
    ///
    /// # Panics
    /// If the table has no such key, or that has no default of seconds.
    pub fn seconds(&mut self, name: &str) -> Duration {
        let field = self.table.field(name);
        let default = field.default(|node| Duration::read(&field.kind, node));
        self.clamped(name).map_or(default, Duration::from_secs)
    }

    /// Notes that a value is taken, and counts as another.
    pub fn adjust(&mut self, name: &str, value: impl Display, limit: impl Into<String>) {
        self.adjusted.push(Problem::new(&*self.spelled(name), value, limit));
    }

    /// What is taken and counts as something else.
    pub fn adjusted(&mut self) -> Vec<Problem> {
        std::mem::take(&mut self.adjusted)
    }

    /// What stands at this key.
    pub fn peek(&self, name: &str) -> Option<&Node> {
        self.nodes.get(&*self.spelled(name))
    }

    /// Whether the table of this name is there, with or without keys.
    pub fn has_table(&self, name: &str) -> bool {
        self.tables.contains(name)
    }

    /// Whether none of these keys and tables has a problem: only then what they say together is
    /// looked at.
    pub fn are_sound(&self, names: &[&str]) -> bool {
        let is_of = |problem: &Problem, name: &&str| is_within(&problem.field, &self.spelled(name));
        !self.problems.iter().any(|problem| names.iter().any(|name| is_of(problem, name)))
    }

    /// Notes that a key does not fit another, whose name its range has, unless either is wrong by itself.
    ///
    /// # Panics
    /// If the table has no such key.
    pub fn misfit(&mut self, name: &str, other: &str, value: impl Display) {
        if self.are_sound(&[name, other]) {
            let range = self.table.field(name).range(self.table.form());
            self.wrong(name, value, &format!("must be {range}"));
        }
    }

    /// Takes the keys of these tables away, and says so of each.
    pub fn forbid(&mut self, tables: &[&str], limit: &str) {
        let within =
            |name: &String| name.split_once('.').is_some_and(|(table, _)| tables.contains(&table));
        let beside: Vec<_> = self.nodes.extract_if(.., |name, _| within(name)).collect();
        for (name, node) in beside {
            self.problems.push(Problem::new(name, node, limit));
        }
    }

    /// Notes a problem of a key.
    pub fn wrong(&mut self, name: &str, value: impl Display, limit: &str) {
        self.problems.push(Problem::new(&*self.spelled(name), value, limit));
    }

    /// Notes problems that were found elsewhere.
    pub fn add(&mut self, problems: impl IntoIterator<Item = Problem>) {
        self.problems.extend(problems);
    }

    /// `value`, if nothing is wrong with the file.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    ///
    /// # Panics
    /// If there is neither a value nor a problem.
    pub fn finish<T>(mut self, value: Option<T>) -> Result<T, Vec<Problem>> {
        self.explain();
        match value {
            Some(value) if self.problems.is_empty() => Ok(value),
            _ if self.problems.is_empty() => panic!("a file without a problem has a value"),
            _ => Err(self.problems),
        }
    }

    /// Says of every key that is none which one was meant. What is missing for it is no problem.
    fn explain(&mut self) {
        let keys: Vec<_> = self.table.fields().map(|field| self.spelled(field.name)).collect();
        let all = format!("is not a key; the keys are {}", keys.join(", "));
        // Tables that are none, and names that are meant.
        let mut reasons: Vec<String> =
            self.problems.iter().map(|problem| problem.field.clone()).collect();
        reasons.retain(|field| !self.missing.contains(field));
        let mut unknown = Vec::new();
        for (name, node) in &self.unknown {
            let meant = self.meant(name, &keys);
            let limit = meant.map_or_else(
                || all.clone(),
                |meant| format!("is not a key; did you mean {meant}?"),
            );
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

    /// The key or table that was probably meant by a name, if it does not stand in the file: one that
    /// differs in few letters, or the only one of that name in another table.
    fn meant<'a>(&self, name: &str, keys: &'a [Cow<'static, str>]) -> Option<&'a str> {
        let absent = |meant: &&str| !self.written.contains(*meant);
        let most = TYPOS.min(1 + name.len() / 5);
        let ends = |key: &'a Cow<'_, str>| {
            let tables = key.match_indices('.').map(|(at, _)| &key[..at]);
            tables.chain([&**key])
        };
        let near = keys.iter().flat_map(ends).filter(absent).filter(|meant| {
            // Also so that a name of any length costs nothing.
            name.len().abs_diff(meant.len()) <= most
        });
        let near = near.map(|meant| (strsim::osa_distance(name, meant), meant)).min();
        if let Some((typos, meant)) = near
            && typos <= most
            && !name.contains('"')
        {
            return Some(meant);
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
                // As if it were not there, if it may be.
                (Node::Null, true) => {}
                (node, true) => {
                    let limit = match self.table.form() {
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

    /// The name of the key, or of the table, that is meant by this one, whatever its case in JSON.
    fn known(&self, name: String) -> String {
        if self.table.form() == Form::Toml {
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

    fn is_key(&self, name: &str) -> bool {
        self.table.fields().any(|field| self.spelled(field.name) == name)
    }

    fn spelled<'a>(&self, name: &'a str) -> Cow<'a, str> {
        spelled(name, self.table.form())
    }
}

/// Whether a key is this one, or one of this table.
fn is_within(key: &str, name: &str) -> bool {
    key.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The name of a key as somebody wrote it: in quotes where it would read as none, or as one of a
/// table. No key of ours has such a name.
fn shown(written: String) -> String {
    if written.is_empty() || written.contains('.') { format!("{written:?}") } else { written }
}
