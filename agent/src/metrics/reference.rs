//! What is counted under the names of the reference's agent, where it means the same.
//!
//! Labels that there may hold any text (the cause of a failed request) have one word here.

use super::parts::{Labels, Presence};
use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::fmt;
use std::sync::atomic::AtomicU64;
use windlass_protocol::Resources;

/// The code of a request that got no answer.
const NO_ANSWER: &str = "[error doing request]";

/// All of them. Clones count together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reference {
    plugin_requests: Family<Labels<1>, Counter>,
    /// What the plugin is asked for, of a VM that has so much.
    pub(crate) plugin_asked: Changes,
    /// What the plugin permitted, to a VM that had so much when it was asked.
    pub(crate) plugin_accepted: Changes,
    outbound: Family<Labels<2>, Counter>,
    inbound: Family<Labels<2>, Counter>,
    /// The size that an informant is asked for or told of, where it had agreed to another.
    pub(crate) informant_asked: Changes,
    /// What the informant agreed to, or has heard.
    pub(crate) informant_approved: Changes,
    starts: Plain,
    restarts: Plain,
    panics: Counter,
    silent: Gauge,
}

/// A count under a name that does not end in `_total`, which the encoder adds to every counter.
#[derive(Clone, Debug, Default)]
struct Plain(Counter);

/// Changes of a size, both ways.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes {
    cpu: Family<Labels<1>, Sum>,
    mem: Family<Labels<1>, Sum>,
}

type Sum = Counter<f64, AtomicU64>;

// === impl Reference ===

impl Reference {
    pub(super) fn register(&self, registry: &mut Registry) {
        let silent = "VMs whose informant has been silent for longer than it may";
        let name = "autoscaling_vms_unsuccessful_communication_with_informant_current";
        registry.register(name, silent, self.silent.clone());
        let registry = registry.sub_registry_with_prefix("autoscaling_agent");
        let requests = "Requests to the plugin, by status";
        registry.register("scheduler_plugin_requests", requests, self.plugin_requests.clone());
        for ([cpu, mem], help, changes) in [
            (
                ["scheduler_plugin_requested_cpu_change", "scheduler_plugin_requested_mem_change"],
                "asked of the plugin",
                &self.plugin_asked,
            ),
            (
                ["scheduler_plugin_accepted_cpu_change", "scheduler_plugin_accepted_mem_change"],
                "permitted by the plugin",
                &self.plugin_accepted,
            ),
            (
                ["informant_requested_cpu_change", "informant_requested_mem_change"],
                "said to informants",
                &self.informant_asked,
            ),
            (
                ["informant_approved_cpu_change", "informant_approved_mem_change"],
                "agreed to by informants",
                &self.informant_approved,
            ),
        ] {
            registry.register(cpu, format!("vCPUs more and less {help}"), changes.cpu.clone());
            registry.register(mem, format!("MiB more and less {help}"), changes.mem.clone());
        }
        let requests = "Requests to informants, by endpoint and status";
        registry.register("informant_outbound_requests", requests, self.outbound.clone());
        let requests = "Requests of informants, by endpoint and status";
        registry.register("informant_inbound_requests", requests, self.inbound.clone());
        let starts = "Starts of what looks after a VM";
        registry.register("runner_starts", starts, self.starts.clone());
        let restarts = "Starts of it that were not the first for its VM";
        registry.register("runner_restarts", restarts, self.restarts.clone());
        let panics = "Ends of it that were a fault of the agent";
        registry.register("runner_thread_panics", panics, self.panics.clone());
    }

    /// The plugin answered, or did not.
    pub(crate) fn plugin_answered(&self, status: Option<u16>) {
        self.plugin_requests.get_or_create(&[code(status)]).inc();
    }

    /// An informant answered, or did not.
    pub(crate) fn asked_informant(&self, endpoint: &'static str, status: Option<u16>) {
        self.outbound.get_or_create(&[("endpoint", endpoint.to_owned()), code(status)]).inc();
    }

    /// An informant called, at a path of the protocol.
    pub(crate) fn called(&self, endpoint: &'static str, status: u16) {
        let labels = [("endpoint", endpoint.to_owned()), code(Some(status))];
        self.inbound.get_or_create(&labels).inc();
    }

    /// The informant of a VM is silent, for as long as what is returned is kept.
    pub(crate) fn silent(&self) -> Presence {
        Presence::of(&self.silent)
    }

    /// What looks after a VM starts; `again` after an end that it should not have had.
    pub(crate) fn started(&self, again: bool) {
        self.starts.0.inc();
        if again {
            self.restarts.0.inc();
            self.panics.inc();
        }
    }
}

// === impl Plain ===

impl EncodeMetric for Plain {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        encoder.encode_gauge(&self.0.get())
    }

    fn metric_type(&self) -> MetricType {
        // To a reader of OpenMetrics, a counter has the ending.
        MetricType::Unknown
    }
}

// === impl Changes ===

impl Changes {
    pub(crate) fn add(&self, from: Resources, to: Resources) {
        #[expect(clippy::cast_precision_loss, reason = "amounts that a VM has fit")]
        let (cores, mib) = (
            |r: Resources| r.cpu.milli() as f64 / 1000.0,
            |r: Resources| r.mem.bytes() as f64 / f64::from(1 << 20),
        );
        for (family, change) in
            [(&self.cpu, cores(to) - cores(from)), (&self.mem, mib(to) - mib(from))]
        {
            let direction = if change < 0.0 { "dec" } else { "inc" };
            if change != 0.0 {
                let labels = [("direction", direction.to_owned())];
                family.get_or_create(&labels).inc_by(change.abs());
            }
        }
    }
}

/// A status, or [`NO_ANSWER`]: peers that lie have 900 of them at most.
fn code(status: Option<u16>) -> (&'static str, String) {
    ("code", status.map_or_else(|| NO_ANSWER.to_owned(), |status| status.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus_client::encoding::text::encode;
    use windlass_protocol::{Bytes, MilliCpu};

    #[test]
    fn the_reference_s_names_and_labels_are_served() {
        let (counts, mut registry) = (Reference::default(), Registry::default());
        counts.register(&mut registry);
        let size = |milli, mib| Resources::new(MilliCpu::from_milli(milli), Bytes::from_mib(mib));
        counts.plugin_answered(Some(200));
        counts.plugin_answered(None);
        counts.plugin_asked.add(size(1000, 256), size(2500, 128));
        counts.plugin_accepted.add(size(1000, 256), size(2000, 256));
        counts.asked_informant("/downscale", Some(200));
        counts.informant_asked.add(size(1000, 512), size(1000, 256));
        counts.informant_approved.add(size(1000, 256), size(2000, 256));
        counts.called("/id", 404);
        counts.started(false);
        counts.started(true);
        let (_kept, over) = (counts.silent(), counts.silent());
        drop(over);
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        for line in [
            r#"autoscaling_agent_scheduler_plugin_requests_total{code="200"} 1"#,
            r#"autoscaling_agent_scheduler_plugin_requests_total{code="[error doing request]"} 1"#,
            r#"autoscaling_agent_scheduler_plugin_requested_cpu_change_total{direction="inc"} 1.5"#,
            r#"autoscaling_agent_scheduler_plugin_requested_mem_change_total{direction="dec"} 128.0"#,
            r#"autoscaling_agent_scheduler_plugin_accepted_cpu_change_total{direction="inc"} 1.0"#,
            r#"autoscaling_agent_informant_outbound_requests_total{endpoint="/downscale",code="200"} 1"#,
            r#"autoscaling_agent_informant_inbound_requests_total{endpoint="/id",code="404"} 1"#,
            r#"autoscaling_agent_informant_requested_mem_change_total{direction="dec"} 256.0"#,
            r#"autoscaling_agent_informant_approved_cpu_change_total{direction="inc"} 1.0"#,
            "# TYPE autoscaling_agent_runner_starts unknown",
            "autoscaling_agent_runner_starts 2",
            "autoscaling_agent_runner_restarts 1",
            "autoscaling_agent_runner_thread_panics_total 1",
            "autoscaling_vms_unsuccessful_communication_with_informant_current 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in {text}");
        }
    }
}
