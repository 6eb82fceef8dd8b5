//! The process that bills and is killed, and how it is spoken to.

use crate::config::usual;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use windlass_agent_billing::{Allocation, Billing, Config, Endpoint, Metrics, Source};
use windlass_kit::tasks::Tasks;
use windlass_protocol::{MilliCpu, Moment, VmName};
use windlass_testkit::wait::until_async;
use windlass_testkit::{Folder, Process};

/// Where the process finds its usage log and its receiver; without it, it does nothing.
const PLACE: &str = "WINDLASS_TEST_BILLING";

/// What the process says when something is done, among what the test harness says.
const DONE: &str = "@done";

/// A process that bills.
pub(crate) struct Child(Process);

// === impl Child ===

impl Child {
    pub(crate) fn start(folder: &Folder, url: &str) -> Self {
        Self(Process::start(std::env::current_exe().unwrap(), |command| {
            command.args([
                "sigkill::the_process_that_is_killed",
                "--exact",
                "--nocapture",
                "--test-threads=1",
            ]);
            command.env(PLACE, format!("{} {url}", folder.at("billing").display()));
            command.stdin(Stdio::piped());
        }))
    }

    pub(crate) fn tell(&mut self, order: &str) {
        self.0.tell(order);
    }

    /// Waits until the last order is carried out.
    pub(crate) fn answered(&mut self) {
        self.0.out().after(DONE);
    }

    pub(crate) fn kill(&mut self) {
        self.0.kill();
    }
}

/// Bills until it is killed, if it is the process that is to be.
pub(crate) fn run() {
    let Ok(place) = std::env::var(PLACE) else { return };
    let (folder, url) = place.split_once(' ').unwrap();
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
        .block_on(bill(Path::new(folder), url));
}

async fn bill(folder: &Path, url: &str) {
    let source = Source::try_from("node-1".to_owned()).unwrap();
    // The wall clock has no say in this test.
    let begin = Moment::from_millis(1_600_000_000_000);
    let billing = Billing::open(config(url), folder, source, begin, Metrics::default()).unwrap();
    let tasks = Tasks::default();
    billing.send(&tasks, CancellationToken::new());
    let mut now = begin;
    for order in std::io::stdin().lines().map_while(Result::ok) {
        if order == "finish" {
            until_async("all is sent", async || finish(&billing, now).await == 0).await;
        } else {
            let (at, vms) = look(&order);
            now = at;
            billing.look(at, vms).await;
        }
        let mut out = std::io::stdout();
        out.write_all(format!("{DONE}\n").as_bytes()).unwrap();
        out.flush().unwrap();
    }
}

/// Ends what there is room for, and says how much is left to send.
async fn finish(billing: &Billing, now: Moment) -> usize {
    billing.close(now).await;
    billing.waiting().await
}

/// A short rhythm, and a queue that is full now and then.
fn config(url: &str) -> Config {
    Config {
        push_every: Duration::from_millis(4),
        request_timeout: Duration::from_millis(150),
        max_batch: 60,
        max_queue: 200,
        ..usual(url)
    }
}

fn look(order: &str) -> (Moment, Vec<Allocation>) {
    let mut words = order.split(' ').skip(1);
    let at = Moment::from_millis(words.next().unwrap().parse().unwrap());
    let vms = words.map(|word| {
        let [vm, endpoint, cpu] = word.split(':').collect::<Vec<_>>()[..] else { panic!("{word}") };
        Allocation {
            vm: VmName::on_host(vm),
            endpoint: Endpoint::try_from(endpoint.to_owned()).unwrap(),
            cpu: MilliCpu::from_milli(cpu.parse().unwrap()),
        }
    });
    (at, vms.collect())
}
