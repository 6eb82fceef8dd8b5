//! The usage log on disk: what a crash, another process, another release or a full disk does to them.

use crate::config::usual;
use crate::receiver::{Fate, Receiver};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use windlass_agent_billing::{Allocation, Billing, Config, Endpoint, Metrics, OpenError, Source};
use windlass_kit::tasks::Tasks;
use windlass_protocol::{MilliCpu, Moment, VmName};
use windlass_testkit::Folder;
use windlass_testkit::wait::until_some;

const GRACE: Duration = Duration::from_secs(30);

/// 2023-07-12T10:00:00Z.
const TEN: u64 = 1_689_156_000_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_looked_at_survives_the_process_that_looked() {
    let (folder, receiver) = (Folder::create().unwrap(), receiver());
    for seconds in [0, 4, 8] {
        // Each in a process of its own, that ends without a word.
        let billing = open(&folder, &receiver);
        billing.look(at(seconds), vms(&["a"])).await;
    }
    let billing = open(&folder, &receiver);
    billing.close(at(9)).await;
    sent(billing).await;
    assert_eq!(active(&receiver), [("ep-a".to_owned(), 8)].into());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_that_was_not_finished_is_passed_over() {
    let (folder, receiver) = (Folder::create().unwrap(), receiver());
    let billing = open(&folder, &receiver);
    billing.look(at(0), vms(&["a"])).await;
    billing.look(at(10), vms(&["a"])).await;
    drop(billing);
    let whole = fs::read(log(&folder)).unwrap();
    let lines: Vec<usize> = (0..whole.len()).filter(|end| whole[*end] == b'\n').collect();
    // The last line is cut everywhere, also where nothing or a line break is left of it; or it is
    // as long as it was and holds something else.
    let before = lines[lines.len() - 2] + 1;
    let mut torn: Vec<Vec<u8>> = (before..whole.len()).map(|end| whole[..end].to_vec()).collect();
    torn.push([&whole[..before], &vec![0; whole.len() - before]].concat());
    torn.push([&whole[..before], b"\n".as_slice()].concat());
    for bytes in torn {
        fs::write(log(&folder), &bytes).unwrap();
        let billing = open(&folder, &receiver);
        assert!(!folder.at("billing/usage.log.damaged").exists(), "{} bytes", bytes.len());
        drop(billing);
        // As if nothing had been looked at since, and readable.
        let left = fs::read_to_string(log(&folder)).unwrap();
        assert!(left.contains(&format!("\"looked\":{TEN}")), "{left}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_log_is_put_aside_once_and_nothing_has_an_old_key() {
    let (folder, receiver) = (Folder::create().unwrap(), receiver());
    for turn in [0, 1] {
        let billing = opened(|| try_open(&folder, &receiver, turn)).unwrap();
        for seconds in [0, 10, 20, 30] {
            billing.look(at(seconds), vms(&["a"])).await;
        }
        sent(billing).await;
        assert_eq!(active(&receiver), [("ep-a".to_owned(), 30 * (turn + 1))].into());
        let mut bytes = fs::read(log(&folder)).unwrap();
        let middle = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 40;
        bytes[middle] ^= 1;
        fs::write(log(&folder), bytes).unwrap();
    }
    let why = opened(|| try_open(&folder, &receiver, 2)).unwrap_err().to_string();
    assert!(why.contains("usage.log: damaged, and") && why.contains("move both away"), "{why}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_of_a_later_release_and_of_another_process_is_left_alone() {
    let (folder, receiver) = (Folder::create().unwrap(), receiver());
    let billing = open(&folder, &receiver);
    let why = try_open(&folder, &receiver, 0).unwrap_err();
    assert!(matches!(why, OpenError::Taken { .. }), "{why}");
    drop(billing);
    let json = br#"{"version":2,"ledger":[]}"#;
    let line = format!("{:08x} {}\n", crc32(json), String::from_utf8_lossy(json));
    fs::write(log(&folder), &line).unwrap();
    let why = try_open(&folder, &receiver, 0).unwrap_err().to_string();
    assert!(
        why.ends_with("written by a later release, in form 2; this one reads up to 1"),
        "{why}"
    );
    assert_eq!(fs::read_to_string(log(&folder)).unwrap(), line);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_disk_did_not_take_is_not_sent_and_is_not_lost() {
    let (folder, receiver) = (Folder::create().unwrap(), receiver());
    let billing = open(&folder, &receiver);
    billing.look(at(0), vms(&["a"])).await;
    // The next whole writing meets a full disk; it is due after a megabyte of lines.
    let beside = folder.at("billing/usage.log.new");
    symlink("/dev/full", &beside).unwrap();
    let crowd: Vec<String> = (0..1_000).map(|vm| format!("crowd-{vm}")).collect();
    let crowd: Vec<&str> = crowd.iter().map(String::as_str).collect();
    for _ in 0..40 {
        billing.look(at(1), vms(&crowd)).await;
    }
    billing.look(at(2), vms(&["a"])).await;
    billing.look(at(32), vms(&["a"])).await;
    assert_eq!(billing.waiting().await, 2, "in memory the window has ended");
    let tasks = Tasks::default();
    let stop = tasks.stopping();
    billing.send(&tasks, stop);
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(receiver.counted().traces, Vec::<String>::new(), "nothing was sent");
    fs::remove_file(beside).unwrap();
    billing.look(at(33), vms(&["a"])).await;
    receiver.wait_until(|counted| counted.events.len() == 2);
    tasks.drain(GRACE).await.unwrap();
    assert_eq!(active(&receiver), [("ep-a".to_owned(), 30)].into());
    drop(billing);
    let billing = open(&folder, &receiver);
    billing.close(at(33)).await;
    sent(billing).await;
    assert_eq!(active(&receiver), [("ep-a".to_owned(), 31)].into(), "all is on disk again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_file_is_bounded_whatever_happens_in_it() {
    let (folder, receiver) = (Folder::create().unwrap(), receiver());
    let billing = open(&folder, &receiver);
    let names: Vec<String> = (0..300).map(|vm| format!("vm-{vm}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut longest = 0;
    for second in 0..150 {
        billing.look(at(second), vms(&names)).await;
        longest = longest.max(fs::metadata(log(&folder)).unwrap().len());
    }
    assert!((1 << 20..3 << 20).contains(&longest), "{longest} bytes");
    assert_eq!(billing.waiting().await, 600, "no more than the queue may hold");
}

/// Sends everything that waits.
async fn sent(billing: Billing) {
    let tasks = Tasks::default();
    let closed = CancellationToken::new();
    closed.cancel();
    billing.send(&tasks, closed);
    tasks.drain(GRACE).await.unwrap();
    assert_eq!(billing.waiting().await, 0);
}

fn receiver() -> Receiver {
    Receiver::start(Box::new(|| Fate::Answered))
}

/// Opens what this process may still be letting go of: work on the disk is not cut off.
fn open(folder: &Folder, receiver: &Receiver) -> Billing {
    opened(|| try_open(folder, receiver, 0)).unwrap()
}

fn opened(open: impl Fn() -> Result<Billing, OpenError>) -> Result<Billing, OpenError> {
    until_some("the folder is let go of", || match open() {
        Err(OpenError::Taken { .. }) => None,
        opened => Some(opened),
    })
}

fn try_open(folder: &Folder, receiver: &Receiver, since: u64) -> Result<Billing, OpenError> {
    let config =
        Config { max_queue: 600, push_every: Duration::from_millis(5), ..usual(&receiver.url()) };
    let source = Source::try_from("node-1".to_owned()).unwrap();
    let since = Moment::from_millis(TEN + since);
    Billing::open(config, &folder.at("billing"), source, since, Metrics::default())
}

fn active(receiver: &Receiver) -> BTreeMap<String, u64> {
    assert_eq!(receiver.counted().wrong, Vec::<String>::new());
    let sums = receiver.sums().into_iter();
    let active = sums.filter(|((_, metric), _)| metric == "active_time_seconds");
    active.map(|((endpoint, _), sum)| (endpoint, sum)).collect()
}

fn vms(names: &[&str]) -> Vec<Allocation> {
    let vm = |name: &&str| Allocation {
        vm: VmName::on_host(*name),
        endpoint: Endpoint::try_from(format!("ep-{name}")).unwrap(),
        cpu: MilliCpu::from_cores(1),
    };
    names.iter().map(vm).collect()
}

fn at(seconds: u64) -> Moment {
    Moment::from_millis(TEN + seconds * 1_000)
}

fn log(folder: &Folder) -> std::path::PathBuf {
    folder.at("billing/usage.log")
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |sum: u32, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            (sum >> 1) ^ (0xedb8_8320 & (sum & 1).wrapping_neg())
        })
    })
}
