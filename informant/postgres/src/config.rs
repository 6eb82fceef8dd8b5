//! Flags beside the informant's own, and their defaults.
//!
//! A connection string may hold a password: it is never printed, and can stand in a file.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr};
use thiserror::Error;
use tokio_postgres::config::{Host, SslMode};
use windlass_informant::config as informant;

/// What `--help` prints before the informant's own help.
pub const HELP: &str = "\
The informant for guests whose PostgreSQL keeps a file cache: the cache is made smaller before
less memory is agreed to, and larger once there is more.

Usage: windlass-informant-postgres --postgres CONNECTION [OPTIONS]

Options beside those of windlass-informant, which are below:
  --postgres CONNECTION    key=value pairs as libpq takes them, or @FILE to read them from a
                           file; hosts are addresses or directories of sockets
                           [default host: 127.0.0.1]
  --cache-setting NAME     the setting that is the cache's size
                           [default: neon.file_cache_size_limit]
  --cache-most-setting NAME
                           the setting that is the largest size
                           [default: neon.max_file_cache_size]
  --cache-used-query SQL   says how many bytes of memory the cache's content occupies; empty
                           if it is on disk
                           [default: SELECT file_cache_used * 1048576 FROM neon_stat_file_cache]

";

/// What may be meant by a flag that there is not, beside the informant's own.
const FLAGS: [&str; 4] =
    ["--postgres", "--cache-setting", "--cache-most-setting", "--cache-used-query"];

/// What was asked for on the command line.
#[derive(Clone, Debug)]
pub enum Command {
    /// Serve.
    Run(informant::Config, Box<Config>),
    /// Print this.
    Print(String),
}

/// Which PostgreSQL, and where its cache is.
#[derive(Clone, Debug)]
pub struct Config {
    /// How it is reached.
    pub connection: tokio_postgres::Config,
    /// The setting that is the cache's size.
    pub setting: String,
    /// The setting that is the largest size.
    pub most_setting: String,
    /// Says how much memory the content occupies; nothing if that is not to be known.
    pub used_query: Option<String>,
}

/// A command line that is not understood.
#[derive(Debug, Error)]
pub enum BadCommand {
    /// One of the informant's own flags.
    #[error(transparent)]
    Flag(#[from] informant::BadFlag),
    /// `--postgres` is missing.
    #[error("--postgres: is missing; --help says what it takes")]
    Missing,
    /// The value is no connection string. It may hold a password, so the error does not repeat it.
    #[error("--postgres: {0}")]
    Connection(String),
    /// The file with the connection string cannot be read.
    #[error("--postgres: cannot read {file}: {error}")]
    File {
        /// Which.
        file: String,
        /// Why.
        error: std::io::Error,
    },
    /// The value is no name of a setting.
    #[error("{flag}: {value} is not the name of a setting")]
    Setting {
        /// Which flag.
        flag: &'static str,
        /// What was given.
        value: String,
    },
}

/// Reads the command line, without the program's name.
///
/// # Errors
/// Names the flag, and what is wrong with it.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Command, BadCommand> {
    let mut args = args.into_iter();
    let (mut connection, mut rest) = (None, Vec::new());
    let mut setting = "neon.file_cache_size_limit".to_owned();
    let mut most_setting = "neon.max_file_cache_size".to_owned();
    let mut used_query = "SELECT file_cache_used * 1048576 FROM neon_stat_file_cache".to_owned();
    while let Some(arg) = args.next() {
        let text = arg.to_string_lossy().into_owned();
        let (flag, inline) = match text.split_once('=') {
            Some((flag, value)) => (flag, Some(value.to_owned())),
            None => (text.as_str(), None),
        };
        let mut value = |flag| {
            let next = || args.next().map(|value| value.to_string_lossy().into_owned());
            inline.clone().or_else(next).ok_or(informant::BadFlag::NoValue(flag))
        };
        match flag {
            "--postgres" => connection = Some(value("--postgres")?),
            "--cache-setting" => setting = name("--cache-setting", value("--cache-setting")?)?,
            "--cache-most-setting" => {
                most_setting = name("--cache-most-setting", value("--cache-most-setting")?)?;
            }
            "--cache-used-query" => used_query = value("--cache-used-query")?,
            _ => rest.push(arg),
        }
    }
    let informant = match informant::parse(rest).map_err(|bad| bad.beside(&FLAGS))? {
        informant::Command::Run(config) => config,
        informant::Command::Help => return Ok(Command::Print(HELP.to_owned() + informant::HELP)),
        informant::Command::Version => {
            let version = concat!("windlass-informant-postgres ", env!("CARGO_PKG_VERSION"), "\n");
            return Ok(Command::Print(version.to_owned()));
        }
    };
    let connection = reach(&connection.ok_or(BadCommand::Missing)?)?;
    let used_query = Some(used_query).filter(|query| !query.trim().is_empty());
    Ok(Command::Run(informant, Box::new(Config { connection, setting, most_setting, used_query })))
}

/// Reads a connection string, or the file that it names.
fn reach(given: &str) -> Result<tokio_postgres::Config, BadCommand> {
    let text = match given.strip_prefix('@') {
        None => given.to_owned(),
        Some(file) => std::fs::read_to_string(file)
            .map_err(|error| BadCommand::File { file: file.to_owned(), error })?,
    };
    let wrong = |what: &str| BadCommand::Connection(what.to_owned());
    let mut config: tokio_postgres::Config =
        text.trim().parse().map_err(|error| wrong(&format!("{error}")))?;
    for host in config.get_hosts() {
        // Nothing can resolve a name in a static program.
        if let Host::Tcp(host) = host
            && host.parse::<IpAddr>().is_err()
        {
            return Err(wrong(&format!("host: {host} is neither an address nor a directory")));
        }
    }
    if config.get_ssl_mode() == SslMode::Require {
        return Err(wrong("sslmode: require is not supported; PostgreSQL is in the same guest"));
    }
    config.ssl_mode(SslMode::Disable);
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        config.hostaddr(IpAddr::V4(Ipv4Addr::LOCALHOST));
    }
    if config.get_application_name().is_none() {
        config.application_name("windlass-informant");
    }
    Ok(config)
}

/// A name that can stand in a statement as it is.
fn name(flag: &'static str, value: String) -> Result<String, BadCommand> {
    let word = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
            && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    if value.len() <= 100 && value.split('.').count() <= 2 && value.split('.').all(word) {
        return Ok(value);
    }
    Err(BadCommand::Setting { flag, value })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(args: &[&str]) -> Result<Command, BadCommand> {
        parse(args.iter().map(OsString::from))
    }

    fn configured(args: &[&str]) -> (informant::Config, Config) {
        match parsed(args) {
            Ok(Command::Run(informant, config)) => (informant, *config),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_reference_s_connection_string_will_do() {
        let given = "dbname=postgres user=cloud_admin sslmode=disable";
        let (informant, config) = configured(&["--postgres", given]);
        assert_eq!(informant, informant::Config::default());
        assert_eq!(config.connection.get_user(), Some("cloud_admin"));
        assert_eq!(config.connection.get_hostaddrs(), [IpAddr::V4(Ipv4Addr::LOCALHOST)]);
        assert_eq!(config.setting, "neon.file_cache_size_limit");
        assert_eq!(config.most_setting, "neon.max_file_cache_size");
    }

    #[test]
    fn flags_of_both_may_be_mixed() {
        let args = ["--root", "/x", "--postgres=host=/run/x user=u", "--sample-every=10"];
        let more = ["--cache-used-query", "", "--cache-setting", "own.size"];
        let (informant, config) = configured(&[&args[..], &more[..]].concat());
        assert_eq!(informant.root, Some("/x".into()));
        assert_eq!(config.used_query, None);
        assert_eq!(config.setting, "own.size");
        assert!(matches!(parsed(&["--help"]), Ok(Command::Print(text)) if text.contains("--root")));
    }

    #[test]
    fn what_is_wrong_is_named_and_no_password_is_repeated() {
        for (args, said) in [
            (&["--sample-every=10"][..], "--postgres: is missing; --help says what it takes"),
            (&["--postgres"], "--postgres: needs a value"),
            (&["--cgroup=x"], "--cgroup: there is no such option; --help lists them"),
            (
                &["--postgress=password=secret"],
                "--postgress: there is no such option; did you mean --postgres?",
            ),
            (&["--lisen=x"], "--lisen: there is no such option; did you mean --listen?"),
            (
                &["--postgres", "host=db user=u password=secret"],
                "--postgres: host: db is neither an address nor a directory",
            ),
            (
                &["--postgres", "user=u sslmode=require password=secret"],
                "--postgres: sslmode: require is not supported; PostgreSQL is in the same guest",
            ),
            (
                &["--postgres", "user=u", "--cache-setting", "a = 1; DROP"],
                "--cache-setting: a = 1; DROP is not the name of a setting",
            ),
        ] {
            assert_eq!(parsed(args).unwrap_err().to_string(), said);
        }
        for given in ["password=secret nonsense", "password='secret", "port=secret user=secret"] {
            let said = parsed(&["--postgres", given]).unwrap_err().to_string();
            assert!(said.starts_with("--postgres: ") && !said.contains("secret"), "{said}");
        }
        let said = parsed(&["--postgres", "@/nowhere/at/all"]).unwrap_err().to_string();
        assert!(said.starts_with("--postgres: cannot read /nowhere/at/all: "), "{said}");
    }
}
