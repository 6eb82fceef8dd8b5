//! What differs between the versions of the informant's protocol, as seen by an agent.
#![expect(clippy::unwrap_used, reason = "tests")]

#[expect(dead_code, reason = "stories and versions each need a part of it")]
#[path = "support/story.rs"]
mod story;

use expect_test::expect;
use story::{Story, cu};
use windlass_agent_core::{Call, CallAnswer, NotNow};
use windlass_protocol::InformantVersion;

/// The story checks of each request that the version has it, and its sizes' numbers.
#[test]
fn a_vm_grows_and_shrinks_in_every_version() {
    for version in InformantVersion::KNOWN {
        let mut story = Story::begin();
        story.version = version;
        story.load(2.7);
        story.go(20);
        assert_eq!(story.upper(), cu(3), "{version}");
        story.load(0.1);
        story.go(40);
        let upper = story.upper();
        assert_eq!(upper.mem, cu(1).mem, "{version}");
        let counted = if version.numbers_sizes() { cu(1).cpu } else { cu(3).cpu };
        assert_eq!(upper.cpu, counted, "{version}: a late word without a number may un-park");
    }
}

#[test]
fn a_session_that_cannot_be_checked_is_kept_by_calls_and_ended_by_silence() {
    let mut story = Story::begin();
    story.version = InformantVersion::V1_1;
    story.go(60);
    story.forgets_us = true;
    story.go(40);
    story.check(expect![[r#"
        0.0s     to the informant: hello yes
        0.0s     to the plugin: may I have 1 vCPU / 1GiB? yes
        5.4s     to the plugin: may I have 1 vCPU / 1GiB? yes
        10.3s    to the plugin: may I have 1 vCPU / 1GiB? yes
        15.6s    to the plugin: may I have 1 vCPU / 1GiB? yes
        20.2s    to the plugin: may I have 1 vCPU / 1GiB? yes
        24.8s    to the plugin: may I have 1 vCPU / 1GiB? yes
        29.7s    to the plugin: may I have 1 vCPU / 1GiB? yes
        34.4s    to the plugin: may I have 1 vCPU / 1GiB? yes
        39.0s    to the plugin: may I have 1 vCPU / 1GiB? yes
        44.1s    to the plugin: may I have 1 vCPU / 1GiB? yes
        48.8s    to the plugin: may I have 1 vCPU / 1GiB? yes
        53.7s    to the plugin: may I have 1 vCPU / 1GiB? yes
        59.0s    to the plugin: may I have 1 vCPU / 1GiB? yes
        85.0s    to the informant: good-bye yes
        85.0s    to the informant: hello yes
        85.0s    to the plugin: may I have 1 vCPU / 1GiB? yes
        89.5s    to the plugin: may I have 1 vCPU / 1GiB? yes
        94.6s    to the plugin: may I have 1 vCPU / 1GiB? yes
        100.0s it has 1 vCPU / 1GiB, and waits: [AtGoal]
    "#]]);
}

#[test]
fn a_guest_calls_for_more_from_v1_1_on() {
    for version in InformantVersion::KNOWN {
        let mut story = Story::begin();
        story.version = version;
        story.go(5);
        let answer =
            story.calls(|expected| Call::MoreResources { expected, cpu: false, memory: true });
        match version {
            InformantVersion::V1_0 => {
                assert_eq!(answer, CallAnswer::NotNow(NotNow::MoreUnknown(version)));
            }
            _ => assert!(matches!(answer, CallAnswer::Ours(..)), "{version}: {answer:?}"),
        }
    }
}
