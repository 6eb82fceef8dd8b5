//! VM files: what the good ones mean, and what is said about broken ones.
#![expect(clippy::unwrap_used, reason = "tests")]

mod broken;

use broken::{BROKEN, BROKEN_ANNOTATIONS};
use std::path::Path;
use std::time::Duration;
use windlass_protocol::config::Node;
use windlass_protocol::vm_file::{VM, VmFile};
use windlass_protocol::{
    Bounds, Bytes, CpuLimit, LoadWindow, MilliCpu, Mode, Moment, Policy, Resources, ScaleDown,
    Target, Usual,
};

const GOOD: &str = r#"
qmp = "/run/vms/db1/qmp.sock"
informant = "127.0.0.2:10301"
[min]
cpu = 1
memory = "512MiB"
[max]
cpu = 4
memory = "4GiB"
"#;

const ANNOTATED: &str = r#"
qmp = "/run/vms/db1/qmp.sock"
informant = "127.0.0.2:10301"
[annotations]
"autoscaling.neon.tech/bounds" = '{"min":{"cpu":"250m","mem":"1Gi"},"max":{"cpu":1,"mem":"4Gi"}}'
"#;

#[test]
fn what_is_absent_takes_its_default() {
    let file = read(GOOD).unwrap();
    assert_eq!(file.info.name.to_string(), "default/db1");
    assert_eq!(file.qmp, Path::new("/run/vms/db1/qmp.sock"));
    assert_eq!(file.informant, "127.0.0.2:10301".parse().unwrap());
    assert_eq!((file.advertise, file.metrics, file.vcpu_removal), (None, None, false));
    let bounds = Bounds { min: size(1000, 512), max: size(4000, 4096) };
    assert_eq!(file.info.bounds, bounds);
    assert_eq!(file.info.target, Target { load_average: 0.9, memory: 0.75 });
    assert_eq!(file.info.policy, Policy::LoadAverage);
    assert_eq!(file.info.load_window, LoadWindow::FifteenSeconds);
    assert_eq!((file.info.priority, file.info.mode), (0, Mode::Act));
    assert_eq!(file.info.memory_slot, Bytes::from_mib(128));
    assert_eq!(file.info.paused_until, None);
    assert_eq!(file.info.scale_down, keeps(60, 60));
    assert_eq!(file.info.cpu_limit, None);
}

#[test]
fn the_cpu_is_limited_as_the_file_says_also_beside_annotations() {
    for (word, limit) in
        [("cgroup", CpuLimit::Cgroup), ("trust", CpuLimit::Trust), ("none", CpuLimit::None)]
    {
        for file in [GOOD, ANNOTATED] {
            let info = read(&format!("cpu_limit = \"{word}\"{file}")).unwrap().info;
            assert_eq!(info.cpu_limit, Some(limit), "{file}");
            assert_eq!(limit.to_string(), word);
        }
    }
}

#[test]
fn how_long_a_vm_keeps_what_it_does_not_need_is_said_per_axis() {
    let ours = "\n[annotations]\n\"windlass.dev/bounds\" = \
                '{\"min\":{\"cpu\":1,\"mem\":\"1Gi\"},\"max\":{\"cpu\":2,\"mem\":\"4Gi\"}}'\n";
    let bare = "qmp = \"/q\"\ninformant = \"127.0.0.2:1\"\n";
    let config = "\"windlass.dev/config\" = '{\"scaleDown\":{\"memory\":\"2m\"}}'\n";
    for (text, scale_down) in [
        (format!("{GOOD}[scale_down]\ncpu = 0\n"), keeps(0, 60)),
        (format!("{GOOD}[scale_down]\ncpu = \"90s\"\nmemory = \"5m\"\n"), keeps(90, 300)),
        (format!("{GOOD}[scale_down]\nmemory = \"1h\"\n"), keeps(60, 3600)),
        (ANNOTATED.to_owned(), keeps(0, 0)),
        (format!("{bare}{ours}"), keeps(60, 60)),
        (format!("{bare}{ours}{config}"), keeps(60, 120)),
        (format!("{bare}scale_down.cpu = \"9s\"\n{ours}{config}"), keeps(9, 120)),
    ] {
        assert_eq!(read(&text).unwrap().info.scale_down, scale_down, "{text}");
    }
    for (text, wrong) in [
        (format!("{GOOD}[scale_down]\ncpu = \"2h\"\n"), "scale_down.cpu"),
        (format!("{GOOD}[scale_down]\ncpu = -1\n"), "scale_down.cpu"),
        (format!("{GOOD}[scale_down]\nmemory = \"1.5m\"\n"), "scale_down.memory"),
        (format!("{GOOD}[scale_down]\nmemory = \"1\"\n"), "scale_down.memory"),
        (format!("scale_down = \"60s\"\n{GOOD}"), "scale_down"),
        (format!("{bare}scale_down.memory = 1\n{ours}{config}"), "annotations.windlass.dev/config"),
        (
            format!("{bare}{ours}{}", config.replace("2m", "2d")),
            "annotations.windlass.dev/config.scaleDown.memory",
        ),
    ] {
        let errors = read(&text).unwrap_err();
        assert!(errors.iter().all(|error| error.starts_with(wrong)), "{text}: {errors:?}");
    }
}

#[test]
fn every_key_is_heeded() {
    let file = read(
        r#"
        qmp = "/q"
        informant = "[::1]:1"
        advertise = "10.0.2.2"
        metrics = "127.0.0.2:9100"
        mode = "observe"
        policy = "load-average"
        load_window = "5s"
        priority = -3
        memory_slot = "2MiB"
        vcpu_removal = true
        cpu_limit = "cgroup"
        min = { cpu = 0.25, memory = 536870912 }
        max = { cpu = "1500m", memory = "1.5GiB" }
        target = { load_average = 1, memory = 0.5 }
        "#,
    )
    .unwrap();
    assert_eq!(file.advertise, Some("10.0.2.2".parse().unwrap()));
    assert_eq!(file.metrics, Some("127.0.0.2:9100".parse().unwrap()));
    assert!(file.vcpu_removal);
    let info = file.info;
    assert_eq!((info.mode, info.priority), (Mode::Observe, -3));
    assert_eq!(info.load_window, LoadWindow::FiveSeconds);
    assert_eq!(info.cpu_limit, Some(CpuLimit::Cgroup));
    assert_eq!(info.memory_slot, Bytes::from_mib(2));
    assert_eq!(info.bounds, Bounds { min: size(250, 512), max: size(1500, 1536) });
    assert_eq!(info.target, Target { load_average: 1.0, memory: 0.5 });
}

#[test]
fn annotations_stand_in_for_bounds_and_target() {
    let info = read(ANNOTATED).unwrap().info;
    assert_eq!(info.bounds, Bounds { min: size(250, 1024), max: size(1000, 4096) });
    assert_eq!(info.load_window, LoadWindow::OneMinute, "as the reference");

    let ours = format!(
        "{ANNOTATED}\n\"windlass.dev/config\" = '{{\"loadAverageFractionTarget\":0.5}}'\n\
         \"windlass.dev/paused-until\" = '1970-01-01T00:00:07Z'\n\"windlass.dev/priority\" = '7'\n\
         \"windlass.dev/policy\" = 'load-average'\n\"windlass.dev/mode\" = 'observe'\n"
    );
    let info = read(&ours).unwrap().info;
    assert_eq!(info.load_window, LoadWindow::FifteenSeconds);
    assert_eq!(info.target, Target { load_average: 0.5, memory: 0.75 });
    assert_eq!((info.paused_until, info.priority), (Some(Moment::from_millis(7000)), 7));
    assert_eq!((info.policy, info.mode), (Policy::LoadAverage, Mode::Observe));

    let window = ANNOTATED.replace("[annotations]", "load_window = \"5s\"\n[annotations]");
    assert_eq!(read(&window).unwrap().info.load_window, LoadWindow::FiveSeconds);
}

#[test]
fn all_problems_are_told_at_once() {
    let errors =
        read("informant = 5\nmode = \"sleep\"\n[max]\ncpu = 600\nwheels = 4\n").unwrap_err();
    let fields: Vec<_> =
        errors.iter().map(|error| error.split([' ', ':']).next().unwrap()).collect();
    assert_eq!(
        fields,
        [
            "qmp",
            "informant",
            "mode",
            "min.cpu",
            "min.memory",
            "max.cpu",
            "max.memory",
            "max.wheels"
        ]
    );
}

#[test]
fn a_broken_file_is_told_what_is_wrong_with_it() {
    let mut wrong = Vec::new();
    for (from, to, error) in BROKEN {
        assert!(GOOD.contains(from), "{from}");
        match read(&GOOD.replacen(from, to, 1)) {
            Err(errors) if errors.len() == 1 && errors[0].starts_with(error) => {}
            other => wrong.push((*to, other)),
        }
    }
    for (from, to, error) in BROKEN_ANNOTATIONS {
        assert!(ANNOTATED.contains(from), "{from}");
        match read(&ANNOTATED.replacen(from, to, 1)) {
            // What follows from it is not said beside it.
            Err(errors) if errors.len() == 1 && errors[0].starts_with(error) => {}
            other => wrong.push((*to, other)),
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn one_mistake_is_one_problem() {
    for (stem, text, error) in [
        ("b/d", GOOD.to_owned(), "the file's name = \"b/d\": must be 1 to 63 letters"),
        ("b/d", ANNOTATED.to_owned(), "the file's name = \"b/d\": must be 1 to 63 letters"),
        ("a", GOOD.replace("[min]", "[mim]"), "mim = a table: is not a key; did you mean min?"),
        ("a", GOOD.replace("qmp =", "qpm ="), "qpm = \"/run/vms/db1/qmp.sock\": is not a key; did"),
        ("a", format!("memory_slot = \"128MB\"\n{GOOD}"), "memory_slot = \"128MB\": MB is no unit"),
        (
            "a",
            GOOD.replace("[min]\ncpu = 1\nmemory = \"512MiB\"\n", "").replacen(
                '\n',
                "\nmin = 1\n",
                1,
            ),
            "min = 1: must be a table, as [min]",
        ),
    ] {
        let errors = read_as(stem, &text).unwrap_err();
        assert!(errors.len() == 1 && errors[0].starts_with(error), "{text}: {errors:#?}");
    }
}

#[test]
fn a_key_that_somebody_made_up_is_shortened_and_moves_no_cursor() {
    let errors = read(&format!("\"\\u001b[2J{}\" = 1", "x".repeat(5000))).unwrap_err();
    let error = errors.iter().find(|error| error.contains("is not a key")).unwrap();
    assert!(error.len() < 1000 && !error.contains('\u{1b}'), "{error}");
}

#[test]
fn a_name_is_one_that_can_be_spoken() {
    for good in ["a", "db1", "Web-2.example_x", &"x".repeat(63)] {
        assert!(read_as(good, GOOD).is_ok(), "{good}");
    }
    for bad in ["", ".hidden", "-a", "a b", "a/b", "ä", "a\n", &"x".repeat(64)] {
        let errors = read_as(bad, GOOD).unwrap_err();
        assert!(errors[0].contains("must be 1 to 63 letters"), "{bad}: {errors:?}");
    }
}

#[test]
fn limits_are_where_the_table_of_keys_says() {
    let bounds = |what: &str, with: &str| read(&GOOD.replacen(what, with, 1)).is_ok();
    let most = |cpu: &str| read(&GOOD.replacen("cpu = 4", &format!("cpu = {cpu}"), 1)).is_ok();
    assert!(bounds("cpu = 1", "cpu = 0.05") && !bounds("cpu = 1", "cpu = 0.049"));
    assert!(most("512") && !most("512.001"));
    assert!(most("1") && !most("0.999"), "a maximum may be the minimum");
    let slots = |mib: u64| bounds("\"4GiB\"", &format!("\"{mib}MiB\""));
    assert!(slots(65535 * 128) && !slots(65536 * 128));
    let slot = |slot: &str, text: &str| read(&format!("memory_slot = {slot}\n{text}")).is_ok();
    let large = GOOD.replace("\"512MiB\"", "\"64GiB\"").replace("\"4GiB\"", "\"64GiB\"");
    assert!(slot("\"1MiB\"", GOOD) && !slot("\"1023KiB\"", GOOD) && !slot("0", GOOD));
    assert!(slot("\"64GiB\"", &large) && !slot("\"65GiB\"", &large.replace("64", "65")));
    let target = |target: &str| read(&format!("{GOOD}[target]\n{target}")).is_ok();
    assert!(target("load_average = 0.001") && !target("load_average = 0"));
    assert!(target("load_average = 1.999") && !target("load_average = 2"));
    assert!(target("memory = 1") && !target("memory = 1.001") && !target("memory = 0.0"));
}

#[test]
fn the_table_of_keys_is_whole() {
    let rows = VM.rows();
    let names: Vec<_> = rows.iter().map(|key| key.name.as_str()).collect();
    for key in &rows {
        assert_eq!(names.iter().filter(|name| **name == key.name).count(), 1, "{}", key.name);
        for text in [&key.kind, &key.default, &key.range, &key.meaning] {
            assert!(!text.is_empty(), "{}", key.name);
        }
        assert!(key.meaning.ends_with('.'), "{}", key.name);
    }
    let unknown = read(&format!("wheels = 4\n{GOOD}")).unwrap_err();
    for name in names {
        assert!(unknown[0].contains(name), "{name}");
    }
}

#[test]
fn bounds_that_are_missing_are_told_beside_another_annotation_that_is_wrong() {
    let noon = "\"windlass.dev/paused-until\" = 'noon'\n# ";
    let text = ANNOTATED.replace("\"autoscaling.neon.tech/bounds\"", noon);
    let errors = read(&text).unwrap_err();
    let [wrong, missing] = &errors[..] else { panic!("{errors:?}") };
    assert!(wrong.starts_with("annotations.windlass.dev/paused-until = \"noon\": "), "{wrong}");
    assert!(missing.starts_with("annotations.windlass.dev/bounds: is missing"), "{missing}");
}

fn read(text: &str) -> Result<VmFile, Vec<String>> {
    read_as("db1", text)
}

fn read_as(stem: &str, text: &str) -> Result<VmFile, Vec<String>> {
    let Node::Table(nodes) = node(toml::from_str(text).unwrap()) else { panic!("is a table") };
    VmFile::with_usual(stem, nodes, &Usual::default())
        .map_err(|errors| errors.iter().map(ToString::to_string).collect())
}

fn node(value: toml::Value) -> Node {
    match value {
        toml::Value::String(text) => Node::Text(text),
        toml::Value::Integer(number) => Node::Whole(number),
        toml::Value::Float(number) => Node::Float(number),
        toml::Value::Boolean(truth) => Node::Bool(truth),
        toml::Value::Datetime(time) => Node::Other(time.to_string()),
        toml::Value::Array(list) => Node::List(list.into_iter().map(node).collect()),
        toml::Value::Table(table) => {
            Node::Table(table.into_iter().map(|(key, value)| (key, node(value))).collect())
        }
    }
}

fn size(milli: u64, mib: u64) -> Resources {
    Resources { cpu: MilliCpu::from_milli(milli), mem: Bytes::from_mib(mib) }
}

/// For so many seconds.
fn keeps(cpu: u64, memory: u64) -> ScaleDown {
    ScaleDown { cpu: Duration::from_secs(cpu), memory: Duration::from_secs(memory) }
}
