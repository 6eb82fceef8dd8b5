//! What is left of the hour after restarts, torn writes and full disks.

use super::files::TURN;
use super::hour::{MOST, MOST_DUE};
use super::*;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::time::Duration;
use windlass_protocol::{
    Decision, LoadWindow, Moment, Note, Outcome, Reason, Resources, Signal, Signals, Target, VmName,
};
use windlass_testkit::Folder;

const START: Moment = Moment::from_millis(1_795_255_200_000);

#[test]
fn an_hour_is_kept_over_a_restart() {
    let dir = Folder::create().unwrap();
    let (mut history, recalled) = open(&dir, START);
    assert!(recalled.is_empty());
    let decisions: Vec<Decision> = (0..90).map(|minute| decision("db1", after(minute))).collect();
    history.decided("db1", &decisions[..50]);
    write(&dir, &mut history);
    // Said again with later ones, only these are new.
    history.decided("db1", &decisions);
    write(&dir, &mut history);
    history.noted("db1", vec![note(after(89))]);
    write(&dir, &mut history);
    let (mut again, recalled) = open(&dir, after(90));
    assert_eq!(recalled, decisions[30..]);
    assert_eq!(again.notes("db1", after(0)).len(), 1);
    assert_eq!(again.passed_over, 0);
    // What was read back is not written again.
    let length = |dir: &Folder| fs::metadata(dir.path().join("history/db1.jsonl")).unwrap().len();
    let before = length(&dir);
    again.decided("db1", &recalled);
    write(&dir, &mut again);
    assert_eq!(length(&dir), before);
}

#[test]
fn a_torn_line_costs_itself_only() {
    let dir = Folder::create().unwrap();
    let (mut history, _) = open(&dir, START);
    history.decided("db1", &[decision("db1", after(0))]);
    write(&dir, &mut history);
    let path = dir.path().join("history/db1.jsonl");
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(b"{\"decision\":{\"at\":17952").unwrap();
    let (mut history, recalled) = open(&dir, after(1));
    assert_eq!((history.passed_over, recalled.len()), (1, 1));
    history.decided("db1", &[decision("db1", after(1))]);
    write(&dir, &mut history);
    let (again, recalled) = open(&dir, after(2));
    assert_eq!((again.passed_over, recalled.len()), (1, 2));
}

#[test]
fn whatever_stands_in_the_folder_the_host_starts() {
    let dir = Folder::create().unwrap();
    fs::create_dir(dir.path().join("history")).unwrap();
    let put = |name: &str, bytes: &[u8]| {
        fs::write(dir.path().join("history").join(name), bytes).unwrap();
    };
    put("a.jsonl", b"\xff\xfe\x00\n{}\n[]\nnull\n{\"note\":1}\n\n");
    // Larger than a file ever becomes here: its end is read.
    let line = [b'x'; 63].into_iter().chain([b'\n']).collect::<Vec<u8>>();
    put("b.jsonl", &line.repeat((5 << 20) / 64));
    put("c.txt", b"not ours");
    let (history, recalled) = open(&dir, START);
    assert_eq!((history.passed_over, recalled), (5 + (2 << 20) / 64, Vec::new()));
}

#[test]
fn what_cannot_be_read_is_said() {
    let dir = Folder::create().unwrap();
    fs::create_dir_all(dir.path().join("history/a.jsonl")).unwrap();
    assert_eq!(Files::below(dir.path()).read(START).unwrap_err().kind(), ErrorKind::IsADirectory);
    fs::remove_dir_all(dir.path().join("history")).unwrap();
    fs::write(dir.path().join("history"), "in the way").unwrap();
    assert_eq!(Files::below(dir.path()).read(START).unwrap_err().kind(), ErrorKind::AlreadyExists);
}

#[test]
fn neither_memory_nor_disk_grows_without_end() {
    let dir = Folder::create().unwrap();
    let (mut history, _) = open(&dir, START);
    for nth in 0..2_000 {
        let at = Moment::from_millis(START.millis() + nth);
        history.decided("db1", &[decision("db1", at)]);
        write(&dir, &mut history);
        history.noted("db1", vec![note(at)]);
        write(&dir, &mut history);
    }
    assert_eq!(history.notes("db1", START).len(), MOST);
    let length = |name: &str| fs::metadata(dir.path().join("history").join(name)).unwrap().len();
    assert!(length("db1.jsonl") + length("db1.jsonl.old") < 2 * TURN + 4096);
}

#[test]
fn what_is_older_than_an_hour_goes_and_so_do_the_files_of_vms_that_are_no_more() {
    let dir = Folder::create().unwrap();
    let (mut history, _) = open(&dir, START);
    history.decided("db1", &[decision("db1", after(0))]);
    write(&dir, &mut history);
    history.decided("db2", &[decision("db2", after(50))]);
    write(&dir, &mut history);
    history.forget_before(after(60));
    assert!(history.knows("db1"), "an hour, and not longer");
    // What is still to be written of the one goes with it, and that of the other does not.
    history.decided("db1", &[decision("db1", after(1))]);
    history.decided("db2", &[decision("db2", after(51))]);
    history.forget_before(after(62));
    write(&dir, &mut history);
    assert!(!history.knows("db1") && history.knows("db2"));
    assert!(!dir.path().join("history/db1.jsonl").exists());
    assert_eq!(open(&dir, after(62)).1.len(), 2);
}

#[test]
fn an_answer_that_is_given_again_and_again_is_one_note() {
    let dir = Folder::create().unwrap();
    let (mut history, _) = open(&dir, START);
    for minute in 0..50 {
        let grown = Note { last: after(minute), times: minute + 1, ..note(after(0)) };
        history.noted("db1", vec![grown]);
        write(&dir, &mut history);
    }
    let notes = history.notes("db1", after(0));
    assert_eq!((notes.len(), notes[0].times), (1, 50));
    // After a restart it has lost some minutes at most.
    let (again, _) = open(&dir, after(50));
    let notes = again.notes("db1", after(0));
    assert!(notes.len() == 1 && notes[0].last > after(40), "{notes:?}");
    let text = fs::read_to_string(dir.path().join("history/db1.jsonl")).unwrap();
    // When it was new, and then each time that more than five minutes were missing.
    assert_eq!(text.lines().count(), 1 + 49 / 6, "{text}");
}

#[test]
fn what_cannot_be_written_is_due_again_in_its_order_and_within_bounds() {
    let dir = Folder::create().unwrap();
    let (mut history, _) = open(&dir, START);
    // A folder where the file of one VM should be.
    let in_the_way = dir.path().join("history/db1.jsonl");
    fs::create_dir(&in_the_way).unwrap();
    for minute in 0..3 {
        history.decided("db1", &[decision("db1", after(minute))]);
        history.decided("db2", &[decision("db2", after(minute))]);
    }
    let files = Files::below(dir.path());
    let unwritten = files.write(history.take_due().unwrap()).unwrap_err();
    assert_eq!(unwritten.lines.len(), 3, "{unwritten:?}");
    history.give_back(unwritten.lines);
    history.decided("db1", &[decision("db1", after(3))]);
    fs::remove_dir(&in_the_way).unwrap();
    write(&dir, &mut history);
    let (_, recalled) = open(&dir, after(4));
    let of = |vm: &str| -> Vec<Moment> {
        recalled.iter().filter(|d| d.vm.name == vm).map(|d| d.at).collect()
    };
    assert_eq!((of("db1"), of("db2")), ((0..4).map(after).collect(), (0..3).map(after).collect()));
    // A disk that is full for good.
    for nth in 0..20_000 {
        history.decided("db1", &[decision("db1", Moment::from_millis(after(5).millis() + nth))]);
    }
    let mut lines = 0;
    while let Some(batch) = history.take_due() {
        assert_ne!(batch, Batch::default());
        lines += batch.lines.len();
    }
    assert_eq!(lines, MOST_DUE);
}

#[test]
fn a_folder_that_went_away_is_made_again() {
    let dir = Folder::create().unwrap();
    let (mut history, _) = open(&dir, START);
    fs::remove_dir_all(dir.path().join("history")).unwrap();
    history.decided("db1", &[decision("db1", after(0))]);
    write(&dir, &mut history);
    assert_eq!(open(&dir, after(1)).1.len(), 1);
}

fn open(dir: &Folder, now: Moment) -> (History, Vec<Decision>) {
    Files::below(dir.path()).read(now).unwrap()
}

fn write(dir: &Folder, history: &mut History) {
    while let Some(batch) = history.take_due() {
        assert_ne!(batch, Batch::default());
        Files::below(dir.path()).write(batch).unwrap();
    }
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

/// One that was reached at once.
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
