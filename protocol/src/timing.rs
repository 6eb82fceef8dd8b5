//! The times on which two sides rely. Each stands here once; assertions check that they fit together.
//!
//! An agent acts on a VM while it holds a *lease* of the informant. The informant counts the lease from
//! its own answer, or from its own call; the agent counts a shorter lease from its own request. So two agents never act at the
//! same time, even if messages are lost or late, or one clock runs a little faster.
//!
//! ```text
//!   agent      ├── request ──────── acts ────────┤├─ last request takes effect ─┤
//!   informant      ├── answer ──────── no other agent is told to run ───────────────┤
//! ```

use std::time::Duration;

/// From v1.2 of the informant's protocol on: the informant resumes no other agent for this long after its
/// answer to `/health-check`, or after it sent `/resume`.
pub const LEASE_GIVEN: Duration = Duration::from_secs(10);

/// From v1.2 on: an agent acts for this long after it sent a health check that was answered.
pub const LEASE_USED: Duration = Duration::from_secs(8);

/// Before v1.2: the informant resumes no other agent for this long after its last call.
pub const CALL_LEASE_GIVEN: Duration = Duration::from_secs(15);

/// Before v1.2: an agent acts for this long after the informant's last call.
pub const CALL_LEASE_USED: Duration = Duration::from_secs(13);

/// The deadline of a request for a size or a permit. A request sent in the last moment of a lease has taken
/// effect, or never will, when this time has passed.
pub const LONGEST_ACT: Duration = Duration::from_secs(2);

/// The informant answers a size once its guest has parked and un-parked vCPUs, and after this time at the
/// latest.
pub const FOLLOWS_WITHIN: Duration = Duration::from_secs(1);

/// What else has a say in a guest's memory (PostgreSQL's file cache) makes room within this time, or the
/// guest does not agree to less.
pub const ROOM_MADE_WITHIN: Duration = Duration::from_millis(900);

/// The longest time between an agent's health checks. Jitter delays each by up to a tenth.
pub const LONGEST_HEALTH: Duration = Duration::from_secs(5);

/// The period in which the informant checks that an agent is alive (the reference's period).
pub const CHECK_EVERY: Duration = Duration::from_secs(10);

/// The informant spreads its checks of several agents over this much more time.
pub const CHECK_SPREAD: Duration = Duration::from_secs(1);

/// The deadline of the informant's calls. The reference's agent answers `/suspend` only when its pending
/// requests have ended, so the deadline is longer than the network needs.
pub const CALL_LIMIT: Duration = Duration::from_millis(1500);

/// An agent whose process was stopped treats calls as old for this long after it runs again: the informant
/// may have given up on them meanwhile.
pub const CALL_WAITS: Duration = Duration::from_secs(2);

/// An agent ignores a `/resume` within this time of a `/suspend`: it may be older. The informant repeats
/// the `/resume` no sooner.
pub const RESUME_MAY_BE_OLD: Duration = Duration::from_secs(5);

/// A call of the informant without an answer may have reached the agent this much later.
pub const HEARD_LATE: Duration = Duration::from_secs(2);

/// An informant that was silent for this long has missed three of its checks. A session without health
/// checks has then ended; without a session, the guest has no informant.
pub const INFORMANT_GONE: Duration = Duration::from_secs(35);

/// An agent that has all that it asked for asks for a permit this often, give or take a tenth.
pub const ASK_EVERY: Duration = Duration::from_secs(5);

/// An agent asks again this long after it has given a request for a permit up, and up to a tenth more. It waits longer after
/// each further one that is lost.
pub const ASKS_AFTER_A_LOSS: Duration = Duration::from_secs(1);

/// An answer of the plugin waits this long until a ceiling is recorded or a pod is resized; then it is what is covered so far.
pub const ANSWER_WAITS: Duration = Duration::from_millis(1500);

/// The plugin remembers for this long what an agent wanted and did not get.
pub const CLAIM_LASTS: Duration = Duration::from_secs(10);

/// A request for a permit arrives within this time, or never. Until then a plugin cannot tell a smaller
/// figure that was sent before a grant from one that was sent after it.
pub const REQUEST_IS_LATE: Duration = Duration::from_secs(10);

/// An agent whose hypervisor was silent for this long has not renewed its permit, and counts on it no more.
/// No grant expires; but the plugin may have restarted meanwhile, and its books know a permit from before
/// that only once the agent names it.
pub const PERMIT_OUTLIVES_SIGHT: Duration = Duration::from_secs(10);

/// An agent whose hypervisor was silent for this long may have missed a reboot of the guest, after which
/// the informant no longer knows the agent's lease.
pub const BLIND_AFTER: Duration = Duration::from_secs(3);

/// An agent reads the size from the hypervisor at least this often.
pub const LOOK_EVERY: Duration = Duration::from_secs(2);

/// An agent gives more to a guest that called for it for this long after the call (the reference's time).
pub const URGENT_FOR: Duration = Duration::from_secs(10);

/// An informant whose guest needs memory calls for it again no sooner than after this time.
pub const CALLS_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// An agent acts on a guest's consent for this long after the request.
pub const CONSENT_LASTS: Duration = Duration::from_secs(10);

/// Older figures of a guest are stale (three of the reference's periods).
pub const FIGURES_LAST: Duration = Duration::from_secs(15);

/// Our servers keep an idle connection for this long.
pub const CONNECTION_KEPT: Duration = Duration::from_secs(10);

/// Our clients use a connection again only if it was idle for less than this, so that the server does not
/// close it at that moment.
pub const CONNECTION_USED: Duration = Duration::from_secs(8);

/// A plugin that stands by takes the lease of one whose record did not change for this long.
pub const LEADER_LEASE: Duration = Duration::from_secs(15);

/// A plugin that leads answers for this long after it began its last renewal that succeeded.
pub const LEADER_ANSWERS: Duration = Duration::from_secs(10);

/// A plugin that leads renews its lease this often.
pub const LEADER_RENEWS: Duration = Duration::from_secs(2);

/// The deadline of a request to the API server, but for lists, watches, leases and writes of agents.
pub const API_SERVER_ANSWERS: Duration = Duration::from_secs(3);

/// The API server begins every answer within this time, or the request was lost.
pub const API_SERVER_BEGINS: Duration = Duration::from_secs(10);

/// The API server ends a watch after this time, and the next one goes on from there.
pub const WATCH_LASTS: Duration = Duration::from_secs(30);

/// A connection to the API server on which nothing comes for this long is dead.
pub const WATCH_SILENT: Duration = Duration::from_secs(35);

const fn sum(times: &[Duration]) -> u128 {
    let (mut sum, mut index) = (0, 0);
    while index < times.len() {
        sum += times[index].as_millis();
        index += 1;
    }
    sum
}

// A request sent in the last moment of the agent's lease ends before the informant's lease.
const _: () = assert!(sum(&[LEASE_USED, LONGEST_ACT]) <= LEASE_GIVEN.as_millis());
const _: () = assert!(sum(&[CALL_LEASE_USED, LONGEST_ACT]) <= CALL_LEASE_GIVEN.as_millis());
// What an informant that restarts cannot read of a lease, it takes for the longest one.
const _: () = assert!(LEASE_GIVEN.as_millis() <= CALL_LEASE_GIVEN.as_millis());
// The guest's word on a size is there before the agent gives the request up.
const _: () = assert!(sum(&[ROOM_MADE_WITHIN, FOLLOWS_WITHIN]) < LONGEST_ACT.as_millis());
// Each health check is answered within the lease of the one before, even with jitter. The wait begins with an answer, so what
// is left is for two answers, and for a request that the check waits behind.
const _: () = assert!(
    LONGEST_HEALTH.as_millis() * 11 / 10 + LONGEST_ACT.as_millis() <= LEASE_USED.as_millis()
);
// The same holds for calls of the informant.
const _: () = assert!(sum(&[CHECK_EVERY, CHECK_SPREAD, CALL_LIMIT]) <= CALL_LEASE_USED.as_millis());
// The informant has given up on every call that an agent still treats as old.
const _: () = assert!(CALL_LIMIT.as_millis() <= CALL_WAITS.as_millis());
const _: () = assert!(CALL_LIMIT.as_millis() <= HEARD_LATE.as_millis());
// Three checks.
const _: () = assert!(
    3 * sum(&[CHECK_EVERY, CHECK_SPREAD]) + CALL_LIMIT.as_millis() <= INFORMANT_GONE.as_millis()
);
// The agent still waits for an answer that waited.
const _: () = assert!(ANSWER_WAITS.as_millis() < LONGEST_ACT.as_millis());
// A claim outlives a request that was lost.
const ASKED_IN_SPITE_OF_A_LOSS: u128 =
    sum(&[ASK_EVERY, ASKS_AFTER_A_LOSS]) * 11 / 10 + LONGEST_ACT.as_millis();
const _: () = assert!(ASKED_IN_SPITE_OF_A_LOSS <= CLAIM_LASTS.as_millis());
// An agent that sees its hypervisor renews its permit in time, even if one request is lost.
const _: () = assert!(ASKED_IN_SPITE_OF_A_LOSS <= PERMIT_OUTLIVES_SIGHT.as_millis());
// An agent that sees nothing stops acting before its permit goes.
const _: () = assert!(BLIND_AFTER.as_millis() < PERMIT_OUTLIVES_SIGHT.as_millis());
// A guest that needs memory for long is heeded without a gap, even if one of its calls is lost.
const _: () = assert!(2 * sum(&[CALLS_AGAIN_AFTER, CALL_LIMIT]) <= URGENT_FOR.as_millis());
// Reads in time leave no gap.
const _: () = assert!(LOOK_EVERY.as_millis() < BLIND_AFTER.as_millis());
// A connection in use outlives the longest time between two health checks.
const _: () = assert!(CONNECTION_USED.as_millis() < CONNECTION_KEPT.as_millis());
const _: () = assert!(LONGEST_HEALTH.as_millis() * 11 / 10 < CONNECTION_USED.as_millis());
// The last answer of a plugin that leads no more is used, or never will be, before the next one leads, with a tenth to spare for
// clocks that run at different speeds.
const _: () = assert!(sum(&[LEADER_ANSWERS, LONGEST_ACT]) * 11 <= LEADER_LEASE.as_millis() * 10);
// A watch that ends in time is not taken for dead.
const _: () = assert!(WATCH_LASTS.as_millis() < WATCH_SILENT.as_millis());
