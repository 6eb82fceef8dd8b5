//! A cluster's pods and their nodes, as transcripts.

use crate::cluster::*;
use expect_test::{Expect, expect};
use std::fmt::Write;
use windlass_plugin_core::Pods;
use windlass_plugin_core::pods::{Freed, Outcome, Settled};
use windlass_protocol::VmName;
use windlass_protocol::pod::Pod;

#[test]
fn a_pod_is_placed_and_grows_and_the_next_one_goes_elsewhere() {
    let mut story = Story::of(&[("n1", 6), ("n2", 4)]);
    story.see(on("n1", other("daemon", 1)));
    story.filter(&vm("a", 1));
    story.place(&vm("a", 1), "n1");
    story.settle("a", Outcome::Bound);
    story.see(on("n1", vm("a", 1)));
    story.ask("a", 1, 3);
    story.ask("a", 3, 4);
    story.filter(&vm("b", 2));
    story.place(&vm("b", 2), "n1");
    story.place(&vm("b", 2), "n2");
    story.settle("b", Outcome::Bound);
    story.see(on("n2", vm("b", 2)));
    story.ask("b", 2, 2);
    story.filter(&vm("c", 3));
    story.place(&vm("c", 3), "n1");
    story.ask("a", 4, 2);
    story.waiting("n1");
    story.ask("a", 2, 2);
    story.waiting("n1");
    story.place(&vm("c", 3), "n1");
    story.ask("a", 2, 3);
    story.check(expect![[r#"
        daemon is seen on node n1
          for a: node n1: score 8
          for a: node n2: score 7
        a is to be placed on n1: 1 vCPU / 1GiB is reserved
        the API server has bound a: it is there
        a is seen on node n1
        a asks for 3 vCPU / 3GiB: 3 vCPU / 3GiB
        a asks for 4 vCPU / 4GiB: 4 vCPU / 4GiB
          for b: node n1: 2 of cpu asked, 1 of 5 free
          for b: node n2: score 5
        b is to be placed on n1: refused: node n1: 2 of cpu asked, 1 of 5 free
        b is to be placed on n2: 2 vCPU / 2GiB is reserved
        the API server has bound b: it is there
        b is seen on node n2
        b asks for 2 vCPU / 2GiB: 2 vCPU / 2GiB
          for c: node n1: 3 of cpu asked, 1 of 5 free
          for c: node n2: 3 of cpu asked, 2 of 4 free
        c is to be placed on n1: refused: node n1: 3 of cpu asked, 1 of 5 free
        a asks for 2 vCPU / 2GiB: 2 vCPU / 2GiB
        to be looked at again for n1: 
        a asks for 2 vCPU / 2GiB: 2 vCPU / 2GiB
        to be looked at again for n1: c
        c is to be placed on n1: 3 vCPU / 3GiB is reserved
        a asks for 3 vCPU / 3GiB: 2 vCPU / 2GiB
          2 vCPU of 3 vCPU: 0 vCPU of the node's 5 vCPU is free; default/c has 3 vCPU
          2GiB of 3GiB: 0B of the node's 5GiB is free; default/c has 3GiB
        n1: 5 vCPU / 5GiB of 5 vCPU / 5GiB reserved, 1 vCPU / 1GiB others
        n2: 2 vCPU / 2GiB of 4 vCPU / 4GiB reserved, 0 vCPU / 0B others
    "#]]);
}

#[test]
fn a_binding_whose_answer_is_lost_keeps_its_room_until_the_pod_is_read() {
    let mut story = Story::of(&[("n1", 4), ("n2", 4)]);
    story.see(vm("a", 3));
    story.place(&vm("a", 3), "n1");
    story.say("the answer is lost");
    story.place(&vm("b", 2), "n1");
    story.place(&vm("a", 3), "n2");
    story.list(vec![vm("a", 3)]);
    story.read(vm("a", 3));
    story.say("the pod is touched");
    story.read(at("2", vm("a", 3)));
    story.place(&at("2", vm("a", 3)), "n2");
    story.say("the answer is lost");
    story.place(&at("2", vm("a", 3)), "n2");
    story.settle("a", Outcome::Refused);
    story.read(on("n2", at("2", vm("a", 3))));
    story.check(expect![[r#"
        a is seen on no node
        a is to be placed on n1: 3 vCPU / 3GiB is reserved
        the answer is lost
        b is to be placed on n1: refused: node n1: 2 of cpu asked, 1 of 4 free
        a is to be placed on n2: refused: node n2: the pod is placed on node n1 already
        the pods are listed again
        a is read on no node: its placement goes on
        the pod is touched
        a is read on no node: its placement ends, room comes free on n1
        a is to be placed on n2: 3 vCPU / 3GiB is reserved
        the answer is lost
        a is to be placed on n2: 3 vCPU / 3GiB is reserved already
        the API server refuses to bind a: its placement goes on
        a is read on node n2: it is there
        n1: 0 vCPU / 0B of 4 vCPU / 4GiB reserved, 0 vCPU / 0B others
        n2: 3 vCPU / 3GiB of 4 vCPU / 4GiB reserved, 0 vCPU / 0B others
    "#]]);
}

#[test]
fn a_pod_that_is_deleted_while_it_is_bound_leaves_nothing_behind() {
    let mut story = Story::of(&[("n1", 4)]);
    story.see(vm("a", 3));
    story.place(&vm("a", 3), "n1");
    story.place(&vm("b", 2), "n1");
    story.see(Pod { is_terminating: true, ..at("2", vm("a", 3)) });
    story.gone("a");
    story.waiting("n1");
    story.settle("a", Outcome::Bound);
    story.see(on("n1", vm("a", 3)));
    story.place(&vm("a", 3), "n1");
    story.place(&Pod { uid: "another".into(), ..vm("a", 4) }, "n1");
    story.check(expect![[r#"
        a is seen on no node
        a is to be placed on n1: 3 vCPU / 3GiB is reserved
        b is to be placed on n1: refused: node n1: 2 of cpu asked, 1 of 4 free
        a is seen on no node, being deleted
        a is gone, room comes free on n1
        to be looked at again for n1: b
        the API server has bound a: it is not placed
        a is seen on node n1
        a is to be placed on n1: refused: pod default/a has ended or is gone
        a is to be placed on n1: 4 vCPU / 4GiB is reserved
        n1: 4 vCPU / 4GiB of 4 vCPU / 4GiB reserved, 0 vCPU / 0B others
    "#]]);
}

/// A cluster, and what was said to it.
struct Story {
    pods: Pods<Held>,
    text: String,
}

// === impl Story ===

impl Story {
    fn of(nodes: &[(&str, u64)]) -> Self {
        Self { pods: cluster(nodes), text: String::new() }
    }

    fn see(&mut self, pod: Pod) {
        let place = pod.node.as_ref().map_or("no node".to_owned(), |node| format!("node {node}"));
        let deleted = if pod.is_terminating { ", being deleted" } else { "" };
        let line = format!("{} is seen on {place}{deleted}", pod.name.name);
        let freed = self.pods.pod_seen(pod);
        self.tell(&format!("{line}{}", shown(&freed)));
    }

    fn gone(&mut self, name: &str) {
        let freed = self.pods.pod_gone(&VmName::on_host(name), &format!("uid of {name}"));
        self.tell(&format!("{name} is gone{}", shown(&freed)));
    }

    fn list(&mut self, pods: Vec<Pod>) {
        let freed = self.pods.pods_listed(pods);
        self.tell(&format!("the pods are listed again{}", shown(&freed)));
    }

    fn filter(&mut self, pod: &Pod) {
        let nodes: Vec<String> = self.pods.nodes().map(|(name, _)| name.to_owned()).collect();
        for node in nodes {
            let said = match self.pods.fits(pod, &node) {
                Ok(()) => format!("node {node}: score {}", self.pods.score(pod, &node)),
                Err(why) => why.to_string(),
            };
            self.tell(&format!("  for {}: {said}", pod.name.name));
        }
    }

    fn place(&mut self, pod: &Pod, node: &str) {
        let said = match self.pods.place(pod, node) {
            Ok(placed) if placed.is_repeat => format!("{} is reserved already", placed.reserved),
            Ok(placed) => format!("{} is reserved", placed.reserved),
            Err(why) => format!("refused: {why}"),
        };
        self.tell(&format!("{} is to be placed on {node}: {said}", pod.name.name));
    }

    fn settle(&mut self, name: &str, outcome: Outcome) {
        let said = match &outcome {
            Outcome::Bound => "the API server has bound",
            Outcome::Refused => "the API server refuses to bind",
            Outcome::Read(_) => "the API server has no other word on",
        };
        self.outcome(format!("{said} {name}"), name, outcome);
    }

    fn read(&mut self, pod: Pod) {
        let name = pod.name.name.clone();
        let place = pod.node.as_ref().map_or("no node".to_owned(), |node| format!("node {node}"));
        self.outcome(format!("{name} is read on {place}"), &name, Outcome::Read(Some(pod.into())));
    }

    fn outcome(&mut self, said: String, name: &str, outcome: Outcome) {
        let uid = format!("uid of {name}");
        let settled = match self.pods.settle(&VmName::on_host(name), &uid, outcome) {
            Settled::Bound => "it is there".to_owned(),
            Settled::Released(freed) => format!("its placement ends{}", shown(&freed)),
            Settled::Open => "its placement goes on".to_owned(),
            Settled::Unknown => "it is not placed".to_owned(),
        };
        self.tell(&format!("{said}: {settled}"));
    }

    fn ask(&mut self, name: &str, last: u64, wanted: u64) {
        let granted = ask(&self.pods, name, last, wanted);
        self.tell(&format!("{name} asks for {}: {}", cu(wanted), granted.permit));
        for short in granted.short {
            self.tell(&format!("  {short}"));
        }
    }

    fn waiting(&mut self, node: &str) {
        let waiting = self.pods.waiting_for(node).into_iter();
        let waiting: Vec<_> = waiting.map(|refused| refused.name.name.clone()).collect();
        self.tell(&format!("to be looked at again for {node}: {}", waiting.join(", ")));
    }

    fn say(&mut self, line: &str) {
        self.tell(line);
    }

    fn tell(&mut self, line: &str) {
        writeln!(self.text, "{line}").unwrap();
    }

    fn check(mut self, expected: Expect) {
        for node in self.pods.status() {
            let (room, reserved, others) = (node.room, node.reserved, node.others);
            let line = format!("{}: {reserved} of {room} reserved, {others} others", node.name);
            self.tell(&line);
        }
        expected.assert_eq(&self.text);
    }
}

fn shown(freed: &Freed) -> String {
    let nodes: Vec<&str> = freed.nodes().collect();
    if nodes.is_empty() {
        String::new()
    } else {
        format!(", room comes free on {}", nodes.join(", "))
    }
}
