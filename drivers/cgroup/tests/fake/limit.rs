//! What a limiter sets, keeps, takes over and puts back.

use crate::tree::{Kind, OWN, PID, THREADS, Tree};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use windlass_drivers_cgroup::{Limiter, Look, SetError, forget_gone, found};
use windlass_protocol::MilliCpu;

#[test]
fn a_limit_is_set_and_what_was_found_put_back() {
    for kind in [Kind::V1, Kind::V2] {
        for (found, milli) in [("max 50000", None), ("90000 50000", Some(1800))] {
            let tree = Tree::with_vm(kind, OWN);
            tree.set(OWN, found);
            let mut limiter = tree.limiter();
            assert_eq!(limiter.look().unwrap(), look(milli, milli), "what stands is found");
            assert_eq!((tree.kept().len(), limiter.has_set()), (0, false), "nothing was written");

            assert_eq!(limiter.set(cpu(250)).unwrap(), cpu(250));
            assert_eq!(tree.quota(OWN), "25000 100000");
            assert_eq!(limiter.look().unwrap(), look(Some(250), milli));
            assert_eq!((tree.kept().len(), limiter.has_set()), (1, true));
            assert_eq!(limiter.set(cpu(1050)).unwrap(), cpu(1050));
            assert_eq!(tree.quota(OWN), "105000 100000");

            assert_eq!(limiter.set(None).unwrap(), milli.map(MilliCpu::from_milli));
            assert_eq!(tree.quota(OWN), found, "with its period");
            assert_eq!((tree.kept().len(), limiter.has_set()), (0, false));
            assert_eq!((limiter.look().unwrap(), limiter.resets()), (look(milli, milli), 0));
        }
    }
}

#[test]
fn what_was_found_is_kept_before_the_first_write() {
    let tree = Tree::with_vm(Kind::V2, OWN);
    tree.set(OWN, "90000 50000");
    let mut limiter = tree.limiter();
    // The folder cannot be made.
    tree.folder.put("state", "");
    let refused = limiter.set(cpu(250)).unwrap_err();
    assert!(matches!(refused, SetError::Unkept { .. }), "{refused}");
    assert_eq!((tree.quota(OWN).as_str(), limiter.has_set()), ("90000 50000", false));

    fs::remove_file(tree.folder.at("state")).unwrap();
    limiter.set(cpu(250)).unwrap();
    let mode = fs::metadata(tree.limits()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    let [file] = tree.kept().try_into().unwrap();
    let text = tree.folder.read(&format!("state/limits/{file}"));
    assert!(text.contains(r#""found":{"quota":90000,"period":50000}"#), "{text}");
    assert!(text.contains(r#""ours":[{"quota":25000,"period":100000}]"#), "{text}");
}

#[test]
fn no_limit_is_above_what_was_found() {
    for kind in [Kind::V1, Kind::V2] {
        let tree = Tree::with_vm(kind, OWN);
        tree.set(OWN, "15001 50000");
        let mut limiter = tree.limiter();
        assert_eq!(limiter.set(cpu(4000)).unwrap(), cpu(301));
        assert_eq!((tree.quota(OWN).as_str(), limiter.has_set()), ("15001 50000", false));
        assert_eq!(limiter.set(cpu(250)).unwrap(), cpu(250));
        assert_eq!(limiter.set(cpu(301)).unwrap(), cpu(301));
        assert_eq!(tree.quota(OWN), "15001 50000", "300.02 is less than 301");
        assert_eq!(limiter.set(cpu(300)).unwrap(), cpu(300));
        assert_eq!(tree.quota(OWN), "30000 100000");
    }
}

#[test]
fn no_quota_in_place_of_ours_is_a_reset() {
    let tree = Tree::with_vm(Kind::V2, OWN);
    tree.set(OWN, "90000 100000");
    let mut limiter = tree.limiter();
    limiter.set(cpu(250)).unwrap();
    for resets in 1..3 {
        tree.set(OWN, "max 100000");
        for _ in 0..2 {
            assert_eq!(limiter.look().unwrap(), look(None, Some(900)));
            assert_eq!(limiter.resets(), resets, "it is counted once");
        }
        limiter.set(cpu(250)).unwrap();
        assert_eq!(tree.quota(OWN), "25000 100000");
    }
    tree.set(OWN, "max 100000");
    limiter.set(cpu(300)).unwrap();
    assert_eq!((tree.quota(OWN).as_str(), limiter.resets()), ("30000 100000", 3), "without a look");
}

#[test]
fn what_somebody_else_sets_is_a_ceiling_from_then_on() {
    for kind in [Kind::V1, Kind::V2] {
        let tree = Tree::with_vm(kind, OWN);
        let mut limiter = tree.limiter();
        limiter.set(cpu(500)).unwrap();
        tree.set(OWN, "20000 100000");
        for limit in [cpu(500), None] {
            // Nothing is written over it before it was looked at.
            let mut limiter = tree.limiter();
            tree.set(OWN, "30000 100000");
            let said = limiter.set(limit).unwrap_err().to_string();
            assert!(said.ends_with("libvirt (30000 of 100000 µs)"), "{said}");
            assert_eq!(tree.quota(OWN), "30000 100000");
            tree.set(OWN, "20000 100000");
        }
        assert_eq!(limiter.look().unwrap(), look(Some(200), Some(200)));
        assert_eq!(limiter.set(cpu(500)).unwrap(), cpu(200));
        assert_eq!(limiter.set(cpu(100)).unwrap(), cpu(100));
        // They raise it, and take it away while it stands.
        tree.set(OWN, "40000 100000");
        assert_eq!(limiter.look().unwrap(), look(Some(400), Some(400)));
        tree.set(OWN, "max 100000");
        assert_eq!((limiter.look().unwrap(), limiter.resets()), (look(None, None), 0));
        limiter.set(cpu(500)).unwrap();
        limiter.set(None).unwrap();
        assert_eq!(tree.quota(OWN), "max 100000");
    }
}

#[test]
fn what_was_ours_before_is_somebody_elses_when_it_comes_back() {
    let tree = Tree::with_vm(Kind::V2, OWN);
    let mut limiter = tree.limiter();
    limiter.set(cpu(250)).unwrap();
    limiter.set(cpu(500)).unwrap();
    tree.set(OWN, "25000 100000");
    assert_eq!(limiter.look().unwrap(), look(Some(250), Some(250)));
}

#[test]
fn the_next_start_takes_over_what_the_last_one_left() {
    for (stands, found, resets_to) in [
        // Ours stands.
        ("25000 100000", Some(900), "90000 100000"),
        // It was reset meanwhile.
        ("max 100000", Some(900), "90000 100000"),
        // Somebody else has set it meanwhile.
        ("60000 100000", Some(600), "60000 100000"),
        // What was found stands: the first write never came.
        ("90000 100000", Some(900), "90000 100000"),
    ] {
        let tree = Tree::with_vm(Kind::V2, OWN);
        tree.set(OWN, "90000 100000");
        tree.limiter().set(cpu(250)).unwrap();
        tree.set(OWN, stands);
        let mut limiter = tree.limiter();
        assert_eq!((limiter.look().unwrap().found, limiter.has_set()), (milli(found), true));
        limiter.set(None).unwrap();
        assert_eq!((tree.quota(OWN).as_str(), tree.kept().len()), (resets_to, 0), "{stands}");
    }
}

#[test]
fn another_group_of_the_same_name_inherits_only_what_stands() {
    for (stands, found) in [
        ("max 100000", None),
        ("60000 100000", Some(600)),
        // With a unit of that name its runtime property comes back.
        ("25000 100000", Some(900)),
    ] {
        let tree = Tree::with_vm(Kind::V2, OWN);
        tree.set(OWN, "90000 100000");
        let mut last = tree.limiter();
        last.set(cpu(250)).unwrap();
        tree.make_again(OWN, stands);
        assert_eq!(tree.limiter().look().unwrap().found, milli(found), "{stands}");
        // The last one has nothing to put back there.
        last.set(None).unwrap();
        assert_eq!((tree.quota(OWN).as_str(), tree.kept().len()), (stands, 0));
    }
    // After a restart of the machine nothing is ours.
    let tree = Tree::with_vm(Kind::V2, OWN);
    tree.limiter().set(cpu(250)).unwrap();
    tree.folder.put("proc/sys/kernel/random/boot_id", "another\n");
    assert_eq!(tree.limiter().look().unwrap(), look(Some(250), Some(250)));
    assert_eq!(forget_gone(&tree.machine(), &tree.limits()).unwrap(), 1);
}

#[test]
fn what_is_kept_of_groups_that_are_gone_is_forgotten() {
    let tree = Tree::with_vm(Kind::V2, OWN);
    assert_eq!(forget_gone(&tree.machine(), &tree.limits()).unwrap(), 0);
    let mut limiter = tree.limiter();
    limiter.set(cpu(250)).unwrap();
    tree.folder.put("state/limits/notes.txt", "");
    assert_eq!(forget_gone(&tree.machine(), &tree.limits()).unwrap(), 0);
    fs::remove_dir_all(tree.folder.at(&tree.file(OWN, ""))).unwrap();
    assert_eq!(limiter.look().unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(forget_gone(&tree.machine(), &tree.limits()).unwrap(), 1);
    assert_eq!(tree.kept(), ["notes.txt"]);
    limiter.set(None).unwrap();
}

#[test]
fn a_process_that_was_moved_is_not_limited_and_its_old_group_is_put_back() {
    let tree = Tree::with_vm(Kind::V2, OWN);
    let mut limiter = tree.limiter();
    limiter.set(cpu(250)).unwrap();
    tree.add_group("/else", "max 100000");
    tree.move_process("/else");
    let said = limiter.set(cpu(300)).unwrap_err().to_string();
    assert_eq!(said, format!("QEMU is no longer in cgroup {OWN}"));
    assert_eq!(tree.quota(OWN), "25000 100000");
    limiter.set(None).unwrap();
    assert_eq!(tree.quota(OWN), "max 100000");
    // Below the group is in it; a name that starts alike is not.
    for (group, holds) in [(format!("{OWN}/vcpu0"), true), (format!("{OWN}2"), false)] {
        tree.move_thread(THREADS[0], &group);
        assert_eq!(limiter.group().still_holds().unwrap(), holds, "{group}");
    }
}

#[test]
fn the_kernel_takes_no_less_than_a_millisecond() {
    let tree = Tree::with_vm(Kind::V2, OWN);
    let mut limiter = tree.limiter();
    assert!(matches!(limiter.set(cpu(9)), Err(SetError::TooSmall)));
    assert_eq!(limiter.set(cpu(10)).unwrap(), cpu(10));
    assert_eq!(tree.quota(OWN), "1000 100000");
}

#[test]
fn a_file_that_is_damaged_or_of_another_group_is_refused() {
    let tree = Tree::with_vm(Kind::V2, OWN);
    tree.limiter().set(cpu(250)).unwrap();
    let [file] = tree.kept().try_into().unwrap();
    let file = format!("state/limits/{file}");
    let text = tree.folder.read(&file);
    for (text, said) in [
        (text.replace("libvirt", "else"), "is of cgroup"),
        (text.replace(":100000", ":0"), "is damaged"),
    ] {
        tree.folder.put(&file, text);
        let error = Limiter::open(tree.find().unwrap(), &tree.limits()).unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
    }
}

#[test]
fn a_person_is_told_every_quota_above_the_process_and_what_was_found_below_ours() {
    for kind in [Kind::V1, Kind::V2] {
        let tree = Tree::with_vm(kind, OWN);
        tree.set("/machine.slice", "400000 100000");
        tree.set(OWN, "300000 100000");
        assert_eq!(found(&tree.machine(), &tree.limits()).unwrap(), [].into());
        let mut limiter = tree.limiter();
        limiter.set(cpu(250)).unwrap();
        let held = tree.machine().quotas_of(PID).into_iter();
        let held: Vec<_> = held.map(|(path, quota)| (path, quota.cpu())).collect();
        let above = ("/machine.slice".to_owned(), cpu(4_000));
        assert_eq!(held, [(OWN.to_owned(), cpu(250)), above]);
        let kept = found(&tree.machine(), &tree.limits()).unwrap();
        assert_eq!(kept.get(OWN).and_then(|quota| quota.cpu()), cpu(3_000));
        limiter.set(None).unwrap();
        assert_eq!(found(&tree.machine(), &tree.limits()).unwrap(), [].into());
    }
}

fn look(limit: Option<u64>, found: Option<u64>) -> Look {
    Look { limit: milli(limit), found: milli(found) }
}

fn milli(amount: Option<u64>) -> Option<MilliCpu> {
    amount.map(MilliCpu::from_milli)
}

fn cpu(amount: u64) -> Option<MilliCpu> {
    milli(Some(amount))
}
