//! Files read by a table of keys: every problem is found, each once, with what to write instead.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::net::SocketAddr;
use std::ops::{Bound, RangeInclusive};
use std::path::PathBuf;
use std::time::Duration;
use windlass_kit::config::{parse_toml, read};
use windlass_protocol::config::{Kind, Problem, Reader, Table, Value, key};
use windlass_protocol::{Bytes, MilliCpu};

const TEXT: Kind = Kind::Text { empty: true };
const NUMBER: Kind = Kind::Number { from: Bound::Included(0.0), to: Bound::Excluded(9.0) };

const TOML: Table = Table::toml(&[KEYS]);
const JSON: Table = Table::json(&[KEYS]);
const KEYS: &[windlass_protocol::config::Field] = &[
    key("name", TEXT, "Who."),
    key("cpu.top", NUMBER, "The top."),
    key("cpu.low", NUMBER, "The bottom."),
];

#[test]
fn every_problem_is_found_and_every_key_that_nobody_knows() {
    let mut file = read(&TOML, "name = 1\nother = 2\n[cpu]\ntop = \"x\"\nmiddle = 3\n").unwrap();
    assert!(file.has_table("cpu") && file.peek("name").is_some());
    let name: Option<String> = file.find("name");
    let (top, low): (Option<f64>, Option<f64>) = (file.find("cpu.top"), file.required("cpu.low"));
    assert_eq!((name, top, low), (None, None, None));
    let unknown = "is not a key; the keys are name, cpu.top, cpu.low";
    assert_eq!(
        said(file),
        [
            "name = 1: must be a text".to_owned(),
            "cpu.top = \"x\": must be from 0, below 9".to_owned(),
            "cpu.low: is missing: from 0, below 9".to_owned(),
            format!("cpu.middle = 3: {unknown}"),
            format!("other = 2: {unknown}"),
        ]
    );
}

#[test]
fn json_keys_match_whatever_their_case_and_null_is_absent() {
    let mut file = read(&JSON, r#"{"NAME":"a","Cpu":{"TOP":1,"low":null}}"#).unwrap();
    assert_eq!(file.find::<String>("name").unwrap(), "a");
    assert_eq!((file.find("cpu.top"), file.find::<f64>("cpu.low")), (Some(1.0), None));
    file.finish(Some(())).unwrap();
    let flat = read(&JSON, r#"{"cpu":7}"#).unwrap();
    assert_eq!(said(flat), ["cpu = 7: must be an object"]);
}

#[test]
fn what_is_null_is_a_key_all_the_same() {
    let text = r#"{"nmae":null,"CPU":{"middle":null,"top":null},"name":null}"#;
    let unknown = "null: is not a key; the keys are name, cpu.top, cpu.low";
    let said = said(read(&JSON, text).unwrap());
    assert_eq!(said, [format!("cpu.middle = {unknown}"), format!("nmae = {unknown}")]);
}

#[test]
fn a_key_with_a_dot_is_no_table_and_none_is_written_twice() {
    let text = r#"{"":0,"cpu.top":1,"name":"a","Name":"b","cpu":{"top":2,"TOP":3}}"#;
    let said = said(read(&JSON, text).unwrap());
    let has = |text: &str| said.iter().any(|said| said.contains(text));
    assert!(has(r#""cpu.top" = 1: is not a key"#), "{said:?}");
    assert!(has(r#""" = 0: is not a key"#), "{said:?}");
    assert!(has("cpu.top = 2: is written twice"), "{said:?}");
    assert!(has(r#"name = "a": is written twice"#), "{said:?}");
}

#[test]
fn an_empty_table_is_there_and_one_that_is_null_is_not() {
    for (text, there) in [("{\"CPU\":{}}", true), ("{\"cpu\":null}", false), ("{}", false)] {
        let file = read(&JSON, text).unwrap();
        assert_eq!(file.has_table("cpu"), there, "{text}");
        file.finish(Some(())).unwrap();
    }
}

#[test]
fn a_misspelt_key_is_told_the_one_that_is_meant_and_that_one_is_not_missing() {
    for (text, problem) in [
        ("nmae = \"a\"\n[cpu]\nlow = 1", "nmae = \"a\": is not a key; did you mean name?"),
        ("name = \"a\"\n[cpu]\nlwo = 1", "cpu.lwo = 1: is not a key; did you mean cpu.low?"),
        ("name = \"a\"\n[cpus]\nlow = 1", "cpus = a table: is not a key; did you mean cpu?"),
        // In another table, where only one key has that name.
        ("[cpu]\nlow = 1\nname = \"a\"", "cpu.name = \"a\": is not a key; did you mean name?"),
        ("name = \"a\"\ncpu = 1", "cpu = 1: must be a table, as [cpu]"),
    ] {
        let mut file = read(&TOML, text).unwrap();
        file.required::<String>("name");
        file.required::<f64>("cpu.low");
        assert_eq!(said(file), [problem]);
    }
    // What stands there already was not meant, nor what differs in everything.
    for text in ["name = \"a\"\nnames = 1", "x = 1", "\"name\u{20}is much longer\" = 1"] {
        let said = said(read(&TOML, text).unwrap());
        assert!(said[0].contains("is not a key; the keys are name, cpu.top"), "{said:?}");
    }
}

#[test]
fn a_key_that_another_has_replaced_is_told_which_and_that_one_is_not_missing() {
    const TABLE: Table = Table::toml(&[&[
        key("cpu.top", NUMBER, "").replaces("most", "is now cpu.top, a number"),
        key("cpu.low", NUMBER, ""),
    ]]);
    let old = "most = \"x\": is now cpu.top, a number";
    for (text, problems) in [
        ("most = \"x\"\n[cpu]\nlow = 1", &[old][..]),
        ("most = \"x\"\n[cpu]\nlow = 1\ntop = 2", &[old]),
        // Another name, or the same elsewhere, was never a key.
        ("[cpu]\ntop = 2\nlow = 1\nmost = 1", &["cpu.most = 1: is not a key; the keys are"]),
        ("mosd = 1\n[cpu]\ntop = 2\nlow = 1", &["mosd = 1: is not a key; the keys are"]),
    ] {
        let mut file = read(&TABLE, text).unwrap();
        file.required::<f64>("cpu.top");
        file.required::<f64>("cpu.low");
        let said = said(file);
        let matches = said.len() == problems.len()
            && said.iter().zip(problems).all(|(said, problem)| said.starts_with(problem));
        assert!(matches, "{text}: {said:?}");
    }
}

#[test]
fn a_value_beyond_a_range_is_told_the_nearest_within() {
    const TABLE: Table = Table::toml(&[&[
        key("cpu", Kind::cpu(64), ""),
        key("unit", Kind::memory(Bytes::from_mib(1), Bytes::from_gib(1024)), ""),
        key(
            "slot",
            Kind::Memory {
                least: Bytes::from_mib(1),
                most: Bytes::from_gib(64),
                step: Bytes::from_mib(1),
            },
            "",
        ),
        key("time", Kind::Time { least: SHORT, most: LONG }, ""),
        key("count", Kind::Whole { least: 1, most: 60 }, ""),
        key("share", Kind::Number { from: Bound::Excluded(0.0), to: Bound::Included(0.75) }, ""),
        key("score", Kind::Number { from: Bound::Included(0.5), to: Bound::Excluded(2.0) }, ""),
    ]]);
    const SHORT: Duration = Duration::from_millis(100);
    const LONG: Duration = Duration::from_secs(2);
    for (text, limit) in [
        ("cpu = 65", "must be 0.05 to 64 vCPUs; the nearest is 64"),
        ("cpu = \"1m\"", "must be 0.05 to 64 vCPUs; the nearest is 0.05"),
        ("cpu = true", "must be 0.05 to 64 vCPUs"),
        ("unit = 1", "must be 1MiB to 1TiB; the nearest is 1MiB"),
        ("unit = \"2TiB\"", "must be 1MiB to 1TiB; the nearest is 1TiB"),
        ("unit = 99999999999999999999999999", "must be 1MiB to 1TiB"),
        ("unit = \"4G\"", "G is no unit of memory here; write GiB"),
        ("slot = \"1.6MiB\"", "is not a multiple of 1MiB; 2MiB is"),
        ("slot = \"1.4MiB\"", "is not a multiple of 1MiB; 1MiB is"),
        ("slot = 1", "must be 1MiB to 64GiB, in whole MiB; the nearest is 1MiB"),
        ("time = 3", "must be 100ms to 2s; the nearest is 2s"),
        ("time = \"1ms\"", "must be 100ms to 2s; the nearest is 100ms"),
        ("time = \"3m\"", "must be 100ms to 2s"),
        ("count = -7", "must be a whole number from 1 to 60; the nearest is 1"),
        ("count = 1.5", "must be a whole number from 1 to 60"),
        ("share = 75", "must be above 0, at most 0.75; the nearest is 0.75"),
        ("share = -1", "must be above 0, at most 0.75"),
        ("share = nan", "must be above 0, at most 0.75"),
        ("share = inf", "must be above 0, at most 0.75"),
        ("share = \"1\"", "must be above 0, at most 0.75"),
        ("score = 0.4", "must be from 0.5, below 2; the nearest is 0.5"),
        ("score = 2", "must be from 0.5, below 2"),
    ] {
        let mut file = read(&TABLE, text).unwrap();
        file.find::<MilliCpu>("cpu");
        file.find::<Bytes>("unit");
        file.find::<Bytes>("slot");
        file.find::<Duration>("time");
        file.find::<u64>("count");
        file.find::<f64>("share");
        file.find::<f64>("score");
        let problems = file.finish(Some(())).unwrap_err();
        assert_eq!(problems.iter().map(|problem| &*problem.limit).collect::<Vec<_>>(), [limit]);
    }
}

#[test]
fn a_default_is_written_as_a_person_would_and_read_as_from_a_file() {
    const TABLE: Table = Table::toml(&[&[
        key("path", Kind::PATH, "").or(Value::Text("/a")),
        key("ports", Kind::Ports, "").or(Value::Ports(5, 6)),
        key("at", Kind::Address, "").or(Value::Text("127.0.0.1:1")),
        key("memory", Kind::memory(Bytes::ZERO, Bytes::from_gib(8)), "")
            .or(Value::Memory(Bytes::from_mib(1536)))
            .otherwise("more at night"),
        key("time", Kind::Time { least: Duration::ZERO, most: Duration::MAX }, "")
            .or(Value::Time(Duration::from_millis(1500))),
        key("max_wait", Kind::Clamped { least: 1, from: 2, to: 30 }, "")
            .or(Value::Seconds(Duration::from_secs(7)))
            .note(", as old_wait"),
        key("none", TEXT, ""),
    ]]);
    let mut file = read(&TABLE, "").unwrap();
    assert_eq!(file.get::<PathBuf>("path"), PathBuf::from("/a"));
    assert_eq!(file.get::<RangeInclusive<u16>>("ports"), 5..=6);
    assert_eq!(file.get::<SocketAddr>("at").port(), 1);
    assert_eq!(file.get::<Bytes>("memory"), Bytes::from_mib(1536));
    assert_eq!(file.get::<Duration>("time"), Duration::from_millis(1500));
    assert_eq!(file.seconds("max_wait"), Duration::from_secs(7));
    let rows = TABLE.rows();
    let defaults: Vec<_> = rows.iter().map(|row| row.default.as_str()).collect();
    let memory = "1536MiB; more at night";
    assert_eq!(defaults, ["/a", "5-6", "127.0.0.1:1", memory, "1500ms", "7", "required"]);
    assert_eq!(
        rows[5].range,
        "a whole number from 1; 1 counts as 2, more than 30 as 30, as old_wait"
    );
    // The same keys in the reference's JSON.
    const JSON: Table =
        Table::json(&[&[key("max_wait", Kind::Clamped { least: 1, from: 2, to: 30 }, "")
            .or(Value::Whole(7))
            .note(", as old_wait")]]);
    let row = &JSON.rows()[0];
    assert_eq!((row.name.as_str(), row.kind.as_str()), ("maxWait", "JSON"));
    assert!(row.range.ends_with(", as oldWait"), "{}", row.range);
    let mut file = read(&JSON, "{\"maxWait\": 31}").unwrap();
    assert_eq!(file.seconds("max_wait"), Duration::from_secs(30));
    let adjusted: Vec<_> = file.adjusted().iter().map(ToString::to_string).collect();
    assert_eq!(adjusted, ["maxWait = 31: counts as 30, the most that is taken"]);
}

#[test]
fn ports_are_a_range_that_begins_above_zero() {
    let of = |text: &str| one::<RangeInclusive<u16>>(Kind::Ports, &format!("\"{text}\""));
    assert_eq!(of("1-1"), Some(1..=1));
    assert_eq!(of("10310 - 65535"), Some(10_310..=65_535));
    for wrong in ["0-5", "0-0", "9-8", "5", "-1-5", "1-65536", ""] {
        assert_eq!(of(wrong), None, "{wrong}");
    }
}

#[test]
fn paths_are_absolute_and_have_no_end_inside() {
    let of = |text: &str| one::<PathBuf>(Kind::PATH, &format!("\"{text}\""));
    assert_eq!(of("/run/a"), Some(PathBuf::from("/run/a")));
    for wrong in ["run/a", "/run\\u0000/a", ""] {
        assert_eq!(of(wrong), None, "{wrong:?}");
    }
    assert!(one::<PathBuf>(Kind::SOCKET, &format!("\"/{}\"", "x".repeat(106))).is_some());
    assert!(one::<PathBuf>(Kind::SOCKET, &format!("\"/{}\"", "x".repeat(107))).is_none());
}

#[test]
fn times_are_seconds_or_say_their_unit() {
    let kind = Kind::Time { least: Duration::from_millis(100), most: Duration::from_secs(10) };
    let time = |text: &str| one::<Duration>(kind, text);
    let text = |text: &str| time(&format!("\"{text}\""));
    assert_eq!(time("5"), Some(Duration::from_secs(5)));
    assert_eq!(time("0.5"), Some(Duration::from_millis(500)));
    assert_eq!(text("250ms"), Some(Duration::from_millis(250)));
    assert_eq!(text("1.5s"), Some(Duration::from_millis(1500)));
    for wrong in ["5", "5m", "-1s", "11s", "s", "", "nans", "1.2.3s", "1e3s"] {
        assert_eq!(text(wrong), None, "{wrong}");
    }
    for wrong in ["-1", "nan", "1e300"] {
        assert_eq!(time(wrong), None, "{wrong}");
    }
}

/// A value of this kind, read as one of this type.
fn one<T: windlass_protocol::config::Typed>(kind: Kind, text: &str) -> Option<T> {
    T::read(&kind, &parse_toml(&format!("value = {text}")).unwrap()["value"])
}

fn said(file: Reader) -> Vec<String> {
    let problems: Vec<Problem> = file.finish(Some(())).unwrap_err();
    problems.iter().map(ToString::to_string).collect()
}
