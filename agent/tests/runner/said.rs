//! What a person is told: once when it begins, and once when it ends.

use super::guest::Manner;
use super::node::{Node, Vm, size};
use super::plugin::Answers;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use windlass_protocol::PluginVersion;
use windlass_testkit::log::Log;

/// Who falls silent: how, what is said of it, and how it ends.
type Silence = (fn(&Vm), [&'static str; 2], fn(&Vm));

const SILENCES: [Silence; 4] = [
    (
        |vm| {
            vm.fake.set_taken(true);
            vm.fake.hang_up();
        },
        ["WARN hypervisor not answering; it is asked again", "INFO hypervisor answers again"],
        |vm| vm.fake.set_taken(false),
    ),
    (
        |vm| vm.guest.state().metrics = Manner::Stalls,
        [
            "WARN no metrics from the guest; they are asked for again",
            "INFO metrics from the guest again",
        ],
        |vm| vm.guest.state().metrics = Manner::Works,
    ),
    (|vm| vm.guest.state().informant = Manner::Stalls, SESSION, informant_works),
    (|vm| vm.guest.state().informant = Manner::Refuses(404), SESSION, informant_works),
];

const SESSION: [&str; 2] = [
    "INFO session with the informant lost; another is asked for",
    "INFO session with the informant again",
];

fn informant_works(vm: &Vm) {
    vm.guest.state().informant = Manner::Works;
}

const TAKES_NO_VERSION: &str =
    "WARN plugin takes no version that this agent speaks; no vm grows beyond its permit";

#[tokio::test(start_paused = true)]
async fn a_silence_that_lasts_is_said_once_and_so_is_its_end() {
    for (begins, [silent, back], ends) in SILENCES {
        let node = Node::start();
        let log = Log::kept();
        let vm = node.add("a").await;
        node.grow(&vm).await;
        node.pass(120).await;
        assert_eq!((log.count(silent), log.count(back)), (0, 0), "{silent}");
        begins(&vm);
        node.pass(180).await;
        assert_eq!((log.count(silent), log.count(back)), (1, 0), "{silent}");
        ends(&vm);
        node.pass(60).await;
        assert_eq!((log.count(silent), log.count(back)), (1, 1), "{silent}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_plugin_that_denies_the_agent_is_said_once_and_so_is_its_end() {
    let node = Node::start();
    let log = Log::kept();
    let vm = node.add("a").await;
    node.grow(&vm).await;
    let denied = "WARN plugin denies this agent; no vm grows beyond its permit";
    let said = || (log.count(denied), log.count("INFO plugin answers this agent again"));
    node.plugin.set(Answers::Refuses(404));
    node.pass(60).await;
    assert_eq!(said(), (0, 0), "a VM that is not known is another matter");
    for status in [401, 503, 403] {
        node.plugin.set(Answers::Refuses(status));
        node.pass(60).await;
    }
    assert_eq!(said(), (1, 0));
    node.plugin.set(Answers::Works);
    node.pass(60).await;
    assert_eq!(said(), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_plugin_that_grants_nothing_for_now_is_said_once_and_so_is_its_end() {
    let node = Node::start();
    let log = Log::kept();
    let vm = node.add("a").await;
    node.grow(&vm).await;
    let silent = "WARN plugin does not answer; no vm grows beyond its permit";
    let said = || (log.count(silent), log.count("INFO plugin answers again"));
    node.plugin.set(Answers::Refuses(503));
    node.pass(60).await;
    assert_eq!(said(), (1, 0));
    node.plugin.set(Answers::Works);
    node.pass(60).await;
    assert_eq!(said(), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn an_informant_that_no_local_address_leads_to_is_said_once() {
    let node = Node::start();
    let log = Log::kept();
    let mut vm = Vm::new("a").await;
    // The kernel lets a socket send to the broadcast address only where the socket asks for that.
    vm.file.informant = "255.255.255.255:10301".parse().unwrap();
    vm.file.advertise = None;
    node.manage(&vm);
    node.pass(60).await;
    assert_eq!(log.count("WARN no local address leads to the informant"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_plugin_that_takes_an_older_version_is_no_news() {
    let node = Node::start();
    let log = Log::kept();
    node.plugin.set(Answers::Takes(PluginVersion::V3_0));
    let vm = node.add("a").await;
    node.grow(&vm).await;
    assert_eq!(log.count(TAKES_NO_VERSION), 0);
}

#[tokio::test(start_paused = true)]
async fn a_plugin_that_takes_no_version_is_said_once() {
    let node = Node::start();
    let log = Log::kept();
    node.plugin.set(Answers::Takes(PluginVersion::from_number(99)));
    node.add("a").await;
    node.pass(60).await;
    assert_eq!(log.count(TAKES_NO_VERSION), 1);
}

#[tokio::test(start_paused = true)]
async fn the_plugin_is_told_the_load_of_now_and_none_of_long_ago() {
    let node = Node::start();
    let vm = node.add("a").await;
    node.grow(&vm).await;
    node.until("it is told", || node.plugin.load(&vm.name) == Some(3.4)).await;
    vm.guest.state().metrics = Manner::Stalls;
    node.pass(5).await;
    assert_eq!(node.plugin.load(&vm.name), Some(3.4));
    node.until("it is old", || node.plugin.load(&vm.name).is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn a_vm_that_grows_again_and_again_is_counted_and_said_once_until_it_rests() {
    let node = Node::start();
    let log = Log::kept();
    let flapping = || {
        let (mut registry, mut text) = (Registry::default(), String::new());
        node.agent.metrics().register(&mut registry);
        encode(&mut text, &registry).unwrap();
        let count = text.lines().find_map(|line| line.strip_prefix("windlass_agent_vms_flapping "));
        count.unwrap().to_owned()
    };
    let says =
        "WARN flapping: it grew soon after it shrank, again and again; it is kept for longer";
    let mut vm = Vm::new("a").await;
    let short = std::time::Duration::from_secs(1);
    vm.file.info.scale_down.cpu = short;
    vm.file.info.scale_down.memory = short;
    node.manage(&vm);
    node.grow(&vm).await;
    for _ in 0..6 {
        vm.guest.state().load = 0.1;
        node.until_has(&vm, size(1, 256)).await;
        assert_eq!((flapping().as_str(), log.count(says)), ("0", 0));
        node.grow(&vm).await;
    }
    vm.guest.state().load = 0.1;
    node.until_has(&vm, size(1, 256)).await;
    node.grow(&vm).await;
    node.until("it flaps", || flapping() == "1").await;
    node.pass(7_200).await;
    assert_eq!((flapping().as_str(), log.count(says)), ("0", 1));
    assert_eq!(log.count("INFO no longer flapping"), 1);
}
