//! What orders are answered with, and what is said of their VMs from then on.

use super::stage::{FakeDisk, START, Stage, Vms, wait};
use serde_json::{Value, json};
use windlass_protocol::{
    Bytes, Decision, LoadWindow, MilliCpu, Moment, Outcome, Reason, Resources, Seen, Signal,
    Signals, Target, VmName,
};

/// What its file says of a VM that is acted on without an informant: its figures come from elsewhere.
const ACTED_ON: &str = "metrics = \"255.255.255.255:9\"";

#[tokio::test(start_paused = true)]
async fn an_order_says_what_it_changed() {
    let (disk, vms) = (FakeDisk::default(), Vms::default());
    vms.add(&disk, "db1");
    let stage = Stage::start(&disk, &vms).await;
    wait(5).await;
    let until = "{\"until\":\"2026-11-21T12:00:00Z\"}";
    for (order, body, words, changed) in [
        ("freeze", "", "frozen: no VM changes its size until `windlass thaw`", true),
        ("freeze", "", "it was frozen already", false),
        ("thaw", "", "thawed: VMs follow their load again", true),
        ("thaw", "", "it was not frozen", false),
        ("vm/db1/resume", "", "db1 was neither paused nor released", false),
        ("vm/db1/pause", until, "db1 keeps its size until 2026-11-21T12:00:00Z", true),
        ("vm/db1/resume", "", "db1 follows its load again", true),
        ("vm/db1/release", "{}", "db1 is about to be let go with the size it has", true),
        ("vm/db1/resume", "", "db1 follows its load again", true),
    ] {
        let (status, answer) = stage.ask("POST", &format!("/v1/{order}"), body).await;
        let due = json!({ "message": words, "changed": changed });
        assert_eq!((status, answer), (200, due), "{order}");
    }
    assert_eq!(stage.get("/v1/state").await["ordered"]["what"], "thaw");
    for (until, words) in [
        ("2026-11-21T12:00:00Z", "db1 is paused by its file until 2026-11-21T12:00:00Z"),
        ("2026-11-20T12:00:00Z", "db1 was neither paused nor released"),
    ] {
        let bounds = "{\"min\":{\"cpu\":1,\"mem\":\"1Gi\"},\"max\":{\"cpu\":4,\"mem\":\"4Gi\"}}";
        let file = format!(
            "qmp = \"/fake/db1.sock\"\ninformant = \"127.0.0.1:20000\"\n[annotations]\n\
             \"autoscaling.neon.tech/bounds\" = '{bounds}'\n\
             \"windlass.dev/paused-until\" = \"{until}\"\n"
        );
        disk.papers().files.insert("db1".to_owned(), file);
        wait(2).await;
        let (status, answer) = stage.ask("POST", "/v1/vm/db1/resume", "").await;
        let due = json!({ "message": words, "changed": false });
        assert_eq!((status, answer), (200, due));
    }
    stage.end().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_release_to_a_size_is_under_way_until_the_vm_has_it() {
    let (disk, vms) = (FakeDisk::default(), Vms::default());
    let (db1, db2) = (vms.add(&disk, "db1"), vms.add(&disk, "db2"));
    db2.set_seen(Seen { plugged: MilliCpu::from_cores(2), ..db2.seen() });
    disk.put("db1", ACTED_ON);
    let stage = Stage::start(&disk, &vms).await;
    wait(5).await;
    db1.hold_commands();
    // As much as its file allows it, and not more.
    let most = "{\"cpu\":4000,\"mem\":4294967296}";
    let (status, answer) = stage.ask("POST", "/v1/vm/db1/release", most).await;
    let words = "db1 is brought to 4 vCPU / 4GiB, and then let go";
    assert_eq!((status, answer["message"].as_str()), (200, Some(words)), "{answer}");
    assert_eq!(listed(&stage).await, ["db1 releasing 1", "db2 managed 2"]);
    let release = stage.get("/v1/vm/db1/release").await;
    assert_eq!(release["state"], "under-way", "{release}");
    assert_eq!(release["status"]["name"]["name"], "db1", "{release}");
    let (status, answer) = stage.ask("POST", "/v1/vm/db1/release", "{}").await;
    let words = "db1 is being released already; `windlass resume db1` ends that";
    assert_eq!((status, answer["message"].as_str()), (409, Some(words)));
    db1.let_go();
    // Nothing answers where its informant should be, so the agent acts alone after a while.
    wait(60).await;
    let release = stage.get("/v1/vm/db1/release").await;
    assert_eq!(release["state"], "done", "{release}");
    let (cpu, mem) = (MilliCpu::from_cores(4), Bytes::from_gib(4));
    assert_eq!(db1.seen().upper(), Resources { cpu, mem });
    assert_eq!(listed(&stage).await, ["db1 released 4", "db2 managed 2"]);
    stage.end().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_release_that_has_to_wait_for_others_says_what_is_free() {
    let (disk, vms) = (FakeDisk::default(), Vms::default());
    vms.add(&disk, "db1");
    disk.put("db1", ACTED_ON);
    for silent in ["s1", "s2"] {
        vms.add(&disk, silent).hold();
    }
    let stage = Stage::start(&disk, &vms).await;
    wait(5).await;
    let (_, answer) = stage.ask("POST", "/v1/vm/db1/release", "{\"cpu\":2000}").await;
    let words = "db1 is brought to 2 vCPU / 1GiB, and then let go; of the node's room \
                 0 vCPU / 0B are free now, so it waits for what others give back";
    assert_eq!(answer["message"], words);
    stage.end().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_vm_whose_file_broke_while_the_host_was_gone_is_listed_once() {
    let (disk, vms) = (FakeDisk::default(), Vms::default());
    vms.add(&disk, "db1");
    let stage = Stage::start(&disk, &vms).await;
    wait(5).await;
    stage.end().await.unwrap();
    disk.papers().files.insert("db1".to_owned(), "qmp = 1\n".to_owned());
    let stage = Stage::start(&disk, &vms).await;
    wait(5).await;
    assert_eq!(listed(&stage).await, ["db1 invalid 1"]);
    stage.end().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn of_a_removed_vm_the_last_order_is_known_and_of_a_forgotten_one_its_history() {
    let (disk, vms) = (FakeDisk::default(), Vms::default());
    let db1 = vms.add(&disk, "db1");
    vms.add(&disk, "db2");
    let stage = Stage::start(&disk, &vms).await;
    wait(5).await;
    assert_eq!(stage.pause("db1").await.0, 200);
    let much = Resources::new(MilliCpu::from_cores(90), Bytes::from_gib(1));
    let name = VmName::on_host("db1");
    stage.books.with_books(|books| books.request(stage.clock.now(), &name, much)).unwrap();
    wait(5).await;
    disk.papers().files.remove("db1");
    wait(5).await;
    assert_eq!(listed(&stage).await, ["db1 removed 1", "db2 managed 1"]);
    assert_eq!(stage.get("/v1/vms").await[0]["ordered"]["what"], "pause");
    db1.end();
    wait(15).await;
    assert_eq!(listed(&stage).await, ["db2 managed 1"]);
    let said = stage.get("/v1/explain/db1").await;
    assert_eq!((said["notes"].as_array().unwrap().len(), &said["state"]), (1, &Value::Null));
    assert_eq!(stage.ask("GET", "/v1/explain/db3", "").await.0, 404);
    stage.end().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_explanation_is_of_one_vm_and_of_the_minutes_that_are_asked_for() {
    let (disk, vms) = (FakeDisk::default(), Vms::default());
    for vm in ["db1", "db2"] {
        vms.add(&disk, vm);
    }
    vms.absent(&disk, "large");
    let before = |minutes: u64| Moment::from_millis(START.millis() - minutes * 60_000);
    {
        let mut papers = disk.papers();
        // With it the minima are more than the node has.
        let large = papers.files["large"].replace("cpu = 1\n", "cpu = 7\n");
        papers.files.insert("large".to_owned(), large.replace("cpu = 4\n", "cpu = 8\n"));
        papers.files.insert("wrong".to_owned(), "min = ?".to_owned());
        papers.decisions = [40, 5].map(|minutes| decision("db1", before(minutes))).to_vec();
    }
    let stage = Stage::start(&disk, &vms).await;
    wait(5).await;
    for (query, decisions) in [("", 2), ("?minutes=50", 2), ("?minutes=10", 1), ("?minutes=1", 0)] {
        let said = stage.get(&format!("/v1/explain/db1{query}")).await;
        assert_eq!(said["decisions"].as_array().unwrap().len(), decisions, "{query}");
    }
    for (vm, state, problems) in
        [("db1", "managed", &["node: "][..]), ("wrong", "invalid", &["node: ", "/etc/windlass"])]
    {
        let said = stage.get(&format!("/v1/explain/{vm}")).await;
        let known = said["problems"].as_array().unwrap();
        let begins = |(problem, with): (&Value, &&str)| problem.as_str().unwrap().starts_with(with);
        assert!(known.len() == problems.len(), "{vm}: {known:?}");
        assert!(known.iter().zip(problems).all(begins), "{vm}: {known:?}");
        assert_eq!(said["state"], state);
        let named = said["status"]["name"]["name"].as_str();
        assert_eq!(named, (vm == "db1").then_some(vm));
    }
    stage.end().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_was_found_at_a_monitor_is_forgotten_with_it() {
    let (disk, vms) = (FakeDisk::default(), Vms::default());
    let vm = vms.absent(&disk, "db1");
    let stage = Stage::start(&disk, &vms).await;
    wait(5).await;
    assert_eq!(stage.ask("GET", "/v1/vm/db1/findings", "").await.0, 200);
    // What is there now says nothing.
    vm.set_taken(false);
    vm.hold();
    let moved = disk.papers().files["db1"].replace("/fake/db1.sock", "/fake/moved.sock");
    disk.papers().files.insert("db1".to_owned(), moved);
    wait(2).await;
    let (status, answer) = stage.ask("GET", "/v1/vm/db1/findings", "").await;
    let words = "the monitor of db1 is being asked; try again in a few seconds";
    assert_eq!((status, answer["message"].as_str()), (409, Some(words)));
    assert_eq!(stage.ask("GET", "/v1/vm/db2/findings", "").await.0, 404);
    stage.end().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_released_vm_whose_file_went_while_no_host_ran_is_removed() {
    let (disk, vms) = (FakeDisk::default(), Vms::default());
    for vm in ["db1", "db2"] {
        vms.add(&disk, vm);
    }
    let stage = Stage::start(&disk, &vms).await;
    wait(5).await;
    for vm in ["db1", "db2"] {
        let path = format!("/v1/vm/{vm}/release");
        assert_eq!(stage.ask("POST", &path, "{}").await.0, 200);
    }
    wait(5).await;
    stage.end().await.unwrap();
    disk.papers().files.remove("db1");
    let stage = Stage::start(&disk, &vms).await;
    // Each counts with what it was last seen to have, and not with its maximum.
    assert_eq!((stage.booked("db1").await, stage.booked("db2").await), (Some(1), Some(1)));
    let (status, answer) = stage.ask("POST", "/v1/vm/db1/resume", "").await;
    let words = "db1 was removed; what it has stays reserved until its QEMU ends";
    assert_eq!((status, answer["message"].as_str()), (404, Some(words)));
    stage.end().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_file_is_checked_as_that_of_its_own_vm() {
    let (disk, vms) = (FakeDisk::default(), Vms::default());
    for vm in ["db1", "db2"] {
        vms.add(&disk, vm);
    }
    let stage = Stage::start(&disk, &vms).await;
    wait(5).await;
    let text = disk.papers().files["db1"].clone();
    let check = json!({ "name": "db1", "text": text }).to_string();
    let (status, answer) = stage.ask("POST", "/v1/check", &check).await;
    let absent = json!({
        "field": "qmp", "value": "/fake/db1.sock",
        "limit": "is not there (yet); the VM is managed once it is",
    });
    let due = json!({
        "problems": [], "warnings": [absent], "path": "/etc/windlass/vms.d/db1.toml",
        "exists": true, "released": false,
    });
    assert_eq!((status, answer), (200, due));
    stage.end().await.unwrap();
}

/// A line for each VM: its state, and how many vCPUs it has.
async fn listed(stage: &Stage) -> Vec<String> {
    let list = stage.get("/v1/vms").await;
    let line = |entry: &Value| {
        let vcpus = entry["size"]["cpu"].as_u64().unwrap_or_default() / 1000;
        let name = entry["name"]["name"].as_str().unwrap();
        format!("{name} {} {vcpus}", entry["state"].as_str().unwrap())
    };
    list.as_array().unwrap().iter().map(line).collect()
}

/// One that was reached at once.
fn decision(vm: &str, at: Moment) -> Decision {
    let size = |cpus| Resources::new(MilliCpu::from_cores(cpus), Bytes::from_gib(cpus));
    Decision {
        at,
        vm: VmName::on_host(vm),
        from: size(1),
        signals: Signals::default(),
        window: LoadWindow::FifteenSeconds,
        target: Target::default(),
        goal: size(2),
        reason: Reason { signal: Signal::Load, cpu: None, mem: None },
        permit: None,
        consent: None,
        short: None,
        refusal: None,
        changes: Vec::new(),
        outcome: Outcome::Reached { at },
    }
}
