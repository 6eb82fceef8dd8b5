//! What the books answer, as transcripts.
#![expect(clippy::unwrap_used, reason = "tests")]

use expect_test::{Expect, expect};
use std::fmt::Write;
use windlass_plugin_core::{Books, VmRecord};
use windlass_protocol::{Bytes, MilliCpu, Moment, Resources, VmName};

#[test]
fn growth_is_granted_from_what_is_free() {
    let mut story = Story::with_room(cu(6));
    story.enter("a", 0, cu(1));
    story.ask("a", cu(3));
    story.ask("a", cu(2));
    story.check(expect![[r#"
        0s a enters with 1 vCPU / 1GiB
        0s a asks for 3 vCPU / 3GiB: 3 vCPU / 3GiB
        0s a asks for 2 vCPU / 2GiB: 2 vCPU / 2GiB
        promised 2 vCPU / 2GiB of 6 vCPU / 6GiB
    "#]]);
}

#[test]
fn who_comes_too_late_gets_it_when_the_first_gives_back() {
    let mut story = Story::with_room(cu(4));
    story.enter("a", 0, cu(1));
    story.enter("b", 0, cu(1));
    story.ask("a", cu(3));
    story.ask("b", cu(3));
    story.wait(2);
    story.ask("b", cu(3));
    story.wait(2);
    story.ask("a", cu(1));
    story.ask("b", cu(3));
    story.notes("b");
    story.check(expect![[r#"
        0s a enters with 1 vCPU / 1GiB
        0s b enters with 1 vCPU / 1GiB
        0s a asks for 3 vCPU / 3GiB: 3 vCPU / 3GiB
        0s b asks for 3 vCPU / 3GiB: 1 vCPU / 1GiB
             1 vCPU of 3 vCPU: 0 vCPU of the node's 4 vCPU is free; default/a has 3 vCPU
             1GiB of 3GiB: 0B of the node's 4GiB is free; default/a has 3GiB
        2s b asks for 3 vCPU / 3GiB: 1 vCPU / 1GiB
             1 vCPU of 3 vCPU: 0 vCPU of the node's 4 vCPU is free; default/a has 3 vCPU
             1GiB of 3GiB: 0B of the node's 4GiB is free; default/a has 3GiB
        4s a asks for 1 vCPU / 1GiB: 1 vCPU / 1GiB
        4s b asks for 3 vCPU / 3GiB: 3 vCPU / 3GiB
        noted for b: 2 times from 0s to 2s, 3 vCPU / 3GiB was asked, 1 vCPU / 1GiB permitted
        promised 4 vCPU / 4GiB of 4 vCPU / 4GiB
    "#]]);
}

#[test]
fn what_is_asked_or_permitted_otherwise_is_noted_apart() {
    let mut story = Story::with_room(cu(4));
    story.enter("a", 0, cu(3));
    story.enter("b", 0, cu(1));
    for (asked_of_a, asked_of_b) in [(3, 3), (3, 4), (2, 4), (2, 4)] {
        story.ask("a", cu(asked_of_a));
        story.ask("b", cu(asked_of_b));
        story.wait(2);
    }
    let notes = story.books.notes(&VmName::on_host("b"));
    let noted: Vec<_> = notes.iter().map(|note| (note.times, note.asked, note.permit)).collect();
    assert_eq!(noted, [(1, cu(3), cu(1)), (1, cu(4), cu(1)), (2, cu(4), cu(2))]);
}

#[test]
fn a_claim_keeps_its_share_from_others_for_ten_seconds() {
    let mut story = Story::with_room(cu(6));
    story.enter("a", 0, cu(2));
    story.enter("b", 0, cu(2));
    story.enter("c", 0, cu(2));
    story.ask("b", cu(4));
    story.ask("c", cu(4));
    story.ask("a", cu(0));
    story.ask("c", cu(4));
    story.wait(10);
    story.ask("c", cu(4));
    story.check(expect![[r#"
        0s a enters with 2 vCPU / 2GiB
        0s b enters with 2 vCPU / 2GiB
        0s c enters with 2 vCPU / 2GiB
        0s b asks for 4 vCPU / 4GiB: 2 vCPU / 2GiB
             2 vCPU of 4 vCPU: 0 vCPU of the node's 6 vCPU is free; default/a has 2 vCPU, default/c has 2 vCPU
             2GiB of 4GiB: 0B of the node's 6GiB is free; default/a has 2GiB, default/c has 2GiB
        0s c asks for 4 vCPU / 4GiB: 2 vCPU / 2GiB
             2 vCPU of 4 vCPU: 0 vCPU of the node's 6 vCPU is free; default/a has 2 vCPU, default/b has 2 vCPU and wants 4 vCPU
             2GiB of 4GiB: 0B of the node's 6GiB is free; default/a has 2GiB, default/b has 2GiB and wants 4GiB
        0s a asks for 0 vCPU / 0B: 0 vCPU / 0B
        0s c asks for 4 vCPU / 4GiB: 3 vCPU / 3GiB
             3 vCPU of 4 vCPU: 2 vCPU of the node's 6 vCPU is free, of which 1 vCPU is kept for others; default/b has 2 vCPU and wants 4 vCPU, default/a has 0 vCPU
             3GiB of 4GiB: 2GiB of the node's 6GiB is free, of which 1GiB is kept for others; default/b has 2GiB and wants 4GiB, default/a has 0B
        10s c asks for 4 vCPU / 4GiB: 4 vCPU / 4GiB
        promised 6 vCPU / 6GiB of 6 vCPU / 6GiB
    "#]]);
}

#[test]
fn priority_goes_first() {
    let mut story = Story::with_room(cu(5));
    story.enter("high", 9, cu(1));
    story.enter("low", 0, cu(1));
    story.enter("other", 0, cu(3));
    story.ask("high", cu(3));
    story.ask("other", cu(1));
    story.ask("low", cu(3));
    story.ask("high", cu(3));
    story.check(expect![[r#"
        0s high enters with 1 vCPU / 1GiB
        0s low enters with 1 vCPU / 1GiB
        0s other enters with 3 vCPU / 3GiB
        0s high asks for 3 vCPU / 3GiB: 1 vCPU / 1GiB
             1 vCPU of 3 vCPU: 0 vCPU of the node's 5 vCPU is free; default/other has 3 vCPU, default/low has 1 vCPU
             1GiB of 3GiB: 0B of the node's 5GiB is free; default/other has 3GiB, default/low has 1GiB
        0s other asks for 1 vCPU / 1GiB: 1 vCPU / 1GiB
        0s low asks for 3 vCPU / 3GiB: 1 vCPU / 1GiB
             1 vCPU of 3 vCPU: 2 vCPU of the node's 5 vCPU is free, of which 2 vCPU is kept for others; default/high (priority 9) has 1 vCPU and wants 3 vCPU, default/other has 1 vCPU
             1GiB of 3GiB: 2GiB of the node's 5GiB is free, of which 2GiB is kept for others; default/high (priority 9) has 1GiB and wants 3GiB, default/other has 1GiB
        0s high asks for 3 vCPU / 3GiB: 3 vCPU / 3GiB
        promised 5 vCPU / 5GiB of 5 vCPU / 5GiB
    "#]]);
}

#[test]
fn nobody_grows_while_the_node_is_over() {
    let mut story = Story::with_room(cu(4));
    story.enter("a", 0, cu(2));
    story.enter("b", 0, cu(1));
    story.ask("a", cu(2));
    story.ask("b", cu(1));
    story.see("a", Resources { cpu: MilliCpu::from_cores(5), ..cu(2) });
    story.ask("b", cu(2));
    story.see("a", cu(2));
    story.ask("b", cu(2));
    story.check(expect![[r#"
        0s a enters with 2 vCPU / 2GiB
        0s b enters with 1 vCPU / 1GiB
        0s a asks for 2 vCPU / 2GiB: 2 vCPU / 2GiB
        0s b asks for 1 vCPU / 1GiB: 1 vCPU / 1GiB
        0s a is seen to have 5 vCPU / 2GiB
        0s b asks for 2 vCPU / 2GiB: 1 vCPU / 2GiB
             1 vCPU of 2 vCPU: 2 vCPU more is reserved than the node's 4 vCPU; default/a has 5 vCPU
        0s a is seen to have 2 vCPU / 2GiB
        0s b asks for 2 vCPU / 2GiB: 2 vCPU / 2GiB
        promised 4 vCPU / 4GiB of 4 vCPU / 4GiB
    "#]]);
}

#[test]
fn a_vm_that_nobody_speaks_for_counts_with_what_it_is_seen_to_have() {
    let mut story = Story::with_room(cu(6));
    story.enter("a", 0, cu(4));
    story.see("a", cu(3));
    story.ask("a", cu(2));
    story.see("a", cu(1));
    story.count("a", cu(3));
    story.see("a", cu(1));
    story.check(expect![[r#"
        0s a enters with 4 vCPU / 4GiB
        0s a is seen to have 3 vCPU / 3GiB
        0s a asks for 2 vCPU / 2GiB: 2 vCPU / 2GiB
        0s a is seen to have 1 vCPU / 1GiB
        0s a counts with 3 vCPU / 3GiB
        0s a is seen to have 1 vCPU / 1GiB
        promised 1 vCPU / 1GiB of 6 vCPU / 6GiB
    "#]]);
}

#[test]
fn what_is_said_to_be_given_back_counts_until_it_is_seen_to_be_gone() {
    let mut story = Story::with_room(cu(4));
    story.enter("a", 0, cu(3));
    story.enter("b", 0, cu(1));
    story.ask("a", cu(3));
    story.see("a", cu(3));
    story.ask("a", cu(1));
    story.ask("b", cu(2));
    story.see("a", cu(1));
    story.ask("b", cu(2));
    story.check(expect![[r#"
        0s a enters with 3 vCPU / 3GiB
        0s b enters with 1 vCPU / 1GiB
        0s a asks for 3 vCPU / 3GiB: 3 vCPU / 3GiB
        0s a is seen to have 3 vCPU / 3GiB
        0s a asks for 1 vCPU / 1GiB: 1 vCPU / 1GiB
        0s b asks for 2 vCPU / 2GiB: 1 vCPU / 1GiB
             1 vCPU of 2 vCPU: 0 vCPU of the node's 4 vCPU is free; default/a has 3 vCPU
             1GiB of 2GiB: 0B of the node's 4GiB is free; default/a has 3GiB
        0s a is seen to have 1 vCPU / 1GiB
        0s b asks for 2 vCPU / 2GiB: 2 vCPU / 2GiB
        promised 3 vCPU / 3GiB of 4 vCPU / 4GiB
    "#]]);
}

#[test]
fn minima_that_cannot_all_be_had_are_reported() {
    let mut books = Books::new(cu(3));
    let record = VmRecord { min: cu(2), ..VmRecord::default() };
    books.enter(VmName::on_host("a"), record, cu(2));
    assert_eq!(books.minima_over(), None);
    books.enter(VmName::on_host("b"), record, cu(2));
    assert_eq!(books.minima_over(), Some(cu(1)));
    books.set_room(cu(4));
    assert_eq!(books.minima_over(), None);
}

#[test]
fn a_stranger_gets_nothing() {
    let mut books = Books::new(cu(3));
    let answer = books.request(Moment::default(), &VmName::on_host("x"), cu(1));
    assert_eq!(
        answer.unwrap_err().to_string(),
        "pod not found: no vm default/x in the books of this node"
    );
}

/// Books, and what was said to them.
struct Story {
    books: Books,
    now: u64,
    text: String,
}

impl Story {
    fn with_room(room: Resources) -> Self {
        Self { books: Books::new(room), now: 0, text: String::new() }
    }

    fn enter(&mut self, name: &str, priority: i32, ceiling: Resources) {
        let record = VmRecord { priority, grain: cu(1), ..VmRecord::default() };
        self.books.enter(VmName::on_host(name), record, ceiling);
        self.tell(&format!("{name} enters with {ceiling}"));
    }

    fn see(&mut self, name: &str, has: Resources) {
        self.books.witness(&VmName::on_host(name), has);
        self.tell(&format!("{name} is seen to have {has}"));
    }

    fn count(&mut self, name: &str, has: Resources) {
        self.books.count(&VmName::on_host(name), has);
        self.tell(&format!("{name} counts with {has}"));
    }

    fn ask(&mut self, name: &str, wanted: Resources) {
        let now = Moment::from_millis(self.now * 1000);
        let granted = self.books.request(now, &VmName::on_host(name), wanted).unwrap();
        self.tell(&format!("{name} asks for {wanted}: {}", granted.permit));
        for short in granted.short {
            writeln!(self.text, "     {short}").unwrap();
        }
    }

    fn wait(&mut self, seconds: u64) {
        self.now += seconds;
    }

    fn notes(&mut self, name: &str) {
        for note in self.books.notes(&VmName::on_host(name)) {
            writeln!(
                self.text,
                "noted for {name}: {} times from {}s to {}s, {} was asked, {} permitted",
                note.times,
                note.first.millis() / 1000,
                note.last.millis() / 1000,
                note.asked,
                note.permit
            )
            .unwrap();
        }
    }

    fn tell(&mut self, line: &str) {
        writeln!(self.text, "{}s {line}", self.now).unwrap();
    }

    fn check(mut self, expected: Expect) {
        let status = self.books.status(Moment::from_millis(self.now * 1000));
        writeln!(self.text, "promised {} of {}", status.reserved, status.room).unwrap();
        expected.assert_eq(&self.text);
    }
}

fn cu(count: u64) -> Resources {
    Resources { cpu: MilliCpu::from_cores(count), mem: Bytes::from_gib(count) }
}
