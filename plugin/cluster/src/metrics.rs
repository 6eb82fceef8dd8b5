//! What is counted of the API server and the scheduler. Labels are enums.

mod scraped;

use crate::books::ClusterBooks;
use crate::certificates::names::{BUNDLE, CLIENT, KEPT};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use scraped::{Leads, Watermarks};
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use windlass_kit::server::Reloads;
use windlass_kit_kubernetes::Watches;
use windlass_plugin_core::trust::Denied;

/// Looks at what watches told, by what is watched and what was found. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct Audits(Family<Audited, Counter>);

/// Bindings by what came of them. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct Bindings(Family<Answer, Counter>);

/// Calls of the scheduler by verb and by what came of them. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct Calls(Family<Call, Counter>);

/// Requests of callers that were denied, by port and reason. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct Denials(Family<Denial, Counter>);

/// Failed requests for the lease. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct Leases(Counter);

/// Writes of headroom pods by what was written and what came of it. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct HeadroomWrites(Family<Wrote, Counter>);

/// Writes of conditions and events of VMs, by what was written and what came of it. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct ConditionWrites(Family<Wrote, Counter>);

/// Writes of migrations by what was written and what came of it. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct Migrations(Family<Wrote, Counter>);

/// Resizes of VMs' pods, by what they were for and what came of them, and the reasons of those that were given up. Clones
/// count together.
#[derive(Clone, Debug, Default)]
pub struct ResizeWrites {
    by_answer: Family<Wrote, Counter>,
    given_up: Family<Reason, Counter>,
}

/// Writes of ceilings by what came of them, and how long they took. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct CeilingWrites {
    by_answer: Family<Answer, Counter>,
    seconds: Counter<f64, AtomicU64>,
}

/// Writes of the plugin's own certificates, and what was wrong with them. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct CertificateCounts {
    writes: Family<CertificateWrite, Counter>,
    problems: Family<CertificateProblem, Counter>,
}

/// All that is counted.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Failed requests for the lease.
    pub leases: Leases,
    /// Failures of watches.
    pub watches: Watches,
    /// Looks at what watches told.
    pub audits: Audits,
    /// Bindings.
    pub bindings: Bindings,
    /// Calls of the scheduler.
    pub calls: Calls,
    /// Callers that were denied.
    pub denials: Denials,
    /// Certificates that were read again.
    pub reloads: Reloads,
    /// The plugin's own certificates.
    pub certificates: CertificateCounts,
    /// Writes of headroom pods.
    pub headroom: HeadroomWrites,
    /// Writes of conditions and events.
    pub conditions: ConditionWrites,
    /// Writes of migrations.
    pub migrations: Migrations,
    /// Writes of ceilings.
    pub ceilings: CeilingWrites,
    /// Resizes of VMs' pods.
    pub resizes: ResizeWrites,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Audited {
    of: &'static str,
    found: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answer {
    answer: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Reason {
    reason: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Call {
    verb: &'static str,
    answer: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Denial {
    port: &'static str,
    reason: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CertificateWrite {
    object: &'static str,
    answer: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CertificateProblem {
    object: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Wrote {
    write: &'static str,
    answer: &'static str,
}

// === impl Counts ===

impl Counts {
    /// Adds them, and what the books count, to what a process exports.
    pub fn register(&self, books: &ClusterBooks, registry: &mut Registry) {
        books.register(registry);
        registry.register_collector(Box::new(Leads(books.clone())));
        registry.register_collector(Box::new(Watermarks(books.clone())));
        let registry = registry.sub_registry_with_prefix("windlass_plugin");
        let of = "Requests for the lease that failed";
        registry.register("lease_failures", of, self.leases.0.clone());
        self.watches.register(registry);
        let of = "Looks at what watches of the API server told, by what was found";
        registry.register("watch_audits", of, self.audits.0.clone());
        let of = "Requests of the scheduler to bind a pod, by what came of them";
        registry.register("bindings", of, self.bindings.0.clone());
        let of = "Requests of the scheduler to its extender, by verb and answer";
        registry.register("extender_calls", of, self.calls.0.clone());
        let of = "Requests of callers that were denied, by port and reason";
        registry.register("denied", of, self.denials.0.clone());
        self.reloads.register(registry);
        self.certificates.register(registry);
        let of = "Writes of headroom pods, by what was written and what came of it";
        registry.register("headroom_writes", of, self.headroom.0.clone());
        let of = "Writes of migrations of VMs, by what was written and what came of it";
        registry.register("migration_writes", of, self.migrations.0.clone());
        let of = "Writes of conditions and events of VMs, by what was written and what came of it";
        registry.register("condition_writes", of, self.conditions.0.clone());
        let of = "Writes of the ceilings of VMs, by what came of them";
        registry.register("ceiling_writes", of, self.ceilings.by_answer.clone());
        let of = "How long writes of ceilings took, those without success too";
        registry.register("ceiling_write_seconds", of, self.ceilings.seconds.clone());
        let of = "Resizes of VMs' pods, by what they were for and what came of them";
        registry.register("resize_writes", of, self.resizes.by_answer.clone());
        let of = "Resizes of VMs' pods that were taken back, by why the pod was not given more";
        registry.register("resizes_denied", of, self.resizes.given_up.clone());
    }
}

// === impl Leases ===

impl Leases {
    /// A request for the lease failed.
    pub fn failed(&self) {
        self.0.inc();
    }
}

// === impl Audits ===

impl Audits {
    /// A look found this.
    pub fn count(&self, of: &'static str, found: &'static str) {
        self.0.get_or_create_owned(&Audited { of, found }).inc();
    }
}

// === impl Bindings ===

impl Bindings {
    /// A binding came to this: the word of an error, or `bound`.
    pub fn count(&self, answer: &'static str) {
        self.0.get_or_create_owned(&Answer { answer }).inc();
    }
}

// === impl CeilingWrites ===

impl CeilingWrites {
    /// A write came to this after that long.
    pub fn count(&self, answer: &'static str, took: Duration) {
        self.by_answer.get_or_create_owned(&Answer { answer }).inc();
        self.seconds.inc_by(took.as_secs_f64());
    }
}

// === impl Calls ===

impl Calls {
    /// A call was answered so.
    pub fn count(&self, verb: &'static str, answer: &'static str) {
        self.0.get_or_create_owned(&Call { verb, answer }).inc();
    }
}

// === impl Denials ===

impl Denials {
    /// A caller at this port was denied.
    pub fn count(&self, port: &'static str, denied: &Denied) {
        self.0.get_or_create_owned(&Denial { port, reason: denied.as_str() }).inc();
    }
}

// === impl CertificateCounts ===

impl CertificateCounts {
    fn register(&self, registry: &mut Registry) {
        let of = "Writes of the objects with the plugin's own certificates, by object and answer";
        registry.register("certificate_writes", of, self.writes.clone());
        // From zero on: an alert takes the first value of a counter for no increase.
        for object in [KEPT, BUNDLE, CLIENT] {
            drop(self.problems.get_or_create_owned(&CertificateProblem { object }));
        }
        let of = "Parts of these objects that were found to be of no use";
        registry.register("certificate_problems", of, self.problems.clone());
    }

    /// A write of this object was answered so.
    pub fn write(&self, object: &'static str, answer: &'static str) {
        self.writes.get_or_create_owned(&CertificateWrite { object, answer }).inc();
    }

    /// A part of this object is found to be of no use.
    pub fn problem(&self, object: &'static str) {
        self.problems.get_or_create_owned(&CertificateProblem { object }).inc();
    }
}

// === impl HeadroomWrites ===

impl HeadroomWrites {
    /// A write was answered so.
    pub fn count(&self, write: &'static str, answer: &'static str) {
        self.0.get_or_create_owned(&Wrote { write, answer }).inc();
    }
}

// === impl ConditionWrites ===

impl ConditionWrites {
    /// A write was answered so.
    pub fn count(&self, write: &'static str, answer: &'static str) {
        self.0.get_or_create_owned(&Wrote { write, answer }).inc();
    }
}

// === impl Migrations ===

impl Migrations {
    /// A write was answered so.
    pub fn count(&self, write: &'static str, answer: &'static str) {
        self.0.get_or_create_owned(&Wrote { write, answer }).inc();
    }
}

// === impl ResizeWrites ===

impl ResizeWrites {
    /// A resize was answered so; `denied`: it takes back one that was denied for this reason.
    pub fn count(&self, write: &'static str, answer: &'static str, denied: Option<&'static str>) {
        self.by_answer.get_or_create_owned(&Wrote { write, answer }).inc();
        if let (Some(reason), "done") = (denied, answer) {
            self.given_up.get_or_create_owned(&Reason { reason }).inc();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus_client::encoding::text::encode;

    /// Alerts ask for an increase.
    #[test]
    fn what_is_wrong_with_certificates_is_counted_from_the_start() {
        let (mut registry, mut text) = (Registry::default(), String::new());
        let counts = Counts::default();
        counts.reloads.register(&mut registry);
        counts.certificates.register(&mut registry);
        encode(&mut text, &registry).expect("a page");
        for series in [
            r#"certificate_reloads_total{answer="failed"} 0"#,
            r#"certificate_problems_total{object="windlass-plugin-tls"} 0"#,
            r#"certificate_problems_total{object="windlass-plugin-ca"} 0"#,
            r#"certificate_problems_total{object="windlass-scheduler-tls"} 0"#,
        ] {
            assert!(text.contains(series), "{series} is not in:\n{text}");
        }
    }
}
