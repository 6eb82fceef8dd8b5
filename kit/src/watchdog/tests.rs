//! Parts that turn, hang and come back, in turns of the watchdog and under a paused clock.

use super::*;
use prometheus_client::encoding::text::encode;
use std::os::unix::net::UnixDatagram;
use tokio::time::sleep;

#[test]
fn a_part_hangs_after_ten_turns_without_its_own_and_is_said_once() {
    let mut turns = Turns::default();
    let (controller, vm) = (turns.add("controller".to_owned()), turns.add("vm db1".to_owned()));
    turns.turned(vm, "the hypervisor");
    let mut said = Vec::new();
    for _ in 0..40 {
        turns.turned(controller, "orders");
        said.extend(turns.turn());
    }
    let hanging = Hanging { part: "vm db1".to_owned(), waits_for: "the hypervisor" };
    assert_eq!(said, [Word::Hangs(hanging.clone())]);
    assert_eq!(turns.hanging(), [hanging]);
    turns.turned(vm, "the hypervisor");
    assert_eq!(turns.turn(), [Word::Back("vm db1".to_owned())]);
    assert_eq!((turns.turn(), turns.hanging()), (vec![], vec![]));
}

#[test]
fn the_tenth_turn_is_the_first_that_hangs() {
    let mut turns = Turns::default();
    let part = turns.add("controller".to_owned());
    turns.turned(part, "orders");
    // The first turn of the watchdog sees the part's.
    assert_eq!((0..10).flat_map(|_| turns.turn()).count(), 0);
    turns.at(part, "a look at the files");
    let hanging = Hanging { part: "controller".to_owned(), waits_for: "a look at the files" };
    assert_eq!(turns.turn(), [Word::Hangs(hanging)]);
}

#[tokio::test(start_paused = true)]
async fn a_process_that_was_stopped_raises_no_alarm() {
    let (watchdog, stop) = (Watchdog::default(), CancellationToken::new());
    let pulse = watchdog.watch("controller");
    let running =
        tokio::task::JoinSet::from_iter([watchdog.clone().run(Notify::default(), stop.clone())]);
    for _ in 0..3 {
        pulse.turn("orders");
        sleep(TURN).await;
        // Nothing runs for an hour, the watchdog as little as the part.
        tokio::time::advance(Duration::from_secs(3600)).await;
    }
    sleep(TURN * 5).await;
    assert_eq!(watchdog.hanging(), []);
    sleep(TURN * 10).await;
    assert_eq!(watchdog.hanging().len(), 1, "then it hangs");
    stop.cancel();
    running.join_all().await;
}

#[tokio::test(start_paused = true)]
async fn a_part_that_rests_for_long_is_alive() {
    let (watchdog, stop) = (Watchdog::default(), CancellationToken::new());
    let pulse = watchdog.watch("audit");
    let running =
        tokio::task::JoinSet::from_iter([watchdog.clone().run(Notify::default(), stop.clone())]);
    let rests = async { pulse.rest("the next look", TURN * 15, &stop).await };
    let looks = async {
        for _ in 0..14 {
            sleep(TURN).await;
            assert_eq!(watchdog.hanging(), []);
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        goes_on = rests => assert!(goes_on),
        () = looks => {}
    }
    sleep(TURN * 12).await;
    assert_eq!(watchdog.hanging().len(), 1, "it has not rested since");
    stop.cancel();
    running.join_all().await;
}

#[tokio::test(start_paused = true)]
async fn systemd_hears_that_the_process_is_alive_while_nothing_hangs() {
    let folder = windlass_testkit::Folder::create().unwrap();
    let path = folder.at("notify.sock");
    let systemd = UnixDatagram::bind(&path).unwrap();
    systemd.set_nonblocking(true).unwrap();
    let heard = || {
        let mut word = [0; 20];
        let mut words = Vec::new();
        while let Ok(length) = systemd.recv(&mut word) {
            words.push(String::from_utf8(word[..length].to_vec()).unwrap());
        }
        words
    };
    let (watchdog, stop) = (Watchdog::default(), CancellationToken::new());
    let pulse = watchdog.watch("controller");
    let notify = Notify::to(path.into());
    let running = tokio::task::JoinSet::from_iter([watchdog.clone().run(notify, stop.clone())]);
    sleep(TURN * 5).await;
    assert!(heard().len() >= 4);
    sleep(TURN * 10).await;
    heard();
    sleep(TURN * 5).await;
    assert_eq!((heard(), watchdog.hanging.get()), (vec![], 1), "it hangs");
    let (mut registry, mut text) = (Registry::default(), String::new());
    watchdog.register(&mut registry);
    encode(&mut text, &registry).unwrap();
    for line in ["windlass_hanging_parts 1", "windlass_hangs_total 1"] {
        assert!(text.lines().any(|has| has == line), "{line} in {text}");
    }
    pulse.turn("orders");
    sleep(TURN * 2).await;
    assert!(!heard().is_empty(), "it turns again");
    // A part that ended hangs no more.
    sleep(TURN * 20).await;
    drop(pulse);
    assert_eq!((watchdog.hanging(), watchdog.hangs.get()), (vec![], 2));
    stop.cancel();
    running.join_all().await;
    assert_eq!(heard().last().map(String::as_str), Some("STOPPING=1"));
}
