//! What an agent counts. Labels are enums: a series per VM would grow without bound.

mod parts;
pub(crate) mod reference;

pub(crate) use parts::Presence;

use parts::Labels;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use reference::Reference;
use std::sync::atomic::AtomicU64;
use windlass_agent_core::{Event, Failure, Tally};
use windlass_kit::server::Counts;
use windlass_protocol::informant::{ID, RESUME, SUSPEND, TRY_UPSCALE};
use windlass_protocol::{Decision, LimitCounts};

/// All of them. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    requests: Family<Labels<2>, Counter>,
    decisions: Family<Labels<1>, Counter>,
    clips: Family<Labels<2>, Counter>,
    resizes: Family<Labels<2>, Counter>,
    calls: Family<Labels<2>, Counter>,
    pub(crate) resets: Counter,
    pub(crate) gone: Counter,
    pub(crate) lost: Counter,
    throttled: Counter<f64, AtomicU64>,
    limits_reset: Counter,
    vms: Gauge,
    flapping: Gauge,
    pub(crate) refusals: Counts,
    pub(crate) reference: Reference,
}

/// What informants call for. Each is counted under its path, without the slash.
const CALLS: [&str; 4] = [ID.path, RESUME.path, SUSPEND.path, TRY_UPSCALE.path];

// === impl Metrics ===

impl Metrics {
    /// Makes everything readable, under names that begin with `windlass_agent_`.
    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("windlass_agent");
        registry.register("vms", "VMs that are there and looked at", self.vms.clone());
        let flapping = "VMs that grew soon after they shrank, more than six times in the last hour";
        registry.register("vms_flapping", flapping, self.flapping.clone());
        let requests = "Requests to peers, by peer and by what came of them";
        registry.register("requests", requests, self.requests.clone());
        let decisions = "Decisions, by the signal that decided";
        registry.register("decisions", decisions, self.decisions.clone());
        let clips = "Decisions that something kept from what the signal called for";
        registry.register("clips", clips, self.clips.clone());
        let resizes = "Resizes, by what they were for and whether an effect was seen";
        registry.register("resizes", resizes, self.resizes.clone());
        let calls = "Calls of informants, by endpoint and status";
        registry.register("calls", calls, self.calls.clone());
        registry.register("resets", "Restarts of guests", self.resets.clone());
        registry.register("vms_gone", "Hypervisors that went away", self.gone.clone());
        let lost = "Connections to hypervisors that broke or could not be made";
        registry.register("hypervisors_lost", lost, self.lost.clone());
        let throttled =
            "How long threads of VMs waited because the host's limit on CPU was used up";
        registry.register("cpu_throttled_seconds", throttled, self.throttled.clone());
        let reset = "Limits on the CPU of VMs that somebody took away, and that were set again";
        registry.register("cpu_limits_reset", reset, self.limits_reset.clone());
        self.refusals.register(registry);
    }

    /// Makes what the reference counts too readable, under its names.
    pub fn register_reference(&self, registry: &mut Registry) {
        self.reference.register(registry);
    }

    /// What was refused before it was understood, of the calls of informants; a program's own listeners
    /// count what they refuse here too.
    pub fn refusals(&self) -> Counts {
        self.refusals.clone()
    }

    /// Counts an answer, or that there was none.
    pub(crate) fn heard(&self, event: &Event) {
        let answered = if let Event::Failed(_, failure) = event {
            match failure {
                Failure::NoAnswer => "no-answer",
                Failure::Refused(_) | Failure::Moving => "refused",
                Failure::Version => "version",
            }
        } else {
            let declined = matches!(event, Event::Declined { .. });
            if declined { "declined" } else { "yes" }
        };
        if let Some(peer) = event.peer().map(|peer| peer.to_string()) {
            self.requests.get_or_create(&[("peer", peer), ("answered", answered.to_owned())]).inc();
        }
    }

    /// Counts how the host's limit held a VM up from one look to the next.
    pub(crate) fn limited(&self, before: LimitCounts, now: LimitCounts) {
        self.throttled.inc_by(now.waited.saturating_sub(before.waited).as_secs_f64());
        self.limits_reset.inc_by(now.resets.saturating_sub(before.resets));
    }

    /// A VM is flapping, for as long as what is returned is kept.
    pub(crate) fn flapping(&self) -> Presence {
        Presence::of(&self.flapping)
    }

    /// A VM is there, for as long as what is returned is kept.
    pub(crate) fn present(&self) -> Presence {
        Presence::of(&self.vms)
    }

    pub(crate) fn decided(&self, decision: &Decision) {
        let reason = decision.reason;
        self.decisions.get_or_create(&[("signal", reason.signal.to_string())]).inc();
        for (axis, clip) in [("cpu", reason.cpu), ("memory", reason.mem)] {
            if let Some(clip) = clip.map(|clip| clip.to_string()) {
                self.clips.get_or_create(&[("axis", axis.to_owned()), ("clip", clip)]).inc();
            }
        }
    }

    /// Counts resizes whose effect, or lack of one, was seen.
    pub(crate) fn judged(&self, tally: Tally) {
        let Tally { grow, shrink, call_off } = tally;
        for (aim, judged) in [("grow", grow), ("shrink", shrink), ("call-off", call_off)] {
            for (effect, count) in [("seen", judged.seen), ("none", judged.none)] {
                if count > 0 {
                    let labels = [("aim", aim.to_owned()), ("effect", effect.to_owned())];
                    self.resizes.get_or_create(&labels).inc_by(count);
                }
            }
        }
    }

    /// Counts a call of an informant, whatever came of it.
    pub(crate) fn called(&self, path: &str, status: u16) {
        let known = CALLS.into_iter().find(|known| *known == path);
        let endpoint = known.map_or("unknown", |known| known.trim_start_matches('/'));
        let labels = [("endpoint", endpoint.to_owned()), ("status", status.to_string())];
        self.calls.get_or_create(&labels).inc();
        if let Some(path) = known {
            self.reference.called(path, status);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus_client::encoding::text::encode;
    use std::time::Duration;
    use windlass_agent_core::Judged;
    use windlass_kit::server::Refusal;
    use windlass_protocol::Peer;

    #[test]
    fn names_and_labels_have_the_stable_spellings() {
        let (metrics, mut registry) = (Metrics::default(), Registry::default());
        metrics.register(&mut registry);
        for failure in [Failure::NoAnswer, Failure::Refused(500), Failure::Moving, Failure::Version]
        {
            metrics.heard(&Event::Failed(Peer::Plugin, failure));
        }
        metrics.heard(&Event::Failed(Peer::Hypervisor, Failure::NoAnswer));
        metrics.heard(&Event::Failed(Peer::Metrics, Failure::NoAnswer));
        metrics.heard(&Event::Upscaled);
        for path in [ID.path, RESUME.path, SUSPEND.path, TRY_UPSCALE.path, "/"] {
            metrics.called(path, 200);
        }
        let call_off = Judged { seen: 2, none: 0 };
        metrics.judged(Tally { call_off, ..Tally::default() });
        for counter in [&metrics.resets, &metrics.gone, &metrics.lost] {
            counter.inc();
        }
        let waited = |seconds, resets| LimitCounts {
            waited: Duration::from_secs(seconds),
            resets,
            ..LimitCounts::default()
        };
        metrics.limited(waited(3, 1), waited(5, 1));
        // The kernel counts anew after the VM was started again.
        metrics.limited(waited(5, 1), waited(1, 0));
        let (_kept, over) = (metrics.present(), metrics.present());
        drop(over);
        let (_one, _two) = (metrics.flapping(), metrics.flapping());
        // Nothing was refused so far.
        for reason in [Refusal::Crowded, Refusal::HeadTime, Refusal::Panic] {
            assert_eq!(metrics.refusals.of(reason), 0);
        }
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        let mut lines: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
        lines.sort_unstable();
        assert_eq!(
            lines,
            [
                r#"windlass_agent_calls_total{endpoint="id",status="200"} 1"#,
                r#"windlass_agent_calls_total{endpoint="resume",status="200"} 1"#,
                r#"windlass_agent_calls_total{endpoint="suspend",status="200"} 1"#,
                r#"windlass_agent_calls_total{endpoint="try-upscale",status="200"} 1"#,
                r#"windlass_agent_calls_total{endpoint="unknown",status="200"} 1"#,
                "windlass_agent_cpu_limits_reset_total 0",
                "windlass_agent_cpu_throttled_seconds_total 2.0",
                r#"windlass_agent_http_refusals_total{reason="crowded"} 0"#,
                r#"windlass_agent_http_refusals_total{reason="head-time"} 0"#,
                r#"windlass_agent_http_refusals_total{reason="panic"} 0"#,
                "windlass_agent_hypervisors_lost_total 1",
                r#"windlass_agent_requests_total{peer="hypervisor",answered="no-answer"} 1"#,
                r#"windlass_agent_requests_total{peer="informant",answered="yes"} 1"#,
                r#"windlass_agent_requests_total{peer="metrics",answered="no-answer"} 1"#,
                r#"windlass_agent_requests_total{peer="plugin",answered="no-answer"} 1"#,
                r#"windlass_agent_requests_total{peer="plugin",answered="refused"} 2"#,
                r#"windlass_agent_requests_total{peer="plugin",answered="version"} 1"#,
                "windlass_agent_resets_total 1",
                r#"windlass_agent_resizes_total{aim="call-off",effect="seen"} 2"#,
                "windlass_agent_vms 1",
                "windlass_agent_vms_flapping 2",
                "windlass_agent_vms_gone_total 1",
            ]
        );
    }

    #[test]
    fn a_request_is_counted_by_its_whole_path() {
        for (path, counted) in [
            (ID.path, "id"),
            (RESUME.path, "resume"),
            (SUSPEND.path, "suspend"),
            (TRY_UPSCALE.path, "try-upscale"),
            ("/try-upscale/", "unknown"),
            ("/", "unknown"),
        ] {
            let metrics = Metrics::default();
            metrics.called(path, 404);
            let labels = [("endpoint", counted.to_owned()), ("status", "404".to_owned())];
            assert_eq!(metrics.calls.get_or_create(&labels).get(), 1, "{path}");
        }
    }
}
