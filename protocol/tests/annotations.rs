//! What annotations say: ours and the reference's, valid and not, one after another.

use std::collections::BTreeMap;
use windlass_protocol::annotations::{
    Annotations, BOUNDS, CEILING, CONFIG, Defaults, MODE, PAUSED_UNTIL, POLICY, PRIORITY,
    THEIR_BOUNDS, THEIR_CONFIG,
};
use windlass_protocol::{
    Bounds, Bytes, LoadWindow, MilliCpu, Mode, Moment, Resources, ScaleDownSaid, Target, Usual,
    VmInfo, VmName,
};

const FULL: &str = r#"{"min":{"cpu":"250m","mem":"1Gi"},"max":{"cpu":2,"mem":"4Gi"}}"#;

#[test]
fn ours_win_field_by_field() {
    let mut said = Annotations::default();
    let errors = said.update(
        &texts(&[
            (THEIR_BOUNDS, FULL),
            (BOUNDS, r#"{"max":{"cpu":4}}"#),
            (THEIR_CONFIG, r#"{"loadAverageFractionTarget":0.7,"memoryUsageFractionTarget":0.6}"#),
            (CONFIG, r#"{"memoryUsageFractionTarget":0.5}"#),
        ]),
        slot(),
    );
    assert_eq!(errors, []);
    let info = said.info(name(), &defaults()).unwrap();
    assert_eq!(info.bounds, Bounds { min: size(250, 1024), max: size(4000, 4096) });
    assert_eq!(info.target, Target { load_average: 0.7, memory: 0.5 });
}

#[test]
fn what_no_annotation_says_comes_from_the_vm() {
    let own = Bounds { min: size(1000, 512), max: size(8000, 8192) };
    let defaults =
        Defaults { bounds: Some(own), priority: Some(3), mode: Some(Mode::Observe), ..defaults() };
    let mut said = Annotations::default();
    let info = said.info(name(), &defaults).unwrap();
    assert_eq!((info.bounds, info.priority, info.mode), (own, 3, Mode::Observe));
    assert_eq!(info.target, Target::default());

    let update = [(BOUNDS, r#"{"min":{"mem":"1Gi"}}"#), (PRIORITY, "-1"), (MODE, "act")];
    assert_eq!(said.update(&texts(&update), slot()), []);
    let info = said.info(name(), &defaults).unwrap();
    assert_eq!(info.bounds, Bounds { min: size(1000, 1024), ..own });
    assert_eq!((info.priority, info.mode), (-1, Mode::Act));
}

#[test]
fn the_window_is_the_reference_s_where_only_the_reference_describes_the_scaling() {
    use LoadWindow::{FifteenSeconds, FiveSeconds, OneMinute};
    for (said, window) in [
        (vec![], FifteenSeconds),
        (vec![(THEIR_BOUNDS, FULL)], OneMinute),
        (vec![(THEIR_CONFIG, "{}")], OneMinute),
        (vec![(THEIR_BOUNDS, FULL), (CEILING, "whatever the plugin writes")], OneMinute),
        (vec![(THEIR_BOUNDS, FULL), (MODE, "observe"), (PRIORITY, "1")], OneMinute),
        (vec![(THEIR_BOUNDS, FULL), (POLICY, "load-average")], FifteenSeconds),
        (vec![(THEIR_BOUNDS, FULL), (BOUNDS, "{}")], FifteenSeconds),
        (vec![(THEIR_BOUNDS, FULL), (CONFIG, r#"{"loadWindow":"5s"}"#)], FiveSeconds),
        (vec![(BOUNDS, FULL)], FifteenSeconds),
    ] {
        let mut annotations = Annotations::default();
        assert_eq!(annotations.update(&texts(&said), slot()), [], "{said:?}");
        let own = Bounds { min: size(250, 1024), max: size(2000, 4096) };
        let defaults = Defaults { bounds: Some(own), ..defaults() };
        assert_eq!(annotations.info(name(), &defaults).unwrap().load_window, window, "{said:?}");
    }
}

#[test]
fn an_invalid_annotation_keeps_what_it_last_said() {
    let mut said = Annotations::default();
    let good = [(THEIR_BOUNDS, FULL), (PRIORITY, "5"), (PAUSED_UNTIL, "1970-01-01T00:00:09Z")];
    assert_eq!(said.update(&texts(&good), slot()), []);
    let before = said.info(name(), &defaults()).unwrap();

    let broken = [(THEIR_BOUNDS, "{"), (PRIORITY, "first"), (PAUSED_UNTIL, "later"), (MODE, "?")];
    let errors = said.update(&texts(&broken), slot());
    assert_eq!(errors.len(), 4, "{errors:?}");
    assert_eq!(said.info(name(), &defaults()).unwrap(), before);

    // One that is gone says nothing more; one that is valid again counts.
    let fixed = [(THEIR_BOUNDS, FULL), (PRIORITY, "6")];
    assert_eq!(said.update(&texts(&fixed), slot()), []);
    let after = said.info(name(), &defaults()).unwrap();
    assert_eq!((after.priority, after.paused_until), (6, None));
    assert_eq!(before.paused_until, Some(Moment::from_millis(9000)));
}

#[test]
fn annotations_that_do_not_go_together_give_no_info() {
    let mut said = Annotations::default();
    said.update(&texts(&[(THEIR_BOUNDS, FULL), (BOUNDS, r#"{"min":{"cpu":3}}"#)]), slot());
    let errors = said.info(name(), &defaults()).unwrap_err();
    let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(errors, ["windlass.dev/bounds.max.cpu = 2: is below the minimum of 3"]);

    said.update(&texts(&[(BOUNDS, r#"{"min":{"cpu":3}}"#)]), slot());
    let errors = said.info(name(), &defaults()).unwrap_err();
    let fields: Vec<_> = errors.iter().map(|error| error.field.as_str()).collect();
    assert_eq!(
        fields,
        [
            "windlass.dev/bounds.min.mem",
            "windlass.dev/bounds.max.cpu",
            "windlass.dev/bounds.max.mem"
        ]
    );
}

#[test]
fn the_reference_s_are_read_with_its_leniency() {
    let lenient = r#" {"MIN":{"Cpu":0.25,"mem":"1024Mi","gpu":1},
        "max":{"cpu":"2","MEM":4294967296},"use":null} "#;
    let mut said = Annotations::default();
    let config = r#"{"LOADAVERAGEFRACTIONTARGET":0.7,"memoryUsageFractionTarget":0.6,
        "enableLFCMetrics":true,"loadWindow":"9h"}"#;
    assert_eq!(said.update(&texts(&[(THEIR_BOUNDS, lenient)]), slot()), []);
    let info = said.info(name(), &defaults()).unwrap();
    assert_eq!(info.bounds, Bounds { min: size(250, 1024), max: size(2000, 4096) });

    let both = [(THEIR_BOUNDS, lenient), (THEIR_CONFIG, config)];
    let errors = said.update(&texts(&both), slot());
    assert_eq!(errors, [], "a window is a word of ours, and of no concern in theirs");
    let target = Target { load_average: 0.7, memory: 0.6 };
    assert_eq!(said.info(name(), &defaults()).unwrap().target, target);
}

fn texts(said: &[(&str, &str)]) -> BTreeMap<String, String> {
    said.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

fn defaults() -> Defaults {
    Defaults {
        bounds: None,
        policy: None,
        load_window: None,
        priority: None,
        mode: None,
        memory_slot: slot(),
        scale_down: ScaleDownSaid::default(),
        cpu_limit: None,
        usual: Usual::default(),
    }
}

fn slot() -> Bytes {
    VmInfo::DEFAULT_MEMORY_SLOT
}

fn name() -> VmName {
    VmName::on_host("a")
}

fn size(milli: u64, mib: u64) -> Resources {
    Resources { cpu: MilliCpu::from_milli(milli), mem: Bytes::from_mib(mib) }
}
