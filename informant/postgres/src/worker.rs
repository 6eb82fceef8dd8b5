//! The thread that carries out the cache's plans, one action at a time.
//!
//! A server that does not answer holds up nothing but this.

use crate::database::Database;
use crate::postgres::Postgres;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use windlass_informant::log;
use windlass_informant::shared::Shared;
use windlass_informant_postgres_core::{Action, Event};
use windlass_protocol::Bytes;

/// A plan is made again after this long, whatever it says: memory may have come or gone.
const AT_MOST: Duration = Duration::from_secs(1);

/// Bytes of a connection and a small runtime.
const STACK: usize = 512 * 1024;

/// What was last said to a person, so that it is said once.
#[derive(Default)]
struct Said {
    limit: Option<Bytes>,
    problem: Option<String>,
}

/// Starts the thread.
pub fn start(shared: Arc<Shared<Postgres>>, database: Database) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let work = move || runtime.block_on(run(&shared, database));
    std::thread::Builder::new().name("postgres".to_owned()).stack_size(STACK).spawn(work)?;
    Ok(())
}

async fn run(shared: &Shared<Postgres>, mut database: Database) {
    let cotenant = &shared.cotenant;
    let mut said = Said::default();
    loop {
        let now = shared.clock.now();
        let plan = {
            let mut cache = cotenant.cache();
            let plan = cache.plan(now);
            if let Some(action) = plan.action {
                cache.observe(now, Event::Sent(action));
            }
            plan
        };
        let Some(action) = plan.action else {
            let wait = plan.wake_at.map_or(AT_MOST, |at| shared.clock.until(at).min(AT_MOST));
            let _ = timeout(wait, cotenant.woken.notified()).await;
            continue;
        };
        let event = database.carry_out(action).await;
        if let Action::Set(size) = action {
            cotenant.counts.set(matches!(event, Event::Seen(seen) if seen.limit == size));
        }
        cotenant.cache().observe(shared.clock.now(), event);
        cotenant.moved.notify_waiters();
        said.say(cotenant);
    }
}

impl Said {
    fn say(&mut self, cotenant: &Postgres) {
        let (seen, problem) = {
            let cache = cotenant.cache();
            (cache.last_seen(), cache.problem().map(ToString::to_string))
        };
        let limit = seen.map(|seen| seen.limit);
        if let Some(now) = limit.filter(|_| limit != self.limit) {
            log::info(format_args!("the file cache may become {now}"));
            self.limit = limit;
        }
        if problem != self.problem {
            match &problem {
                Some(problem) => log::warn(format_args!("{problem}")),
                None => log::info(format_args!("PostgreSQL does as it is told")),
            }
            self.problem = problem;
        }
    }
}
