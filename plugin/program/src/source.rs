//! Which files the plugin reads, and what they say together.

use std::hint::black_box;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use windlass_kit::blocking::{run_apart, run_blocking};
use windlass_kit::config::{Unread, read_list};
use windlass_kit::problem::{Problem, Report};
use windlass_kit::program::Failure;
use windlass_plugin_config::config::PluginConfig;
use windlass_plugin_config::lists::Lists;
use windlass_protocol::VmInfo;

/// In bytes: more than glibc's limit for joining pieces, and less than what it takes from the system by itself.
const LARGE: usize = 96 * 1024;

/// So many of them are 30 MiB.
const MANY: usize = 320;

/// Which files are read, and what the command line says besides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    config: PathBuf,
    /// The lists that go with the reference's JSON; ours has them too.
    books: Option<PathBuf>,
    /// In place of the file's.
    admin: Option<SocketAddr>,
}

/// What the files say, or why they were not understood.
pub(crate) type Read = Result<(PluginConfig, Lists), Unreadable>;

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

    /// Reads everything anew, on a thread of its own: what a text becomes while it is read takes several times the memory of
    /// what is kept of it. It lies apart from what the program keeps, and is the system's again once the lists are
    /// [`given_back`].
    ///
    /// # Errors
    /// The thread panicked, or the process is ending.
    pub(crate) async fn read_apart(self) -> io::Result<Read> {
        run_blocking(move || run_apart(|| self.read())).await?
    }

    fn read(&self) -> Read {
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

/// Lists that were [`read`](Source::read_apart) are of no use any more.
pub(crate) async fn given_back(lists: Lists) {
    let give_back = move || {
        run_apart(|| drop(lists))?;
        // glibc returns what is free at the end of a thread's memory where that is large: more than twice the largest piece
        // that it took by itself before. What is taken here is not touched, so it costs nothing.
        let taken = || (0..MANY).map(|_| Vec::<u8>::with_capacity(LARGE)).collect::<Vec<_>>();
        run_apart(|| drop(black_box(taken())))
    };
    // If there is no thread for that, the lists are gone as well.
    let _given = run_blocking(give_back).await;
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
