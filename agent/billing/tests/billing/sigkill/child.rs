//! The process that bills and is killed, and how it is spoken to.

use crate::config::usual;
use crate::folder::Folder;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use windlass_agent_billing::{Allocation, Billing, Config, Endpoint, Metrics, Source};
use windlass_kit::tasks::Tasks;
use windlass_protocol::{MilliCpu, Moment, VmName};

/// Where the process finds its usage log and its receiver; without it, it does nothing.
const PLACE: &str = "WINDLASS_TEST_BILLING";

/// What the process says when something is done, among what the test harness says.
const DONE: &str = "@done";

/// A process that bills.
pub(crate) struct Child {
    process: std::process::Child,
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

// === impl Child ===

impl Child {
    pub(crate) fn start(folder: &Folder, url: &str) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args([
                "sigkill::the_process_that_is_killed",
                "--exact",
                "--nocapture",
                "--test-threads=1",
            ])
            .env(PLACE, format!("{} {url}", folder.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let orders = process.stdin.take().unwrap();
        let answers = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, orders, answers }
    }

    pub(crate) fn tell(&mut self, order: &str) {
        self.orders.write_all(format!("{order}\n").as_bytes()).unwrap();
    }

    /// Waits until the last order is carried out.
    pub(crate) fn answered(&mut self) {
        let said = self.answers.by_ref().map_while(Result::ok).find(|line| line.ends_with(DONE));
        assert!(said.is_some(), "the process ended by itself");
    }

    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
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
            while finish(&billing, now).await > 0 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
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
