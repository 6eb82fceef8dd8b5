//! Which files the plugin reads, and what they say together.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use windlass_kit::config::{Unread, read_list};
use windlass_kit::problem::{Problem, Report};
use windlass_kit::program::Failure;
use windlass_plugin_config::config::PluginConfig;
use windlass_plugin_config::lists::Lists;
use windlass_protocol::VmInfo;

/// Which files are read, and what the command line says besides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    config: PathBuf,
    /// The lists that go with the reference's JSON; ours has them too.
    books: Option<PathBuf>,
    /// In place of the file's.
    admin: Option<SocketAddr>,
}

/// Why files were not understood.
#[derive(Debug)]
pub(crate) struct Unreadable {
    pub(crate) report: Report,
    pub(crate) missing: bool,
}

// === impl Source ===

impl Source {
    /// By the ending of the configuration's name.
    pub(crate) fn of(
        config: PathBuf,
        books: Option<PathBuf>,
        admin: Option<SocketAddr>,
    ) -> Result<Self, Failure> {
        let ending = config.extension().and_then(|ending| ending.to_str()).map(str::to_lowercase);
        let path = config.display();
        let wrong = match (ending.as_deref(), &books) {
            (Some("toml"), None) | (Some("json"), Some(_)) => {
                return Ok(Self { config, books, admin });
            }
            (Some("toml"), Some(_)) => {
                format!("--books goes with a .json; {path} lists nodes and VMs itself")
            }
            (Some("json"), None) => {
                format!("{path} lists no nodes and VMs: --books FILE is needed, a .toml that does")
            }
            (_, _) => format!("{path}: must end in .toml or .json"),
        };
        Err(Failure::Usage(wrong))
    }

    /// Reads everything anew.
    pub(crate) fn read(&self) -> Result<(PluginConfig, Lists), Unreadable> {
        let path = &self.config;
        let Some(books) = &self.books else {
            let read = PluginConfig::from_toml(&text(path)?, self.admin);
            return read.map_err(|problems| invalid(path, problems));
        };
        let (config, list) = (text(path), text(books));
        let config = PluginConfig::from_json(&config?, self.admin);
        let slot = config.as_ref().map_or(VmInfo::DEFAULT_MEMORY_SLOT, |config| config.slot);
        match (config, Lists::from_text(&list?, slot)) {
            (Ok(config), Ok(lists)) => {
                config.rooms(&lists).map_err(|problems| invalid(books, problems))?;
                Ok((config, lists))
            }
            (config, lists) => {
                let of_config = config.err().into_iter().flatten().map(|problem| (path, problem));
                let of_lists = lists.err().into_iter().flatten().map(|problem| (books, problem));
                Err(several(of_config.chain(of_lists).collect()))
            }
        }
    }
}

// === impl Unreadable ===

impl From<Unreadable> for Failure {
    fn from(unreadable: Unreadable) -> Self {
        let words = unreadable.report.to_string();
        if unreadable.missing { Self::Missing(words) } else { Self::Invalid(words) }
    }
}

fn text(path: &Path) -> Result<String, Unreadable> {
    read_list(path).map_err(|unread| {
        let missing = matches!(unread, Unread::Missing);
        Unreadable { missing, ..invalid(path, vec![unread.into()]) }
    })
}

fn invalid(path: &Path, problems: Vec<Problem>) -> Unreadable {
    let subject = path.display().to_string();
    let report = Report { subject, problems, meanwhile: String::new() };
    Unreadable { report, missing: false }
}

/// Problems of two files: those of the second say whose they are.
fn several(all: Vec<(&PathBuf, Problem)>) -> Unreadable {
    let first = all.first().map(|(path, _)| *path).cloned().unwrap_or_default();
    let problem = |(path, problem): (&PathBuf, Problem)| {
        if *path == first {
            return problem;
        }
        let field = format!("{}: {}", path.display(), problem.field);
        Problem { field: field.trim_end_matches(": ").to_owned(), ..problem }
    };
    let problems = all.into_iter().map(problem).collect();
    invalid(&first, problems)
}
