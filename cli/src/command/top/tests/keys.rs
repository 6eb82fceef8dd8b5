//! What keys do: what is selected, sorted, opened, asked and ordered.

use super::super::app::{App, Order, Wish};
use super::super::order::{Column, Sorting};
use super::super::table::plain;
use super::{app, entry, sight, text};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use expect_test::expect;
use windlass_protocol::{MilliCpu, Seen};

#[test]
fn arrows_and_letters_move_the_selection_and_stay_on_the_list() {
    let mut app = app();
    let mut at = |keys: &[KeyCode]| {
        press(&mut app, keys);
        selected(&app)
    };
    assert_eq!(at(&[]), "batch");
    assert_eq!(at(&[KeyCode::Down, KeyCode::Char('j')]), "mail");
    assert_eq!(at(&[KeyCode::Up]), "db1");
    assert_eq!(at(&[KeyCode::Char('k'), KeyCode::Up, KeyCode::Up]), "batch");
    assert_eq!(at(&[KeyCode::Char('G'), KeyCode::Down]), "web");
    assert_eq!(at(&[KeyCode::PageUp]), "batch");
}

#[test]
fn a_vm_stays_selected_wherever_it_stands_and_its_place_when_it_is_gone() {
    let mut app = app();
    press(&mut app, &[KeyCode::Down]);
    // By load, of which db1 has most.
    press(&mut app, &[KeyCode::Right; 4]);
    assert_eq!((app.sorting.by, order(&app)[0].as_str()), (Column::Load, "db1"));
    assert_eq!((selected(&app), app.table.selected()), ("db1".to_owned(), Some(0)));
    press(&mut app, &[KeyCode::Char('r')]);
    assert_eq!((selected(&app), app.table.selected()), ("db1".to_owned(), Some(4)));
    let mut without = sight();
    without.state.vms.retain(|vm| vm.name.name != "db1");
    app.see(Ok(without));
    assert_eq!(app.table.selected(), Some(3));
}

#[test]
fn each_column_sorts_its_own_way_round() {
    let sorted = |by| {
        let sorting = Sorting { by, reversed: false };
        order(&App::new(sight(), sorting)).join(" ")
    };
    assert_eq!(sorted(Column::Vm), "batch db1 mail stuck web");
    assert_eq!(sorted(Column::Cpu), "batch db1 mail stuck web");
    assert_eq!(sorted(Column::Used), "batch db1 stuck web mail");
    assert_eq!(sorted(Column::Goal), "db1 batch mail stuck web");
    assert_eq!(sorted(Column::Changed), "db1 batch mail stuck web");
    assert_eq!(sorted(Column::State), "mail stuck db1 web batch");
}

#[test]
fn vms_are_sorted_by_the_cpu_that_the_host_leaves_them() {
    let mut sight = sight();
    let [batch, _, mail, ..] = sight.state.vms.as_mut_slice() else { panic!("three VMs") };
    batch.seen = batch.seen.map(|seen| limited(seen, 250));
    mail.seen = mail.seen.map(|seen| limited(seen, 1_750));
    mail.online = Some(MilliCpu::from_cores(2));
    let by_cpu = Sorting { by: Column::Cpu, reversed: false };
    let shown: String = plain(&sight, by_cpu)
        .lines()
        .filter_map(|line| line.split_once("  ").filter(|_| line.contains("MiB ")))
        .map(|(vm, rest)| format!("{} {}\n", vm.trim(), rest.trim()[..9].trim()))
        .collect();
    expect![[r#"
        mail 1.75 of 2
        db1 1 of 2
        stuck 1 of 2
        web (p5) 1 of 2
        batch 0.25 of 2
    "#]]
    .assert_eq(&shown);
}

fn limited(seen: Seen, milli: u64) -> Seen {
    Seen { limit: Some(MilliCpu::from_milli(milli)), ..seen }
}

#[test]
fn a_pause_is_asked_for_and_any_other_key_is_a_no() {
    let mut app = app();
    let p = KeyCode::Char('p');
    assert_eq!(press(&mut app, &[p]), None);
    assert!(text(&mut app, 60).ends_with("\nPause batch?  1: 15 min  2: 1 h  3: 8 h  Esc: no\n"));
    for no in [KeyCode::Esc, KeyCode::Char('q'), KeyCode::Enter, p] {
        assert_eq!(press(&mut app, &[no]), None);
        assert_eq!(app.question, None);
        press(&mut app, &[p]);
    }
    let pause = Order::Pause("batch".to_owned(), 60);
    assert_eq!(press(&mut app, &[KeyCode::Char('2')]), Some(Wish::Order(pause)));
    // A VM that is paused is resumed.
    press(&mut app, &[KeyCode::End, p]);
    assert!(text(&mut app, 60).ends_with("\nResume web?  y: yes  Esc: no\n"));
    let resume = Order::Resume("web".to_owned());
    assert_eq!(press(&mut app, &[KeyCode::Char('y')]), Some(Wish::Order(resume)));
}

#[test]
fn the_answers_to_a_question_are_never_cut() {
    let mut sight = sight();
    sight.state.vms.truncate(1);
    sight.state.vms[0].name.name = "a-vm-with-a-name-that-goes-on-and-on".to_owned();
    sight.entries = vec![entry("a-vm-with-a-name-that-goes-on-and-on", None)];
    let mut app = App::new(sight, Sorting::default());
    press(&mut app, &[KeyCode::Char('p')]);
    assert!(text(&mut app, 50).ends_with("\nPause a-vm-wi…  1: 15 min  2: 1 h  3: 8 h  Esc: no\n"));
}

#[test]
fn what_an_order_led_to_stays_until_the_next_key() {
    let mut app = app();
    app.said = Some(Err("the host says no".to_owned()));
    assert!(text(&mut app, 60).contains("\n! the host says no\n"));
    press(&mut app, &[KeyCode::Down]);
    assert!(!text(&mut app, 60).contains("the host says no"));
}

#[test]
fn a_user_who_may_only_look_is_told_so_at_once() {
    let mut app = App { only_looks: true, ..app() };
    assert!(!text(&mut app, 150).contains("p pause"), "no key is shown that is refused");
    for open in [&[][..], &[KeyCode::Enter]] {
        press(&mut app, open);
        assert_eq!(press(&mut app, &[KeyCode::Char('p')]), None);
        assert_eq!(app.question, None);
        assert!(text(&mut app, 150).contains("! you may only look: root and members of group"));
    }
}

#[test]
fn a_story_is_opened_scrolled_and_left() {
    let mut app = app();
    assert_eq!(press(&mut app, &[KeyCode::Down, KeyCode::Enter]), Some(Wish::Look));
    assert_eq!(app.story(), Some("db1"));
    expect![[r#"
        db1
        The host is asked …













        Esc back  ↑↓ scroll  v every decision  p pause
    "#]]
    .assert_eq(&text(&mut app, 60));
    app.tell("db1", Err("the host answered 500: sorry".to_owned()));
    app.tell("web", Err("this is of another VM".to_owned()));
    assert!(text(&mut app, 60).contains("the host answered 500: sorry"));
    press(&mut app, &[KeyCode::Esc]);
    assert_eq!((app.story(), selected(&app)), (None, "db1".to_owned()));
}

#[test]
fn the_help_is_read_to_its_end_and_left() {
    let mut app = app();
    press(&mut app, &[KeyCode::Char('?')]);
    assert!(text(&mut app, 80).starts_with("windlass top  lines 1 to "));
    press(&mut app, &[KeyCode::End]);
    expect![[r#"
        windlass top  lines 15 to 28 of 28
          GOAL      what the load calls for, as vCPU/memory
          GRANTED   what the books allow the VM
          BOUNDS    least and most, as its file says
          CHANGED   when the last resize within an hour ended, ↑ to more, ↓ to less:
                    it ends when the VM has its goal, or gets another goal
          STATE     at goal, or what keeps the VM from its goal

          A narrow terminal leaves out BOUNDS, GRANTED, USED, CHANGED, GOAL, one by one:
          never the one by which the VMs are sorted.

        Colours (none where NO_COLOR is set):
          red        a part does not answer, and a person has to look: `windlass doctor`
          yellow     the VM waits for room, or for something else that it needs
          cyan       frozen, paused, observed, or not run by QEMU
        Esc back  ↑↓ scroll
    "#]]
    .assert_eq(&text(&mut app, 80));
    assert_eq!(press(&mut app, &[KeyCode::Char('q')]), None);
    assert_eq!(press(&mut app, &[KeyCode::Char('q')]), Some(Wish::Quit));
}

#[test]
fn control_c_ends_it_everywhere() {
    let end = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    for before in [&[][..], &[KeyCode::Enter], &[KeyCode::Char('?')], &[KeyCode::Char('p')]] {
        let mut app = app();
        press(&mut app, before);
        assert_eq!(app.press(end), Some(Wish::Quit), "{before:?}");
    }
}

fn press(app: &mut App, keys: &[KeyCode]) -> Option<Wish> {
    keys.iter().map(|key| app.press(KeyEvent::from(*key))).last().flatten()
}

fn selected(app: &App) -> String {
    app.lines[app.table.selected().unwrap()].vm.clone()
}

fn order(app: &App) -> Vec<String> {
    app.lines.iter().map(|line| line.vm.clone()).collect()
}
