//! Units of systemd: which cgroup is one's own, and how it is set.

use crate::tree::{Kind, Tree};
use windlass_drivers_cgroup::{SetError, WriteError, forget_gone};
use windlass_protocol::MilliCpu;

const SCOPE: &str = "/qemu.slice/100.scope";

/// Says which cgroup the unit has, and writes what it is asked to set, as systemd does.
const SYSTEMD: &str = r#"case "$*" in
"show -p ControlGroup --value -- 100.scope") echo /qemu.slice/100.scope ;;
"--no-ask-password set-property --runtime -- 100.scope "*)
    shift 5; echo "$*" >> "$said"
    percent=${1#CPUQuota=}; period=${2#CPUQuotaPeriodSec=}
    case $period in *ms) period=${period%ms}000 ;; *us) period=${period%us} ;; esac
    case $percent in
    "") quota=max ;;
    *.??%) hundredths=${percent%%.*}${percent#*.}; quota=$((${hundredths%\%} * period / 10000)) ;;
    *) quota=$((${percent%\%} * period / 100)) ;;
    esac
    dropins="$(dirname "$0")/run/systemd/system.control/100.scope.d"; mkdir -p "$dropins"
    echo "$1" > "$dropins/50-CPUQuota.conf"; echo "$2" > "$dropins/50-CPUQuotaPeriodSec.conf"
    echo "$quota $period" > "$0.max"
    mv "$0.max" "$(dirname "$0")/sys/fs/cgroup/qemu.slice/100.scope/cpu.max" ;;
*) echo "unexpected: $*" >&2; exit 1 ;;
esac"#;

#[test]
fn a_units_own_group_is_set_through_systemd() {
    let tree = Tree::with_vm(Kind::V2, SCOPE);
    tree.systemd(SYSTEMD);
    let mut limiter = tree.limiter();
    assert_eq!(limiter.group().unit(), Some("100.scope"));
    limiter.set(cpu(250)).unwrap();
    assert_eq!(tree.quota(SCOPE), "25000 100000");
    // systemd resets the file.
    tree.set(SCOPE, "max 100000");
    limiter.set(cpu(1050)).unwrap();
    limiter.set(None).unwrap();
    assert_eq!((tree.quota(SCOPE).as_str(), limiter.resets()), ("max 100000", 1));
    let period = "CPUQuotaPeriodSec=100ms";
    assert_eq!(
        tree.said(),
        ["CPUQuota=25%", "CPUQuota=105%", "CPUQuota="].map(|quota| format!("{quota} {period}"))
    );
    assert!(tree.kept().is_empty());
}

#[test]
fn what_systemd_cannot_say_exactly_is_put_back_exactly() {
    let tree = Tree::with_vm(Kind::V2, SCOPE);
    tree.systemd(SYSTEMD);
    tree.set(SCOPE, "10000 30001");
    let mut limiter = tree.limiter();
    limiter.set(cpu(250)).unwrap();
    limiter.set(None).unwrap();
    assert_eq!(tree.quota(SCOPE), "10000 30001");
    assert_eq!(tree.said().last().unwrap(), "CPUQuota=33.34% CPUQuotaPeriodSec=30001us");
}

#[test]
fn what_systemd_keeps_for_a_unit_is_put_back() {
    const DROP_IN: &str = "run/systemd/system.control/100.scope.d/50-CPUQuota.conf";
    for found in [None, Some("CPUQuota=90%")] {
        for is_made_again in [false, true] {
            let tree = Tree::with_vm(Kind::V2, SCOPE);
            tree.systemd(SYSTEMD);
            tree.set(SCOPE, "90000 100000");
            if let Some(text) = found {
                tree.folder.put(DROP_IN, text);
            }
            let mut limiter = tree.limiter();
            limiter.set(cpu(250)).unwrap();
            assert_eq!(tree.folder.read(DROP_IN), "CPUQuota=25%\n");
            if is_made_again {
                // The file outlives the unit, and is in force for the next one.
                tree.make_again(SCOPE, "25000 100000");
                limiter = tree.limiter();
            }
            limiter.set(None).unwrap();
            let path = tree.folder.at(DROP_IN);
            assert_eq!(std::fs::read_to_string(&path).ok().as_deref(), found);
            assert_eq!(path.parent().unwrap().exists(), found.is_some());
            assert_eq!(tree.quota(SCOPE), "90000 100000");
        }
    }
}

#[test]
fn systemd_may_write_after_it_has_answered() {
    let tree = Tree::with_vm(Kind::V2, SCOPE);
    let late = SYSTEMD.replace("    mv ", "    (sleep 0.1; mv ");
    tree.systemd(&late.replace("cpu.max\" ;;", "cpu.max\") > /dev/null 2>&1 & ;;"));
    let mut limiter = tree.limiter();
    assert_eq!(limiter.set(cpu(250)).unwrap(), cpu(250));
    assert_eq!(tree.quota(SCOPE), "25000 100000");
}

#[test]
fn a_name_alone_makes_no_unit() {
    // A group below a unit's, no systemd, and a unit of a container or of a user's systemd.
    let below = Tree::with_vm(Kind::V2, "/qemu.slice/100.scope/libvirt");
    below.systemd("exit 1");
    let without = Tree::with_vm(Kind::V2, SCOPE);
    let another = Tree::with_vm(Kind::V2, SCOPE);
    another.systemd("echo /else/100.scope");
    for tree in [below, without, another] {
        let mut limiter = tree.limiter();
        let group = limiter.group().path().to_owned();
        assert_eq!(limiter.group().unit(), None, "{group}");
        limiter.set(cpu(250)).unwrap();
        assert_eq!(tree.quota(&group), "25000 100000");
    }
}

#[test]
fn a_systemd_that_cannot_be_asked_is_a_reason() {
    let tree = Tree::with_vm(Kind::V2, SCOPE);
    tree.systemd("echo no bus >&2; exit 1");
    let refused = tree.find().unwrap_err();
    let said = format!("cannot ask systemd whether cgroup {SCOPE} is that of unit 100.scope");
    assert_eq!(refused.to_string(), said);
    let source = std::error::Error::source(&refused).unwrap().to_string();
    assert_eq!(source, "systemctl failed (exit status: 1): no bus");
}

#[test]
fn a_systemd_that_does_not_set_it_is_said() {
    let tree = Tree::with_vm(Kind::V2, SCOPE);
    tree.systemd(&SYSTEMD.replace("shift 5;", "echo no >&2; exit 1;"));
    let mut limiter = tree.limiter();
    let refused = limiter.set(cpu(250)).unwrap_err();
    let is_systemds =
        matches!(&refused, SetError::Unwritten { source: WriteError::Systemd { .. }, .. });
    assert!(is_systemds, "{refused}");
    // It may still come, and is ours then.
    assert!(limiter.has_set());
    tree.set(SCOPE, "25000 100000");
    assert_eq!(limiter.look().unwrap().found, None);
    assert_eq!(limiter.set(cpu(250)).unwrap(), cpu(250));

    // It says that it has, and has not.
    tree.systemd(&SYSTEMD.replace("shift 5;", "exit 0;"));
    let refused = limiter.set(cpu(300)).unwrap_err().to_string();
    let said = "has a CPU quota of 25000 of 100000 µs, not of 30000 of 100000 µs";
    assert_eq!(refused, format!("cgroup {SCOPE} {said}"));
}

#[test]
fn what_may_still_come_is_put_back_too() {
    let tree = Tree::with_vm(Kind::V2, SCOPE);
    tree.systemd(&SYSTEMD.replace("shift 5;", "exit 1;"));
    let mut limiter = tree.limiter();
    limiter.set(cpu(250)).unwrap_err();
    limiter.set(None).unwrap_err();
    assert_eq!(tree.kept().len(), 1, "it is not put back as long as systemd fails");
    tree.systemd(SYSTEMD);
    limiter.set(None).unwrap();
    assert_eq!(tree.said(), ["CPUQuota= CPUQuotaPeriodSec=100ms"]);
    assert!(tree.kept().is_empty());
}

#[test]
fn what_is_kept_of_a_unit_outlives_its_group() {
    let tree = Tree::with_vm(Kind::V2, SCOPE);
    tree.systemd(SYSTEMD);
    let mut limiter = tree.limiter();
    limiter.set(cpu(250)).unwrap();
    let folder = tree.folder.at(&tree.file(SCOPE, ""));
    std::fs::rename(folder, tree.folder.at("gone")).unwrap();
    assert_eq!(forget_gone(&tree.machine(), &tree.limits()).unwrap(), 0);
    limiter.set(None).unwrap();
    assert_eq!(tree.kept().len(), 1);
    // The unit is started again, and its property still stands.
    tree.add_group(SCOPE, "25000 100000");
    tree.move_process(SCOPE);
    let mut limiter = tree.limiter();
    assert_eq!((limiter.look().unwrap().found, limiter.has_set()), (None, true));
    limiter.set(None).unwrap();
    assert_eq!((tree.quota(SCOPE).as_str(), tree.kept().len()), ("max 100000", 0));
}

fn cpu(amount: u64) -> Option<MilliCpu> {
    Some(MilliCpu::from_milli(amount))
}
