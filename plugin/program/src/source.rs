//! Which files the plugin reads, and what they say together.

use crate::config::{CommandLine, PluginConfig};
use crate::lists::Lists;
use std::path::{Path, PathBuf};
use windlass_kit::config::{Unread, read_list};
use windlass_kit::problem::{Problem, Report};
use windlass_kit::program::Failure;

/// Which files are read, and what the command line says besides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    files: Files,
    command_line: CommandLine,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Files {
    /// Ours, which has the lists too.
    Toml(PathBuf),
    /// The reference's, and the lists that go with it.
    Json {
        /// The reference's configuration.
        config: PathBuf,
        /// The lists.
        books: PathBuf,
    },
}

/// Why files were not understood.
#[derive(Debug)]
pub struct Unreadable {
    /// Everything that is wrong.
    pub report: Report,
    /// A file is not there.
    pub missing: bool,
}

// === impl Source ===

impl Source {
    /// By the ending of the configuration's name.
    ///
    /// # Errors
    /// It is neither .toml nor .json, or the lists stand where they do not belong.
    pub fn of(
        config: PathBuf,
        books: Option<PathBuf>,
        command_line: CommandLine,
    ) -> Result<Self, Failure> {
        let ending = config.extension().and_then(|ending| ending.to_str()).map(str::to_lowercase);
        let path = config.display();
        let files = match (ending.as_deref(), books) {
            (Some("toml"), None) => Ok(Files::Toml(config)),
            (Some("json"), Some(books)) => Ok(Files::Json { config, books }),
            (Some("toml"), Some(_)) => Err(Failure::Usage(format!(
                "--books goes with a .json; {path} lists nodes and VMs itself"
            ))),
            (Some("json"), None) => Err(Failure::Usage(format!(
                "{path} lists no nodes and VMs: --books FILE is needed, a .toml that does"
            ))),
            (_, _) => Err(Failure::Usage(format!("{path}: must end in .toml or .json"))),
        };
        files.map(|files| Self { files, command_line })
    }

    /// Reads everything anew.
    ///
    /// # Errors
    /// Everything that is wrong with the files.
    pub fn read(&self) -> Result<(PluginConfig, Lists), Unreadable> {
        match &self.files {
            Files::Toml(path) => {
                let read = self.command_line.toml(&text(path)?);
                let (config, lists) = read.map_err(|problems| invalid(path, problems))?;
                Ok((config, lists))
            }
            Files::Json { config: path, books } => {
                let (config, list) = (text(path), text(books));
                let config = self.command_line.json(&config?);
                let slot = config.as_ref().map(|config| config.slot);
                let slot = slot.unwrap_or(windlass_protocol::VmInfo::DEFAULT_MEMORY_SLOT);
                let lists = Lists::from_text(&list?, slot);
                match (config, lists) {
                    (Ok(config), Ok(lists)) => {
                        config.rooms(&lists).map_err(|problems| invalid(books, problems))?;
                        Ok((config, lists))
                    }
                    (config, lists) => {
                        let mut all = Vec::new();
                        for (path, problems) in [(path, config.err()), (books, lists.err())] {
                            let of = problems.unwrap_or_default().into_iter();
                            all.extend(of.map(|problem| (path, problem)));
                        }
                        Err(several(all))
                    }
                }
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
