//! What `windlass vm check` is told beside what was found when the host attached.
//!
//! The host holds the monitor, so whether QEMU answers now is what the agent knows. Of the informant
//! a session is the best word: it said that it follows this host. Without a session, as always in
//! mode observe, the informant is asked here and now for its figures; that opens no session and
//! changes nothing in the guest.

use axum::http::Method;
use std::net::SocketAddr;
use std::time::Duration;
use windlass_drivers_qemu::check::{Finding, Topic, Verdict};
use windlass_kit::client::{Address, Ask, ask, with_causes};
use windlass_protocol::status::{SessionState, VmStatus};
use windlass_protocol::{Mode, Waiting};

/// An informant that works answers at once; a person waits for this.
const DEADLINE: Duration = Duration::from_secs(2);
/// Its figures have a few KiB.
const LARGEST: usize = 1 << 20;

/// What was found; before it that QEMU no longer answers, and behind it that QEMU was not started for
/// the maximum of the VM's file, if that is so.
pub(crate) fn as_of_now(found: Vec<Finding>, status: Option<&VmStatus>) -> Vec<Finding> {
    let lost = status.is_some_and(|status| status.waiting.contains(&Waiting::HypervisorLost));
    let said = found.iter().any(Finding::is_unreached);
    let mut now = Vec::from_iter((lost && !said).then(Finding::lost));
    let max = status.map(|status| status.bounds.max);
    let short: Vec<Finding> = found.iter().filter_map(|finding| finding.short_of(max?)).collect();
    now.extend(found.into_iter().chain(short));
    now
}

/// Whether the informant answers at this moment.
pub(crate) async fn informant(at: Option<SocketAddr>, status: Option<&VmStatus>) -> Finding {
    let (Some(at), Some(status)) = (at, status) else {
        let text = "Not asked: the host is not attached to the VM, or does not manage it.";
        return finding(Verdict::Limited, text);
    };
    let (verdict, text) = match status.session {
        SessionState::Active => (Verdict::Good, "It answers, and follows this host."),
        SessionState::Registered => {
            (Verdict::Limited, "It answers, and has not said yet that it follows this host.")
        }
        SessionState::Suspended => (Verdict::Limited, "It answers, and follows another agent."),
        SessionState::Absent => return tried(at, status.mode).await,
    };
    finding(verdict, text)
}

async fn tried(at: SocketAddr, mode: Mode) -> Finding {
    let request = Ask::new(Method::GET, "/metrics", "").within(DEADLINE).at_most(LARGEST);
    let answer = ask(&Address::Tcp(at), request).await.map(|answer| answer.status);
    let text = match (answer, mode) {
        (Ok(200), Mode::Observe) => {
            let text = "In mode observe nothing but its figures is asked of it.";
            return finding(Verdict::Good, format!("It answers at {at}. {text}"));
        }
        (Ok(200), Mode::Act) => {
            format!(
                "It answers at {at}, and has no session with this host; the host's log says why."
            )
        }
        (Ok(status), Mode::Act | Mode::Observe) => {
            format!("At {at} there are no figures (status {status}): is that windlass-informant?")
        }
        (Err(error), Mode::Act | Mode::Observe) => format!(
            "It does not answer: no memory is taken from the VM. Is windlass-informant running \
             in the guest, and reached at the file's `informant`? {}.",
            with_causes(&error)
        ),
    };
    finding(Verdict::Limited, text)
}

fn finding(verdict: Verdict, text: impl Into<String>) -> Finding {
    Finding::new(Topic::Informant, verdict, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_drivers::DriverError;
    use windlass_protocol::{Bounds, Resources, Signals, VmName};

    #[test]
    fn a_hypervisor_that_fell_silent_is_said_before_what_was_found() {
        let found = || vec![finding(Verdict::Good, "QEMU 7.2.0.")];
        let lost = status(vec![Waiting::HypervisorLost]);
        let said = as_of_now(found(), Some(&lost));
        assert_eq!(said.len(), 2);
        assert!(said[0].is_unreached() && said[0].text.contains("QEMU does not answer"));
        assert_eq!(as_of_now(found(), Some(&status(vec![Waiting::AtGoal]))), found());
        assert_eq!(as_of_now(found(), None), found());
        // Why it cannot be attached to is the better word.
        let taken = vec![Finding::unreached(&DriverError::Taken { place: "/q".into() })];
        assert_eq!(as_of_now(taken.clone(), Some(&lost)), taken);
    }

    fn status(waiting: Vec<Waiting>) -> VmStatus {
        VmStatus {
            name: VmName::on_host("a"),
            mode: Mode::Act,
            priority: 0,
            bounds: Bounds { min: Resources::ZERO, max: Resources::ZERO },
            seen: None,
            online: None,
            upper: None,
            signals: Signals::default(),
            goal: None,
            reason: None,
            permit: None,
            consent: None,
            session: SessionState::Absent,
            waiting,
            silent_since: None,
            unit: None,
            window: None,
            target: None,
            limit_counts: None,
        }
    }
}
