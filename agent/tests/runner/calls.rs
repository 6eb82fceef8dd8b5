//! What an informant calls for, and what it is answered.

use super::node::{Node, Vm, size};
use super::plugin::Answers;
use windlass_kit::client::Answer;
use windlass_protocol::AgentId;
use windlass_protocol::informant::{
    Empty, Expected, ID, Identified, MoreResources, RESUME, SUSPEND, TRY_UPSCALE,
};
use windlass_protocol::status::SessionState;

#[tokio::test(start_paused = true)]
async fn each_answer_has_the_session_s_id_and_a_higher_number() {
    let (_node, vm) = active().await;
    let (id, mut last) = (vm.guest.session(), 0);
    for _ in 0..5 {
        let said = Identified::decode_reply(&vm.guest.call(ID, Empty.encode()).await.body).unwrap();
        assert_eq!(said.id, id);
        assert!(said.sequence.number() > last);
        last = said.sequence.number();
    }
}

#[tokio::test(start_paused = true)]
async fn a_guest_that_needs_more_gets_a_unit_at_once() {
    let (node, vm) = active().await;
    let more = MoreResources { expected: vm.guest.session(), cpu: false, memory: true };
    assert_eq!(vm.guest.call(TRY_UPSCALE, more.encode()).await.status, 200);
    node.until("it has a unit more", || vm.upper().mem >= size(0, 512).mem).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_means_another_session_is_404_and_changes_nothing() {
    let (node, vm) = active().await;
    let other = AgentId::from_u128(7);
    let more = MoreResources { expected: other, cpu: true, memory: true };
    for (endpoint, body) in [
        (RESUME, Expected(other).encode()),
        (SUSPEND, Expected(other).encode()),
        (TRY_UPSCALE, more.encode()),
    ] {
        let answer = vm.guest.call(endpoint, body).await;
        assert_eq!(words(&answer), (404, format!("AgentID \"{other}\" not found")));
    }
    node.pass(30).await;
    assert_eq!(vm.upper(), size(1, 256));
    assert_eq!(node.status(&vm).unwrap().session, SessionState::Active);
}

#[tokio::test(start_paused = true)]
async fn a_suspended_agent_does_not_move_the_vm_until_it_is_resumed() {
    let (node, vm) = active().await;
    let expected = Expected(vm.guest.session());
    assert_eq!(vm.guest.call(SUSPEND, expected.encode()).await.status, 200);
    let more = MoreResources { expected: expected.0, cpu: true, memory: true };
    let answer = vm.guest.call(TRY_UPSCALE, more.encode()).await;
    assert_eq!(words(&answer), (400, "Cannot process upscale while suspended".to_owned()));
    vm.guest.state().load = 3.4;
    node.pass(60).await;
    assert_eq!(vm.upper(), size(1, 256));
    assert_eq!(vm.guest.call(RESUME, expected.encode()).await.status, 200);
    node.until_has(&vm, size(4, 1024)).await;
}

#[tokio::test(start_paused = true)]
async fn suspend_is_answered_when_nothing_of_this_agent_is_under_way() {
    let (node, vm) = active().await;
    node.plugin.set(Answers::Stalls);
    let before = node.plugin.asked(&vm.name).len();
    vm.guest.state().load = 3.4;
    node.until("a permit is asked for", || node.plugin.asked(&vm.name).len() > before).await;
    let started = node.clock.now();
    let expected = Expected(vm.guest.session());
    let answer = vm.guest.call(SUSPEND, expected.encode()).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    // The plugin stalls until the agent hangs up on it.
    assert!(node.clock.now() > started, "it was not answered before");
    let asked = node.plugin.asked(&vm.name).len();
    node.pass(30).await;
    assert_eq!(node.plugin.asked(&vm.name).len(), asked, "nothing is asked while suspended");
}

#[tokio::test(start_paused = true)]
async fn suspend_says_so_when_something_stays_under_way_and_is_in_force() {
    let (node, vm) = active().await;
    vm.fake.hold();
    let looks = vm.fake.looks();
    node.until("a look is under way", || vm.fake.looks() > looks).await;
    let expected = Expected(vm.guest.session());
    let answer = vm.guest.call(SUSPEND, expected.encode()).await;
    let text = "suspended, but requests of this agent are still under way";
    assert_eq!(words(&answer), (500, text.to_owned()));
    node.until("it is suspended", || {
        node.status(&vm).is_some_and(|status| status.session == SessionState::Suspended)
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_agent_whose_vm_is_gone_knows_no_session() {
    let (node, vm) = active().await;
    vm.fake.end();
    node.until("it is dropped", || node.status(&vm).is_none()).await;
    assert_eq!(vm.guest.call(ID, Empty.encode()).await.status, 404);
}

/// A VM whose session counts.
async fn active() -> (Node, Vm) {
    let node = Node::start();
    let vm = node.add("a").await;
    node.until("its session counts", || {
        node.status(&vm).is_some_and(|status| status.session == SessionState::Active)
    })
    .await;
    (node, vm)
}

fn words(answer: &Answer) -> (u16, String) {
    (answer.status, answer.text())
}
