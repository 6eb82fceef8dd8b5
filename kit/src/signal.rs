//! Signals: the first SIGTERM or SIGINT stops, a second one exits at once, SIGHUP reloads the configuration.

use crate::program::Failure;
use crate::tasks::Tasks;
use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::{info, warn};

/// The exit code after a second signal: "killed by SIGTERM", as a shell spells it.
const EXIT_AT_ONCE: i32 = 143;

/// Requests to reload the configuration.
#[derive(Debug)]
pub struct Hangups(Signal);

// === impl Hangups ===

impl Hangups {
    /// Listens for every signal that a program of ours heeds: the first SIGTERM or SIGINT stops `tasks`,
    /// and SIGHUP no longer ends the process.
    ///
    /// # Errors
    /// If a signal cannot be listened for.
    pub fn and_stop_on_signal(tasks: &Tasks) -> Result<Self, Failure> {
        stop_on_signal(tasks)
            .and_then(|()| signal(SignalKind::hangup()))
            .map(Self)
            .map_err(|error| Failure::Failed(format!("cannot listen for signals: {error}")))
    }

    /// Waits for the next SIGHUP. Several that come together count as one.
    pub async fn next(&mut self) {
        if self.0.recv().await.is_none() {
            // No signal can come any more; the caller waits for other things too.
            std::future::pending::<()>().await;
        }
    }
}

/// Stops `tasks` at the first SIGTERM or SIGINT, and exits at once at the second.
///
/// # Errors
/// The signals cannot be received.
pub fn stop_on_signal(tasks: &Tasks) -> io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let stopped = tasks.clone();
    // Outside the drained group, because it must receive the second signal during the drain.
    Tasks::default().minor("signals", async move {
        let first = either(&mut terminate, &mut interrupt).await;
        info!(signal = first, "stopping");
        stopped.stop();
        let second = either(&mut terminate, &mut interrupt).await;
        warn!(signal = second, "exiting at once");
        #[expect(clippy::disallowed_methods, reason = "a person asked twice; clean-up may hang")]
        std::process::exit(EXIT_AT_ONCE);
        #[expect(unreachable_code, reason = "the task's type needs an end")]
        Ok::<(), io::Error>(())
    });
    Ok(())
}

async fn either(terminate: &mut Signal, interrupt: &mut Signal) -> &'static str {
    tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::pin::pin;
    use std::task::Poll;

    #[tokio::test]
    async fn the_configuration_is_read_again_after_a_hangup_and_not_before() {
        let mut hangups = Hangups::and_stop_on_signal(&Tasks::default()).unwrap();
        let mut next = pin!(hangups.next());
        let early = poll_fn(|context| Poll::Ready(next.as_mut().poll(context).is_ready())).await;
        assert!(!early, "there was no signal yet");
        windlass_testkit::process::signal(std::process::id(), "HUP");
        next.await;
    }
}
