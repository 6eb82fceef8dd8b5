//! Billing as a process runs it: by the clock, with tasks, until it is asked to stop.

use crate::config::usual;
use crate::receiver::{Fate, Receiver};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;
use windlass_agent_billing::{Allocation, Billing, Config, Endpoint, Metrics, Sizes, Source};
use windlass_kit::clock::Clock;
use windlass_kit::tasks::Tasks;
use windlass_protocol::{MilliCpu, VmName};
use windlass_testkit::Folder;
use windlass_testkit::wait::until_async;

/// One VM with two vCPUs, as long as anything is known.
struct Known {
    known: AtomicBool,
    looks: AtomicU32,
}

impl Sizes for Known {
    fn look(&self) -> Option<Vec<Allocation>> {
        self.looks.fetch_add(1, Ordering::SeqCst);
        let vm = || Allocation {
            vm: VmName::on_host("db1"),
            endpoint: Endpoint::try_from("ep-1".to_owned()).unwrap(),
            cpu: MilliCpu::from_cores(2),
        };
        self.known.load(Ordering::SeqCst).then(|| vec![vm()])
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_bills_by_the_clock_and_sends_the_rest_when_it_stops() {
    let (folder, receiver) =
        (Folder::create().unwrap(), Receiver::start(Box::new(|| Fate::Answered)));
    let (metrics, mut registry) = (Metrics::default(), Registry::default());
    metrics.register(&mut registry);
    // Nothing is due by itself within the test.
    let billing = open(&folder, &receiver, Duration::from_secs(3600), metrics);
    let known = Arc::new(Known { known: true.into(), looks: 0.into() });
    let tasks = Tasks::default();
    billing.start(known.clone(), Clock::system(), &tasks);
    tokio::time::sleep(Duration::from_millis(1_300)).await;
    assert_eq!(receiver.counted().events.len(), 0);
    tasks.drain(Duration::from_secs(30)).await.unwrap();
    let sums: Vec<u64> = receiver.sums().into_values().collect();
    assert!(sums[0] >= 1 && sums[1] >= 2, "active and CPU seconds: {sums:?}");
    assert!(known.looks.load(Ordering::SeqCst) > 5);
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    for line in [
        "windlass_agent_billing_vms 1\n",
        "windlass_agent_billing_events_sent_total 2\n",
        "windlass_agent_billing_queue_events 0\n",
        "autoscaling_agent_billing_queue_size 0\n",
    ] {
        assert!(text.contains(line), "{line} not in {text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_look_at_which_nothing_is_known_has_not_taken_place() {
    let (folder, receiver) =
        (Folder::create().unwrap(), Receiver::start(Box::new(|| Fate::Answered)));
    let billing = open(&folder, &receiver, Duration::from_secs(3600), Metrics::default());
    let known = Arc::new(Known { known: false.into(), looks: 0.into() });
    let (tasks, of) = (Tasks::default(), known.clone());
    billing.start(Arc::new(move || of.look()), Clock::system(), &tasks);
    until_async("three looks", async || known.looks.load(Ordering::SeqCst) >= 3).await;
    tasks.drain(Duration::from_secs(30)).await.unwrap();
    let log = std::fs::read_to_string(folder.at("billing/usage.log")).unwrap();
    assert_eq!(log.lines().count(), 1, "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_that_is_down_is_tried_until_it_is_there_and_fewer_events_if_it_asks_for_that() {
    let fates = [Fate::Refused(413), Fate::Refused(413), Fate::Refused(500), Fate::CutAfter];
    let mut fates = fates.into_iter();
    let receiver = Receiver::start(Box::new(move || fates.next().unwrap_or(Fate::Answered)));
    let (folder, metrics) = (Folder::create().unwrap(), Metrics::default());
    let mut registry = Registry::default();
    metrics.register(&mut registry);
    let billing = open(&folder, &receiver, Duration::from_millis(1), metrics);
    let clock = Clock::system();
    let vms = Known { known: true.into(), looks: 0.into() }.look().unwrap();
    billing.look(clock.now(), vms.clone()).await;
    billing.look(clock.now().after(Duration::from_secs(10)), vms).await;
    let tasks = Tasks::default();
    billing.send(&tasks, tasks.stopping());
    until_async("all is sent", async || billing.waiting().await == 0).await;
    tasks.drain(Duration::from_secs(30)).await.unwrap();
    assert_eq!(receiver.counted().repeated, 1, "what was counted without an answer came again");
    assert_eq!(receiver.counted().wrong, Vec::<String>::new());
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    for line in [
        "windlass_agent_billing_send_errors_total{cause=\"4xx\"} 2\n",
        "windlass_agent_billing_send_errors_total{cause=\"5xx\"} 1\n",
        "windlass_agent_billing_send_errors_total{cause=\"broken\"} 1\n",
        "autoscaling_agent_billing_send_errors_total 4\n",
    ] {
        assert!(text.contains(line), "{line} not in {text}");
    }
}

fn open(folder: &Folder, receiver: &Receiver, window: Duration, metrics: Metrics) -> Billing {
    let config = Config {
        collect_every: Duration::from_millis(20),
        accumulate_every: window,
        push_every: Duration::from_millis(5),
        ..usual(&receiver.url())
    };
    let source = Source::try_from("node-1".to_owned()).unwrap();
    Billing::open(config, &folder.at("billing"), source, Clock::system().now(), metrics).unwrap()
}
