//! The loop: sample, plan, act, wait. The only one who carries out the core's plans.

use crate::memory_cotenant::MemoryCotenant;
use crate::shared::Shared;
use crate::sysfs_worker::SysfsWorker;
use crate::{call, log};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep};
use windlass_informant_core::{Action, Ask, Event};
use windlass_protocol::{AgentId, Moment};

/// A plan that says nothing about its end is made again after this long anyway.
const AT_MOST: Duration = Duration::from_secs(5);

/// What was last said to a person, so that it is said once.
#[derive(Default)]
struct Said {
    current: Option<AgentId>,
    gone: Vec<AgentId>,
}

/// Carries out the plan until the end of the program.
pub async fn run<B: MemoryCotenant>(
    shared: Arc<Shared<B>>,
    mut worker: SysfsWorker,
    sample_every: Duration,
) {
    let mut calls = JoinSet::new();
    let mut said = Said::default();
    let mut ticks = interval(sample_every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let wake_at = act(&shared, &worker, &mut calls);
        said.say(&shared);
        let wait = wake_at.map_or(AT_MOST, |at| shared.clock.until(at).min(AT_MOST));
        tokio::select! {
            _ = ticks.tick() => shared.sample(),
            Some(done) = calls.join_next(), if !calls.is_empty() => {
                // A call that panicked aborted the program.
                if let Ok(event) = done {
                    shared.observe(event);
                }
            }
            Some(event) = worker.report() => shared.observe(event),
            () = shared.woken.notified() => {}
            () = sleep(wait) => {}
        }
    }
}

/// Begins everything that the plan has; when to look again.
fn act<B: MemoryCotenant>(
    shared: &Shared<B>,
    worker: &SysfsWorker,
    calls: &mut JoinSet<Event>,
) -> Option<Moment> {
    let now = shared.clock.now();
    let mut core = shared.core();
    let plan = core.plan(now);
    for action in plan.actions {
        core.observe(now, Event::Sent(action.clone()));
        match action {
            Action::Call { agent, at, ask } => {
                if ask == Ask::MoreMemory {
                    shared.counts.asked.add();
                }
                calls.spawn(call::call(agent, at, ask));
            }
            Action::Look | Action::Do(_) => worker.begin(action),
        }
    }
    core.plan(now).wake_at
}

impl Said {
    fn say<B: MemoryCotenant>(&mut self, shared: &Shared<B>) {
        let core = shared.core();
        let current = core.current();
        if current != self.current {
            match current {
                Some(id) => log::info(format_args!("now controlled by agent {id}")),
                None => log::info(format_args!("now controlled by no agent")),
            }
            self.current = current;
        }
        let gone: Vec<(AgentId, _)> = core.gone().collect();
        for (id, cause) in &gone {
            if !self.gone.contains(id) {
                log::info(format_args!("agent {id} let go of: {cause}"));
            }
        }
        self.gone = gone.into_iter().map(|(id, _)| id).collect();
    }
}
