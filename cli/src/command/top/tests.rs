//! What `top` shows of VMs in several states, in a pipe and on terminals, and what keys do.

mod keys;

use super::app::App;
use super::order::Sorting;
use super::screen::{Paint, draw};
use super::sight::Sight;
use super::table::plain;
use crate::api::{Changed, VmEntry, VmState};
use crate::problem::{Problem, Report};
use expect_test::expect;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::{Color, Modifier};
use windlass_protocol::status::{HostStatus, NodeStatus, SessionState, VmStatus};
use windlass_protocol::{
    Bounds, Bytes, MemorySeen, MilliCpu, Mode, Moment, Resources, RunState, Seen, Signals, VmName,
    Waiting,
};

const NOW: Moment = Moment::from_millis(1_795_255_205_000);

#[test]
fn a_pipe_gets_every_value_whole() {
    expect![[r#"
        node 4 vCPU / 4GiB; reserved 5 vCPU / 4GiB, more CPU than there is: no VM grows beyond its reserved CPU; host memory available 1.5GiB
        FROZEN: no VM changes its size until `windlass thaw`
        gone: not there: no QEMU serves /run/vms/gone/qmp.sock

         VM        CPU     MEMORY  USED    LOAD  GOAL      GRANTED   BOUNDS             CHANGED    STATE
         batch     2       768MiB  110MiB  0.03  1/768MiB  2/768MiB  1/512MiB – 4/4GiB  ↓ 2m ago   at goal
         db1       1 of 2  768MiB  110MiB  2.70  3/768MiB  2/768MiB  1/512MiB – 4/4GiB  ↑ 20s ago  waiting for room, 1 vCPU more
         mail      1 of 2  768MiB  –       –     1/768MiB  2/768MiB  1/512MiB – 4/4GiB  –          no metrics from the guest for 20s
         stuck     1 of 2  768MiB  110MiB  0.03  1/768MiB  2/768MiB  1/512MiB – 4/4GiB  –          QEMU not answering for 12s
         web (p5)  1 of 2  768MiB  110MiB  0.03  1/768MiB  2/768MiB  1/512MiB – 4/4GiB  –          now controlled by another agent
    "#]].assert_eq(&plain(&sight(), Sorting::default()));
}

#[test]
fn a_wide_terminal_shows_every_column() {
    expect![[r#"
        node 4 vCPU / 4GiB; reserved 5 vCPU / 4GiB, more CPU than there is: no VM grows beyond its reserved CPU; host memory available 1.5GiB
        FROZEN: no VM changes its size until `windlass thaw`
        gone: not there: no QEMU serves /run/vms/gone/qmp.sock

        VM▲       CPU     MEMORY  USED    LOAD  GOAL      GRANTED   BOUNDS             CHANGED    STATE
        batch     2       768MiB  110MiB  0.03  1/768MiB  2/768MiB  1/512MiB – 4/4GiB  ↓ 2m ago   at goal
        db1       1 of 2  768MiB  110MiB  2.70  3/768MiB  2/768MiB  1/512MiB – 4/4GiB  ↑ 20s ago  waiting for room, 1 vCPU more
        mail      1 of 2  768MiB  –       –     1/768MiB  2/768MiB  1/512MiB – 4/4GiB  –          no metrics from the guest for 20s
        stuck     1 of 2  768MiB  110MiB  0.03  1/768MiB  2/768MiB  1/512MiB – 4/4GiB  –          QEMU not answering for 12s
        web (p5)  1 of 2  768MiB  110MiB  0.03  1/768MiB  2/768MiB  1/512MiB – 4/4GiB  –          now controlled by another agent





        q quit  ? help  Enter explain  p pause  ↑↓ select  ←→ sort  r reverse  1/5
    "#]].assert_eq(&shown(150));
}

#[test]
fn a_narrow_terminal_leaves_columns_out_and_says_so() {
    expect![[r#"
        node 4 vCPU / 4GiB; reserved 5 vCPU / 4GiB, more CPU than there is: no VM grows
          beyond its reserved CPU; host memory available 1.5GiB
        FROZEN: no VM changes its size until `windlass thaw`
        gone: not there: no QEMU serves /run/vms/gone/qmp.sock

        VM▲       CPU     MEMORY  LOAD  GOAL      STATE
        batch     2       768MiB  0.03  1/768MiB  at goal
        db1       1 of 2  768MiB  2.70  3/768MiB  waiting for room, 1 vCPU more
        mail      1 of 2  768MiB  –     1/768MiB  no metrics from the guest for 20s
        stuck     1 of 2  768MiB  0.03  1/768MiB  QEMU not answering for 12s
        web (p5)  1 of 2  768MiB  0.03  1/768MiB  now controlled by another agent



        a wider terminal shows USED, GRANTED, BOUNDS, CHANGED
        q quit  ? help  Enter explain  p pause  ↑↓ select  ←→ sort  r reverse  1/5
    "#]]
    .assert_eq(&shown(80));
}

#[test]
fn a_terminal_of_sixty_columns_keeps_what_matters() {
    expect![[r#"
        node 4 vCPU / 4GiB; reserved 5 vCPU / 4GiB, more CPU than
          there is: no VM grows beyond its reserved CPU; host memory
          available 1.5GiB
        FROZEN: no VM changes its size until `windlass thaw`
        gone: not there: no QEMU serves /run/vms/gone/qmp.sock

        VM▲       CPU     MEMORY  LOAD  STATE
        batch     2       768MiB  0.03  at goal
        db1       1 of 2  768MiB  2.70  waiting for room, 1 vCPU mo…
        mail      1 of 2  768MiB  –     no metrics from the guest f…
        stuck     1 of 2  768MiB  0.03  QEMU not answering for 12s
        web (p5)  1 of 2  768MiB  0.03  now controlled by another a…


        a wider terminal shows USED, GOAL, GRANTED, BOUNDS, CHANGED
        q quit  ? help  Enter explain  p pause  ↑↓ select  ←→ sort
    "#]]
    .assert_eq(&shown(60));
}

#[test]
fn a_node_that_is_over_says_which_axis_is_held_back() {
    let head = |vcpus, mib| {
        let mut sight = sight();
        sight.state.frozen = false;
        sight.state.node.as_mut().unwrap().reserved = size(vcpus, mib);
        super::table::head(&sight).join("\n") + "\n"
    };
    expect![[r#"
        node 4 vCPU / 4GiB; reserved 4 vCPU / 4GiB; host memory available 1.5GiB
        node 4 vCPU / 4GiB; reserved 5 vCPU / 4GiB, more CPU than there is: no VM grows beyond its reserved CPU; host memory available 1.5GiB
        node 4 vCPU / 4GiB; reserved 4 vCPU / 5GiB, more memory than there is: no VM grows beyond its reserved memory; host memory available 1.5GiB
        node 4 vCPU / 4GiB; reserved 5 vCPU / 5GiB, more of both than there is: no VM grows beyond what it has reserved; host memory available 1.5GiB
    "#]]
        .assert_eq(&[head(4, 4096), head(5, 4096), head(4, 5120), head(5, 5120)].concat());
}

#[test]
fn a_table_without_rows_says_whether_any_vm_is_managed() {
    let without = |entries| {
        let mut sight = sight();
        (sight.state.vms, sight.entries) = (Vec::new(), entries);
        let both =
            [plain(&sight, Sorting::default()), text(&mut App::new(sight, Sorting::default()), 80)];
        move |words: &str| both.iter().all(|shown| shown.contains(words))
    };
    let (gone, none) = (without(vec![entry("db1", None)]), without(Vec::new()));
    assert!(gone("db1: not there: no QEMU serves") && gone("No managed VM is there."));
    assert!(!gone("No VM is managed") && none("No VM is managed; `windlass vm add` adds one."));
    let removed = VmEntry { state: VmState::Removed, ..entry("db1", None) };
    assert!(without(vec![removed])("No VM is managed"));
}

#[test]
fn where_the_plugin_keeps_the_books_the_head_says_so() {
    let mut sight = sight();
    (sight.state.node, sight.state.frozen) = (None, false);
    let said = ["the plugin keeps the books of the node; host memory available 1.5GiB"];
    assert_eq!(super::table::head(&sight), said);
}

#[test]
fn many_vms_that_are_not_there_leave_room_for_the_table() {
    let mut sight = sight();
    let gone = |nth: usize| entry(&format!("gone{nth}"), None);
    sight.entries = (0..40).map(gone).collect();
    expect![[r#"
        node 4 vCPU / 4GiB; reserved 5 vCPU / 4GiB, more CPU than there is: no VM grows
          beyond its reserved CPU; host memory available 1.5GiB
        FROZEN: no VM changes its size until `windlass thaw`
        gone0: not there: no QEMU serves /run/vms/gone0/qmp.sock
        gone1: not there: no QEMU serves /run/vms/gone1/qmp.sock
        gone2: not there: no QEMU serves /run/vms/gone2/qmp.sock
        … and 37 more; `windlass vm list` has all

        VM▲       CPU     MEMORY  LOAD  GOAL      STATE
        batch     2       768MiB  0.03  1/768MiB  at goal
        db1       1 of 2  768MiB  2.70  3/768MiB  waiting for room, 1 vCPU more
        mail      1 of 2  768MiB  –     1/768MiB  no metrics from the guest for 20s
        stuck     1 of 2  768MiB  0.03  1/768MiB  QEMU not answering for 12s
        web (p5)  1 of 2  768MiB  0.03  1/768MiB  now controlled by another agent
        a wider terminal shows USED, GRANTED, BOUNDS, CHANGED
        q quit  ? help  Enter explain  p pause  ↑↓ select  ←→ sort  r reverse  1/5
    "#]]
    .assert_eq(&text(&mut App::new(sight, Sorting::default()), 80));
}

#[test]
fn problems_of_files_leave_room_for_the_table() {
    let mut sight = sight();
    let problem = || Problem::new("qmp", 7, "must be an absolute path of at most 107 bytes");
    sight.reports = (0..9)
        .map(|nth| Report {
            subject: format!("/etc/windlass/vms.d/a{nth}.toml"),
            problems: std::iter::repeat_with(problem).take(6).collect(),
            meanwhile: "this VM is not managed".to_owned(),
        })
        .collect();
    expect![[r#"
        node 4 vCPU / 4GiB; reserved 5 vCPU / 4GiB, more CPU than
          there is: no VM grows beyond its reserved CPU; host memory
          available 1.5GiB
        FROZEN: no VM changes its size until `windlass thaw`
        gone: not there: no QEMU serves /run/vms/gone/qmp.sock

        VM▲       CPU     MEMORY  LOAD  STATE
        batch     2       768MiB  0.03  at goal
        db1       1 of 2  768MiB  2.70  waiting for room, 1 vCPU mo…
        mail      1 of 2  768MiB  –     no metrics from the guest f…
        a wider terminal shows USED, GOAL, GRANTED, BOUNDS, CHANGED
        ! /etc/windlass/vms.d/a0.toml (1 of 6): qmp = 7: must be an…
        ! /etc/windlass/vms.d/a1.toml (1 of 6): qmp = 7: must be an…
        ! /etc/windlass/vms.d/a2.toml (1 of 6): qmp = 7: must be an…
        … and 6 more; `windlass doctor` has all
        q quit  ? help  Enter explain  p pause  ↑↓ select  ←→ sort
    "#]]
    .assert_eq(&text(&mut App::new(sight, Sorting::default()), 60));
}

#[test]
fn titles_are_bold_and_colours_say_how_urgent_it_is() {
    let looks = |colour: bool, line: &str| {
        let terminal = drawn(&mut app(), 150, Paint { colour });
        let screen = terminal.backend().to_string();
        let row = screen.lines().position(|shown| shown.contains(line)).unwrap();
        let cell = &terminal.backend().buffer()[(0, u16::try_from(row).unwrap())];
        (cell.modifier, cell.fg)
    };
    assert_eq!(looks(true, "node 4 vCPU"), (Modifier::BOLD, Color::Reset));
    assert_eq!(looks(true, "VM▲"), (Modifier::BOLD, Color::Reset));
    assert_eq!(looks(true, "batch"), (Modifier::REVERSED, Color::Reset));
    assert_eq!(looks(true, "db1"), (Modifier::empty(), Color::Yellow));
    assert_eq!(looks(true, "mail"), (Modifier::empty(), Color::Red));
    assert_eq!(looks(false, "mail"), (Modifier::empty(), Color::Reset));
}

fn app() -> App {
    App::new(sight(), Sorting::default())
}

fn drawn(app: &mut App, columns: u16, paint: Paint) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(columns, 16)).unwrap();
    terminal.draw(|frame| draw(frame, app, paint)).unwrap();
    terminal
}

fn text(app: &mut App, columns: u16) -> String {
    let screen = drawn(app, columns, Paint { colour: true }).backend().to_string();
    let line = |line: &str| format!("{}\n", line.trim_matches('"').trim_end());
    screen.lines().map(line).collect::<String>().trim_end().to_owned() + "\n"
}

fn shown(columns: u16) -> String {
    text(&mut app(), columns)
}

fn sight() -> Sight {
    let room = Waiting::Room { wanted: size(3, 768), permit: size(2, 768) };
    let vms = vec![
        VmStatus { online: Some(MilliCpu::from_cores(2)), ..vm("batch", vec![Waiting::AtGoal]) },
        VmStatus {
            goal: Some(size(3, 768)),
            signals: Signals { load: Some(2.7), ..signals() },
            ..vm("db1", vec![room])
        },
        VmStatus {
            signals: Signals::default(),
            ..vm("mail", vec![Waiting::Signals { since: Some(ago(20)) }])
        },
        VmStatus { silent_since: Some(ago(12)), ..vm("stuck", vec![Waiting::HypervisorLost]) },
        VmStatus {
            priority: 5,
            session: SessionState::Suspended,
            ..vm("web", vec![Waiting::AtGoal])
        },
    ];
    let changed = |vm: &str, at, from, to| Changed { vm: VmName::on_host(vm), at, from, to };
    let changes = vec![
        changed("batch", ago(130), size(4, 768), size(2, 768)),
        changed("db1", ago(20), size(1, 512), size(2, 768)),
    ];
    Sight {
        state: HostStatus {
            at: NOW,
            frozen: true,
            ordered: None,
            host_available: Some(Bytes::from_mib(1_536)),
            node: Some(NodeStatus {
                room: size(4, 4096),
                reserved: size(5, 4096),
                vms: Vec::new(),
            }),
            vms,
        },
        entries: vec![entry("gone", None), entry("web", Some(ago(0)))],
        changes: changes.into_iter().map(|changed| (changed.vm.clone(), changed)).collect(),
        reports: Vec::new(),
    }
}

fn entry(name: &str, paused_until: Option<Moment>) -> VmEntry {
    VmEntry {
        name: VmName::on_host(name),
        state: VmState::Managed,
        file: None,
        monitor: Some(format!("/run/vms/{name}/qmp.sock").into()),
        size: None,
        paused_until,
        ordered: None,
        problems: Vec::new(),
    }
}

fn vm(name: &str, waiting: Vec<Waiting>) -> VmStatus {
    VmStatus {
        name: VmName::on_host(name),
        mode: Mode::Act,
        priority: 0,
        bounds: Bounds { min: size(1, 512), max: size(4, 4096) },
        seen: Some(Seen {
            plugged: MilliCpu::from_cores(2),
            limit: None,
            found_limit: None,
            memory: MemorySeen {
                boot: Bytes::from_mib(512),
                requested: Bytes::from_mib(256),
                size: Bytes::from_mib(256),
            },
            state: RunState::Running,
        }),
        online: Some(MilliCpu::from_cores(1)),
        upper: Some(size(2, 768)),
        signals: signals(),
        goal: Some(size(1, 768)),
        reason: None,
        permit: Some(size(2, 768)),
        consent: None,
        session: SessionState::Active,
        waiting,
        silent_since: None,
        unit: None,
        window: None,
        target: None,
        limit_counts: None,
    }
}

fn signals() -> Signals {
    let mib = |mib| Some(Bytes::from_mib(mib));
    Signals { load: Some(0.03), over: None, used: mib(110), total: mib(730) }
}

fn size(cpus: u64, mib: u64) -> Resources {
    Resources::new(MilliCpu::from_cores(cpus), Bytes::from_mib(mib))
}

fn ago(seconds: u64) -> Moment {
    Moment::from_millis(NOW.millis() - seconds * 1_000)
}
