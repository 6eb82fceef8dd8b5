//! What is left of the hour after restarts, torn writes and full disks.

use super::*;
use crate::host::scratch::Scratch;
use windlass_protocol::{LoadWindow, Outcome, Reason, Resources, Signal, Signals, Target, VmName};

const START: Moment = Moment::from_millis(1_795_255_200_000);

#[test]
fn an_hour_is_kept_over_a_restart() {
    let dir = Scratch::new();
    let (mut history, recalled) = History::open(dir.path(), START).unwrap();
    assert!(recalled.is_empty());
    let decisions: Vec<Decision> = (0..90).map(|minute| decision("db1", after(minute))).collect();
    history.decided("db1", &decisions[..50]).unwrap();
    // Said again with later ones, only these are new.
    history.decided("db1", &decisions).unwrap();
    history.noted("db1", vec![note(after(89))]).unwrap();
    let (mut again, recalled) = History::open(dir.path(), after(90)).unwrap();
    assert_eq!(recalled, decisions[30..]);
    assert_eq!(again.notes("db1", after(0)).len(), 1);
    assert_eq!(again.passed_over(), 0);
    // What was read back is not written again.
    let length = |dir: &Scratch| fs::metadata(dir.path().join("history/db1.jsonl")).unwrap().len();
    let before = length(&dir);
    again.decided("db1", &recalled).unwrap();
    assert_eq!(length(&dir), before);
}

#[test]
fn a_torn_line_costs_itself_only() {
    let dir = Scratch::new();
    let (mut history, _) = History::open(dir.path(), START).unwrap();
    history.decided("db1", &[decision("db1", after(0))]).unwrap();
    let path = dir.path().join("history/db1.jsonl");
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(b"{\"decision\":{\"at\":17952").unwrap();
    let (mut history, recalled) = History::open(dir.path(), after(1)).unwrap();
    assert_eq!((history.passed_over(), recalled.len()), (1, 1));
    history.decided("db1", &[decision("db1", after(1))]).unwrap();
    let (again, recalled) = History::open(dir.path(), after(2)).unwrap();
    assert_eq!((again.passed_over(), recalled.len()), (1, 2));
}

#[test]
fn whatever_stands_in_the_folder_the_host_starts() {
    let dir = Scratch::new();
    fs::create_dir(dir.path().join("history")).unwrap();
    let put = |name: &str, bytes: &[u8]| {
        fs::write(dir.path().join("history").join(name), bytes).unwrap();
    };
    put("a.jsonl", b"\xff\xfe\x00\n{}\n[]\nnull\n{\"note\":1}\n\n");
    put("b.jsonl", &vec![b'x'; 5 << 20]);
    put("c.txt", b"not ours");
    let (history, recalled) = History::open(dir.path(), START).unwrap();
    assert_eq!((history.passed_over(), recalled), (6, Vec::new()));
}

#[test]
fn neither_memory_nor_disk_grows_without_end() {
    let dir = Scratch::new();
    let (mut history, _) = History::open(dir.path(), START).unwrap();
    for nth in 0..2_000 {
        let at = Moment::from_millis(START.millis() + nth);
        history.decided("db1", &[decision("db1", at)]).unwrap();
        history.noted("db1", vec![note(at)]).unwrap();
    }
    assert_eq!(history.notes("db1", START).len(), MOST);
    let length = |name: &str| fs::metadata(dir.path().join("history").join(name)).unwrap().len();
    assert!(length("db1.jsonl") + length("db1.jsonl.old") < 2 * TURN + 4096);
}

#[test]
fn what_is_older_than_an_hour_goes_and_so_do_the_files_of_vms_that_are_no_more() {
    let dir = Scratch::new();
    let (mut history, _) = History::open(dir.path(), START).unwrap();
    history.decided("db1", &[decision("db1", after(0))]).unwrap();
    history.decided("db2", &[decision("db2", after(50))]).unwrap();
    history.forget_before(after(61));
    assert!(!history.knows("db1") && history.knows("db2"));
    assert!(!dir.path().join("history/db1.jsonl").exists());
    assert!(dir.path().join("history/db2.jsonl").exists());
}

#[test]
fn an_answer_that_is_given_again_and_again_is_one_note() {
    let dir = Scratch::new();
    let (mut history, _) = History::open(dir.path(), START).unwrap();
    for minute in 0..50 {
        let grown = Note { last: after(minute), times: minute + 1, ..note(after(0)) };
        history.noted("db1", vec![grown]).unwrap();
    }
    let notes = history.notes("db1", after(0));
    assert_eq!((notes.len(), notes[0].times), (1, 50));
    // After a restart it has lost some minutes at most.
    let (again, _) = History::open(dir.path(), after(50)).unwrap();
    let notes = again.notes("db1", after(0));
    assert!(notes.len() == 1 && notes[0].last > after(40), "{notes:?}");
    let text = fs::read_to_string(dir.path().join("history/db1.jsonl")).unwrap();
    assert!(text.lines().count() < 12, "{text}");
}

fn after(minutes: u64) -> Moment {
    START.after(Duration::from_secs(60 * minutes))
}

fn size(cpus: u64) -> Resources {
    Resources {
        cpu: windlass_protocol::MilliCpu::from_cores(cpus),
        mem: windlass_protocol::Bytes::from_gib(cpus),
    }
}

fn note(at: Moment) -> Note {
    Note { first: at, last: at, times: 1, asked: size(4), permit: size(2), short: Vec::new() }
}

fn decision(vm: &str, at: Moment) -> Decision {
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
