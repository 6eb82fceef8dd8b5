//! What billing counts, under our names and, where it means the same, the reference's.

use crate::receiver::Undelivered;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use windlass_kit::client::ClientError;
use windlass_protocol::Moment;

/// What [`cause`] says.
const CAUSES: [&str; 9] =
    ["name", "path", "connect", "no-answer", "too-large", "broken", "4xx", "5xx", "status"];

/// The reference's phase of a VM whose hypervisor is there.
const RUNNING: &str = "Running";

/// All of them. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    vms: Gauge,
    elsewhere: Gauge,
    silent: Gauge,
    processed: Family<Labels<3>, Counter>,
    current: Family<Labels<3>, Gauge>,
    not_billed: Gauge,
    queue: Gauge,
    held: Gauge,
    oldest: Gauge<f64, AtomicU64>,
    disk: Gauge,
    pub(crate) unwritten: Counter,
    pub(crate) damaged: Counter,
    pub(crate) sent: Counter,
    errors: Family<Labels<1>, Counter>,
    all_errors: Counter,
    /// Seconds in which all that waited was sent.
    pub(crate) last_send: Gauge<f64, AtomicU64>,
}

/// Labels with their words: those of [`cause`], `true` and `false`, and one phase.
type Labels<const N: usize> = [(&'static str, &'static str); N];

/// A VM that is there, as a look finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Whether the VM's use can be billed to an endpoint.
    pub is_endpoint: bool,
    /// Whether it is sized, and not only observed.
    pub is_sized: bool,
    /// Whether this agent bills it.
    pub is_billed: bool,
    /// Whether its informant has said nothing for longer than it may.
    pub is_silent: bool,
}

// === impl Metrics ===

impl Metrics {
    /// Makes everything readable, under names that begin with `windlass_agent_billing_`, and
    /// the reference's.
    pub fn register(&self, registry: &mut Registry) {
        let ours = registry.sub_registry_with_prefix("windlass_agent_billing");
        ours.register("vms", "VMs that are billed", self.vms.clone());
        // There from the start.
        self.found(&[]);
        let elsewhere = "VMs with an endpoint that are there and are not this agent's to bill";
        ours.register("vms_elsewhere", elsewhere, self.elsewhere.clone());
        let not_billed = "VMs that are not billed for want of room";
        ours.register("vms_not_billed", not_billed, self.not_billed.clone());
        ours.register("queue_events", "Events that wait for the receiver", self.queue.clone());
        let held = "Windows that stay open because the queue is full";
        ours.register("windows_held", held, self.held.clone());
        let oldest = "Until when the oldest event that waits counts; 0 if none waits";
        ours.register("oldest_event_timestamp_seconds", oldest, self.oldest.clone());
        ours.register("journal_bytes", "Bytes of the usage log on disk", self.disk.clone());
        let unwritten = "Attempts to write down that the disk refused";
        ours.register("journal_errors", unwritten, self.unwritten.clone());
        let damaged = "Usage logs that were damaged and put aside";
        ours.register("journals_damaged", damaged, self.damaged.clone());
        ours.register("events_sent", "Events that the receiver has answered", self.sent.clone());
        for cause in CAUSES {
            // There from the start, so that the first one is an increase.
            drop(self.errors.get_or_create(&[("cause", cause)]));
        }
        ours.register("send_errors", "Requests that failed, by cause", self.errors.clone());
        let silent = "VMs that are billed whose informant has been silent for longer than it may";
        let name = "autoscaling_billed_vms_unsuccessful_communication_with_informant_current";
        registry.register(name, silent, self.silent.clone());
        let theirs = registry.sub_registry_with_prefix("autoscaling_agent_billing");
        theirs.register("queue_size", "Events that wait for the receiver", self.queue.clone());
        let processed = "VMs at all looks, each at each look";
        theirs.register("vms_processed", processed, self.processed.clone());
        theirs.register("vms_current", "VMs at the last look", self.current.clone());
        theirs.register("send_errors", "Requests that failed", self.all_errors.clone());
        let last_send = "How long it took to send what waited; 0 if that failed";
        theirs.register("last_send_duration_seconds", last_send, self.last_send.clone());
    }

    /// VMs were looked at, and these are there.
    pub fn found(&self, vms: &[Found]) {
        let of = |is: fn(&Found) -> bool| vms.iter().filter(|vm| is(vm)).count();
        set(&self.elsewhere, of(|vm| vm.is_endpoint && !vm.is_billed));
        set(&self.silent, of(|vm| vm.is_billed && vm.is_silent));
        let said = |is: bool| if is { "true" } else { "false" };
        for is_endpoint in [true, false] {
            for is_sized in [true, false] {
                let same = |vm: &&Found| (vm.is_endpoint, vm.is_sized) == (is_endpoint, is_sized);
                let labels = [
                    ("is_endpoint", said(is_endpoint)),
                    ("autoscaling_enabled", said(is_sized)),
                    ("phase", RUNNING),
                ];
                let count = vms.iter().filter(same).count();
                self.processed.get_or_create(&labels).inc_by(count as u64);
                set(&self.current.get_or_create(&labels), count);
            }
        }
    }

    pub(crate) fn log(&self, vms: usize, queue: usize, oldest: Option<Moment>, bytes: u64) {
        set(&self.vms, vms);
        set(&self.queue, queue);
        let oldest = oldest.map_or(Duration::ZERO, |oldest| oldest.since(Moment::default()));
        self.oldest.set(oldest.as_secs_f64());
        self.disk.set(i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    pub(crate) fn not_billed(&self, vms: usize) {
        set(&self.not_billed, vms);
    }

    pub(crate) fn held(&self, windows: usize) {
        set(&self.held, windows);
    }

    pub(crate) fn failed(&self, why: &Undelivered) {
        self.errors.get_or_create(&[("cause", cause(why))]).inc();
        self.all_errors.inc();
        self.last_send.set(0.0);
    }
}

fn set(gauge: &Gauge, count: usize) {
    gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
}

const fn cause(why: &Undelivered) -> &'static str {
    match why {
        Undelivered::Name { .. } => "name",
        Undelivered::Client(ClientError::Path { .. }) => "path",
        Undelivered::Client(ClientError::Connect { .. } | ClientError::Handshake { .. }) => {
            "connect"
        }
        Undelivered::Client(ClientError::NoAnswer { .. }) => "no-answer",
        Undelivered::Client(ClientError::TooLarge { .. }) => "too-large",
        Undelivered::Client(ClientError::Broken { .. }) => "broken",
        Undelivered::Status { status: 400..=499, .. } => "4xx",
        Undelivered::Status { status: 500..=599, .. } => "5xx",
        Undelivered::Status { .. } => "status",
    }
}
