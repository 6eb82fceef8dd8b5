//! Which cgroup is found, and what is refused.

use crate::tree::{Kind, OWN, PID, THREADS, Tree, VCPUS};
use std::fs;
use std::os::unix::fs::symlink;
use windlass_drivers_cgroup::Version;

#[test]
fn the_deepest_group_with_all_threads_is_found() {
    for (kind, version) in [(Kind::V1, Version::V1), (Kind::V2, Version::V2)] {
        let tree = Tree::new(kind);
        let parts = [("emulator", 100), ("vcpu0", 101), ("vcpu1", 102)];
        for (name, thread) in parts {
            let group = format!("{OWN}/{name}");
            tree.add_group(&group, "max 100000");
            tree.move_thread(thread, &group);
            tree.hold(&group, "100\n");
        }
        let group = tree.find().unwrap();
        assert_eq!((group.path(), group.version(), group.unit()), (OWN, version, None));
        group.alone().unwrap();
        assert!(group.still_holds().unwrap());
    }
}

#[test]
fn groups_of_one_name_start_are_different() {
    let tree = Tree::new(Kind::V2);
    for (group, thread) in [("/a/vm1", 100), ("/a/vm10", 101), ("/a/vm10", 102)] {
        tree.add_group(group, "max 100000");
        tree.move_thread(thread, group);
    }
    assert_eq!(tree.find().unwrap().path(), "/a");
}

#[test]
fn a_group_stands_where_its_part_of_the_hierarchy_is_mounted() {
    let tree = Tree::with_vm(Kind::V2, "/x/vm");
    tree.folder.put("proc/self/mountinfo", "1 1 0:28 /x /mnt/c rw - cgroup2 cgroup2 rw\n");
    let said = tree.find().unwrap_err().to_string();
    assert_eq!(said, format!("cannot read {}/mnt/c/vm/cgroup.procs", tree.folder.path().display()));
    tree.folder.put("mnt/c/vm/cgroup.procs", "100\n");
    tree.folder.put("mnt/c/vm/cpu.max", "25000 100000\n");
    let cpu = tree.find().unwrap().read().unwrap().cpu().unwrap();
    assert_eq!(cpu.milli(), 250);
}

#[test]
fn a_thread_that_has_ended_is_passed_over() {
    let tree = Tree::with_vm(Kind::V2, OWN);
    fs::create_dir(tree.folder.at("proc/100/task/199")).unwrap();
    assert_eq!(tree.find().unwrap().path(), OWN);
}

#[test]
fn a_process_without_the_threads_is_not_qemu() {
    let tree = Tree::with_vm(Kind::V2, OWN);
    let machine = tree.machine();
    let said = |pid, threads: &[i32]| machine.group_of(pid, threads).unwrap_err().to_string();
    assert_eq!(
        said(PID, &[]),
        "QEMU named no thread of a vCPU, so its process cannot be told from a proxy's"
    );
    assert_eq!(
        said(PID, &[THREADS[1], 7]),
        "process 100 holds the monitor and has no thread 7, which QEMU named: a proxy, or a QEMU in \
         another PID namespace"
    );
    let absent = tree.folder.at("proc/8");
    assert_eq!(said(8, &VCPUS), format!("cannot read {}", absent.display()));
}

#[test]
fn groups_of_others_are_refused() {
    for (group, said) in [
        ("/", "QEMU runs in the root cgroup, which has no quota; `systemd-run --scope` starts it"),
        ("/kubepods.slice/kubepods-pod1.slice/cri-1.scope", "is a kubelet's"),
        ("/kubelet/x", "is a kubelet's"),
        ("/../x", "no mounted file system shows cgroup /../x"),
    ] {
        let tree = Tree::new(Kind::V2);
        for thread in THREADS {
            tree.move_thread(thread, group);
        }
        let found = tree.find().unwrap_err().to_string();
        assert!(found.contains(said), "{group}: {found}");
    }
    // The top of what is mounted is the root, too.
    let tree = Tree::with_vm(Kind::V2, "/x");
    tree.folder.put("proc/self/mountinfo", "1 1 0:28 /x /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    assert!(tree.find().unwrap_err().to_string().contains("the root cgroup"));
}

#[test]
fn another_process_in_the_subtree_is_found() {
    for (kind, inner) in [(Kind::V1, ""), (Kind::V2, ""), (Kind::V2, "/a"), (Kind::V1, "/a/b")] {
        let tree = Tree::with_vm(kind, OWN);
        let group = tree.find().unwrap();
        let inner = format!("{OWN}{inner}");
        tree.add_group(&inner, "max 100000");
        tree.hold(&inner, "100\n4711\n");
        for refused in [tree.find().map(drop), group.alone()] {
            assert_eq!(
                refused.unwrap_err().to_string(),
                format!(
                    "cgroup {OWN} also holds process 4711 (0: of another PID namespace); \
                     `systemd-run --scope` starts QEMU in a cgroup of its own"
                )
            );
        }
        tree.hold(&inner, "100\n");
        assert_eq!(tree.find().unwrap().path(), OWN);
    }
}

#[test]
fn a_group_without_a_quota_is_refused() {
    for (kind, file) in [(Kind::V2, "cpu.max"), (Kind::V1, "cpu.cfs_quota_us")] {
        let tree = Tree::with_vm(kind, OWN);
        let path = tree.folder.at(&tree.file(OWN, file));
        fs::remove_file(&path).unwrap();
        let said = tree.find().unwrap_err().to_string();
        assert!(said.starts_with(&format!("cgroup {OWN} has no {file}: the controller")), "{said}");
        symlink(tree.folder.path(), &path).unwrap();
        let said = tree.find().unwrap_err().to_string();
        assert!(said.starts_with(&format!("cannot write {}; it takes", path.display())), "{said}");
    }
}

#[test]
fn a_process_without_a_hierarchy_of_cpu_is_refused() {
    let tree = Tree::with_vm(Kind::V2, OWN);
    tree.folder.put("proc/100/task/101/cgroup", "9:cpuset:/x\n");
    let said = tree.find().unwrap_err().to_string();
    assert_eq!(said, "process 100 is in no cgroup of the controller cpu, nor of cgroup v2");
}

#[test]
fn how_often_the_quota_was_used_up_is_read() {
    for (kind, text) in [
        (Kind::V1, "nr_periods 9\nnr_throttled 4\nthrottled_time 1500000\n"),
        (Kind::V2, "usage_usec 7\nnr_periods 9\nnr_throttled 4\nthrottled_usec 1500\n"),
    ] {
        let tree = Tree::with_vm(kind, OWN);
        tree.folder.put(&tree.file(OWN, "cpu.stat"), text);
        let group = tree.find().unwrap();
        let seen = group.throttled().unwrap();
        assert_eq!((seen.periods, seen.throttled, seen.time.as_micros()), (9, 4, 1500));
        tree.folder.put(&tree.file(OWN, "cpu.stat"), "nr_periods 9\nnr_throttled x\n");
        let said = group.throttled().unwrap_err().to_string();
        assert_eq!(said, format!("cgroup {OWN}: cpu.stat has no nr_throttled"));
    }
}

#[test]
fn a_quota_that_cannot_be_read_is_said() {
    let tree = Tree::with_vm(Kind::V2, OWN);
    let group = tree.find().unwrap();
    tree.set(OWN, "much");
    let said = group.read().unwrap_err().to_string();
    assert_eq!(said, format!("cgroup {OWN}: \"much\" is no CPU quota"));
}
