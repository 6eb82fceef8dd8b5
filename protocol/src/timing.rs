//! The times on which two sides rely. Each stands here once; assertions join those that must fit.
//!
//! An agent acts on a VM while it holds a *lease* of the informant. The informant counts the lease
//! from its own answer, and the agent counts a shorter one from its own request. So no two agents
//! ever act, whatever is lost or late, and whichever clock runs a little faster.
//!
//! ```text
//!   agent      ├── request ──────── acts ────────┤├─ last request takes effect ─┤
//!   informant      ├── answer ──────── no other agent is told to run ───────────────┤
//! ```

use std::time::Duration;

/// From v1.2 of the informant's protocol on: the informant tells no other agent to run for this long
/// after its answer to `/health-check` or the agent's answer to `/resume`.
pub const LEASE_GIVEN: Duration = Duration::from_secs(10);

/// From v1.2 on: an agent acts for this long after it sent a health check that was answered.
pub const LEASE_USED: Duration = Duration::from_secs(8);

/// Before v1.2: the informant tells no other agent to run for this long after its last call.
pub const CALL_LEASE_GIVEN: Duration = Duration::from_secs(15);

/// Before v1.2: an agent acts for this long after the informant's last call.
pub const CALL_LEASE_USED: Duration = Duration::from_secs(13);

/// A request for a size or a permit ends within this: an agent waits no longer, and what it asked for
/// in the last moment of its lease then has its effect, or none.
pub const LONGEST_ACT: Duration = Duration::from_secs(2);

/// The longest time between an agent's health checks. Each is up to a tenth later by jitter.
pub const LONGEST_HEALTH: Duration = Duration::from_secs(5);

/// The informant checks this often whether an agent is there (the reference's period).
pub const CHECK_EVERY: Duration = Duration::from_secs(10);

/// The informant spreads its checks of several agents over this much more time.
pub const CHECK_SPREAD: Duration = Duration::from_secs(1);

/// The informant hangs up on a call after this. The reference's agent answers `/suspend` only once its
/// requests under way have ended, so this is not as short as a network would allow.
pub const CALL_LIMIT: Duration = Duration::from_millis(1500);

/// An agent that did not run takes a call for an old one for this long after it runs again: the
/// informant may have hung up on it meanwhile.
pub const CALL_WAITS: Duration = Duration::from_secs(2);

/// An agent ignores a `/resume` that comes this soon after a `/suspend`: it may be older. The informant
/// repeats the `/resume` no sooner.
pub const RESUME_MAY_BE_OLD: Duration = Duration::from_secs(5);

/// A word of an informant that got no answer may have reached the agent this much later.
pub const HEARD_LATE: Duration = Duration::from_secs(2);

/// Without a word from the informant for this long, three of its checks were lost: there is no session
/// where none can be checked, and nobody where no session ever was.
pub const INFORMANT_GONE: Duration = Duration::from_secs(35);

/// An agent asks for a permit at least this often.
pub const ASK_EVERY: Duration = Duration::from_secs(5);

/// The plugin keeps what an agent wanted and did not get for this long.
pub const CLAIM_LASTS: Duration = Duration::from_secs(10);

/// An agent that has not seen its hypervisor for this long has asked for no permit meanwhile, and the
/// plugin may have given what it permitted to others.
pub const PERMIT_OUTLIVES_SIGHT: Duration = Duration::from_secs(10);

/// An agent that has not seen its hypervisor for this long may have missed that the guest restarted,
/// and with it the informant that knew of its lease.
pub const BLIND_AFTER: Duration = Duration::from_secs(3);

/// An agent looks at its hypervisor at least this often.
pub const LOOK_EVERY: Duration = Duration::from_secs(2);

/// An agent acts on what a guest agreed to for this long after it asked.
pub const CONSENT_LASTS: Duration = Duration::from_secs(10);

/// Figures of a guest that are older than this say nothing (three of the reference's periods).
pub const FIGURES_LAST: Duration = Duration::from_secs(15);

/// A server of ours keeps a connection on which nothing is asked for this long.
pub const CONNECTION_KEPT: Duration = Duration::from_secs(10);

/// A client asks over a connection that was idle for less than this, so that its server does not close
/// it at that moment.
pub const CONNECTION_USED: Duration = Duration::from_secs(8);

const fn sum(times: &[Duration]) -> u128 {
    let (mut sum, mut index) = (0, 0);
    while index < times.len() {
        sum += times[index].as_millis();
        index += 1;
    }
    sum
}

// What an agent asks for in the last moment of its lease is over before the informant's lease is.
const _: () = assert!(sum(&[LEASE_USED, LONGEST_ACT]) <= LEASE_GIVEN.as_millis());
const _: () = assert!(sum(&[CALL_LEASE_USED, LONGEST_ACT]) <= CALL_LEASE_GIVEN.as_millis());
// An answered check follows the one before within a lease, though each takes a second and jitter.
const _: () = assert!(LONGEST_HEALTH.as_millis() * 11 / 10 + 2000 <= LEASE_USED.as_millis());
// So does a call of the informant.
const _: () = assert!(sum(&[CHECK_EVERY, CHECK_SPREAD, CALL_LIMIT]) <= CALL_LEASE_USED.as_millis());
// An informant has hung up on every call that an agent may still take for a new one.
const _: () = assert!(CALL_LIMIT.as_millis() <= CALL_WAITS.as_millis());
const _: () = assert!(CALL_LIMIT.as_millis() <= HEARD_LATE.as_millis());
// Three checks.
const _: () = assert!(
    3 * sum(&[CHECK_EVERY, CHECK_SPREAD]) + CALL_LIMIT.as_millis() <= INFORMANT_GONE.as_millis()
);
// A claim outlives a request that was lost.
const _: () = assert!(2 * ASK_EVERY.as_millis() <= CLAIM_LASTS.as_millis());
// What others may claim by then is relied on no more.
const _: () = assert!(PERMIT_OUTLIVES_SIGHT.as_millis() <= CLAIM_LASTS.as_millis());
// A look that comes in time leaves no gap.
const _: () = assert!(LOOK_EVERY.as_millis() < BLIND_AFTER.as_millis());
// A connection that is asked over in time outlives the longest time between two checks.
const _: () = assert!(CONNECTION_USED.as_millis() < CONNECTION_KEPT.as_millis());
const _: () = assert!(LONGEST_HEALTH.as_millis() * 11 / 10 < CONNECTION_USED.as_millis());
