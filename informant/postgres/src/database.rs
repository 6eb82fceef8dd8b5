//! Speaks to PostgreSQL, one statement at a time, on one connection that is kept.
//!
//! Each action has a deadline, after which its connection is closed: the server may still carry
//! it out. A statement's own time-out on the server keeps such statements from piling up.

use crate::config::Config;
use std::error::Error as _;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::{Client, Error, NoTls, SimpleQueryMessage};
use windlass_informant::log;
use windlass_informant_postgres_core::event::JOB_LIMIT;
use windlass_informant_postgres_core::{Action, Event, Problem, Seen};
use windlass_protocol::Bytes;
use windlass_protocol::words::sanitized;

/// So long PostgreSQL's processes have to take note of a size.
const IN_EFFECT: Duration = Duration::from_millis(500);

/// How often it is asked meanwhile.
const POLL: Duration = Duration::from_millis(20);

/// A query for the content that failed is tried again after this long: each is a line in the
/// server's log.
const USED_AGAIN: Duration = Duration::from_secs(60);

/// Words of the server are cut to this length.
const WORDS: usize = 120;

/// One server, and the connection to it.
#[derive(Debug)]
pub struct Database {
    config: Config,
    session: Option<Session>,
    used_at: Option<Instant>,
}

#[derive(Debug)]
struct Session {
    client: Client,
    /// Carries the bytes; ends when this is dropped.
    _connection: JoinSet<()>,
}

impl Database {
    /// A server that was not called yet.
    pub fn new(config: Config) -> Self {
        Self { config, session: None, used_at: None }
    }

    /// Carries out an action within its deadline.
    pub async fn carry_out(&mut self, action: Action) -> Event {
        match timeout(JOB_LIMIT, self.attempt(action)).await.unwrap_or(Err(Problem::Slow)) {
            Ok(seen) => Event::Seen(seen),
            Err(problem) => {
                self.session = None;
                Event::Failed(problem)
            }
        }
    }

    async fn attempt(&mut self, action: Action) -> Result<Seen, Problem> {
        // A connection of before may have ended with the server.
        if self.session.as_ref().is_some_and(|session| session.client.is_closed()) {
            self.session = None;
        }
        let session = match self.session.take() {
            Some(session) => session,
            None => connect(&self.config).await?,
        };
        let client = &self.session.insert(session).client;
        let (limit, most) = match action {
            Action::Look => limits(client, &self.config).await?,
            Action::Set(size) => set(client, &self.config, size).await?,
        };
        let due = self.used_at.is_none_or(|at| at <= Instant::now());
        let used = match self.config.used_query.as_deref().filter(|_| due) {
            None => None,
            Some(query) => match used(client, query).await {
                Ok(used) => Some(used),
                Err(problem) => {
                    if self.used_at.is_none() {
                        log::warn(format_args!(
                            "the content of the file cache counts as in use: {problem}"
                        ));
                    }
                    self.used_at = Some(Instant::now() + USED_AGAIN);
                    None
                }
            },
        };
        Ok(Seen { limit, most, used })
    }
}

async fn connect(config: &Config) -> Result<Session, Problem> {
    let (client, connection) =
        config.connection.connect(NoTls).await.map_err(|e| Problem::Unreachable(words(&e)))?;
    let mut task = JoinSet::new();
    task.spawn(async {
        // The next query reports what ended the connection.
        let _ = connection.await;
    });
    let limit = format!("SET statement_timeout = {}", JOB_LIMIT.as_millis());
    client.simple_query(&limit).await.map_err(refused)?;
    Ok(Session { client, _connection: task })
}

/// Sets the size, and waits until it is in effect, or for as long as is allowed.
async fn set(
    client: &Client,
    config: &Config,
    size: Bytes,
) -> Result<(Bytes, Option<Bytes>), Problem> {
    let statement = format!("ALTER SYSTEM SET {} = '{}MB'", config.setting, size.mib());
    client.simple_query(&statement).await.map_err(refused)?;
    client.simple_query("SELECT pg_reload_conf()").await.map_err(refused)?;
    let until = Instant::now() + IN_EFFECT;
    loop {
        let limits = limits(client, config).await?;
        if limits.0 == size || Instant::now() >= until {
            return Ok(limits);
        }
        sleep(POLL).await;
    }
}

/// The size, and the largest one; `None` for a largest that is missing or negative.
async fn limits(client: &Client, config: &Config) -> Result<(Bytes, Option<Bytes>), Problem> {
    let Config { setting, most_setting, .. } = config;
    let query = format!(
        "SELECT pg_size_bytes(current_setting('{setting}')), \
         pg_size_bytes(current_setting('{most_setting}', true))"
    );
    let [limit, most] = row(client, &query).await?;
    let unreadable =
        |value: &str| Problem::Unreadable { name: setting.clone(), value: sanitized(value, WORDS) };
    let limit = limit.unwrap_or_default();
    let bytes = amount(&limit).ok_or_else(|| unreadable(&limit))?;
    Ok((bytes, most.as_deref().and_then(amount)))
}

async fn used(client: &Client, query: &str) -> Result<Bytes, Problem> {
    let [used] = row(client, query).await?;
    let used = used.unwrap_or_default();
    amount(&used).ok_or_else(|| Problem::Unreadable {
        name: "the answer to --cache-used-query".to_owned(),
        value: sanitized(&used, WORDS),
    })
}

/// The first values of the first row; `None` for a value that is not there.
async fn row<const N: usize>(client: &Client, query: &str) -> Result<[Option<String>; N], Problem> {
    let messages = client.simple_query(query).await.map_err(refused)?;
    let row = messages.iter().find_map(|message| {
        if let SimpleQueryMessage::Row(row) = message { Some(row) } else { None }
    });
    let value = |at| row.and_then(|row| row.try_get(at).ok().flatten()).map(str::to_owned);
    Ok(std::array::from_fn(value))
}

fn amount(text: &str) -> Option<Bytes> {
    text.trim().parse().ok().map(Bytes::from_bytes)
}

fn refused(error: Error) -> Problem {
    let words = words(&error);
    if error.as_db_error().is_some() {
        Problem::Refused(words)
    } else {
        Problem::Unreachable(words)
    }
}

/// What happened, in the server's own words if it said any.
fn words(error: &Error) -> String {
    let text = match error.as_db_error() {
        Some(said) => said.message().to_owned(),
        None => error.source().map_or_else(|| error.to_string(), |cause| cause.to_string()),
    };
    sanitized(&text, WORDS)
}
