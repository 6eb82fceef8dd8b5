//! What differs between the versions of the protocol, as transcripts.
#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "support/releases.rs"]
mod releases;
#[expect(dead_code, reason = "each test of the informant needs a part of it")]
#[path = "support/story.rs"]
mod story;

use expect_test::expect;
use story::{Story, id, mib, secs};
use windlass_informant_core::wire::Request;
use windlass_informant_core::{Ask, Informant, Settings};
use windlass_protocol::informant::{AgentDesc, DOWNSCALE, ResourceMessage, v1_2};
use windlass_protocol::{InformantVersion, Resources, Versions};

/// Who says neither who he is nor which message this is.
const NOBODY: u128 = 0;

#[test]
fn the_latest_that_both_speak_is_chosen_or_the_words_are_the_reference_s() {
    let ranges = || {
        let known = InformantVersion::KNOWN.into_iter();
        known.clone().flat_map(move |min| {
            known.clone().filter(move |max| min <= *max).map(move |max| Versions { min, max })
        })
    };
    for (ours, theirs) in ranges().flat_map(|ours| ranges().map(move |theirs| (ours, theirs))) {
        let mut informant = Informant::new(Settings { versions: ours, ..Settings::default() });
        let agent_id = id(1);
        let desc = AgentDesc { agent_id, serve_addr: "10.0.2.2:80".into(), versions: theirs };
        match (ours.latest_shared(theirs), informant.register(&desc)) {
            (Some(version), Ok(())) => assert!(ours.contains(version) && theirs.contains(version)),
            (None, Err(refusal)) => {
                let words = format!("Protocol version mismatch: Need {ours} but got {theirs}");
                assert_eq!((refusal.to_string(), refusal.status()), (words, 400));
            }
            (shared, answer) => panic!("{ours} and {theirs} share {shared:?}, and {answer:?}"),
        }
    }
}

#[test]
fn a_size_without_a_sender_counts_as_of_the_agent_that_counts_and_is_examined_anew() {
    let mut story = Story::new();
    story.machine(4, &[], &[]);
    story.grow(mib(512));
    story.register_up_to(1, 3);
    story.run(secs(3));
    story.downscale_numbered(NOBODY, 0, 2, mib(768));
    story.run(secs(1));
    story.uses(mib(900));
    story.run(secs(1));
    story.downscale_numbered(NOBODY, 0, 2, mib(768));
    story.upscale_numbered(NOBODY, 0, 4, mib(1024));
    story.run(secs(1));
    story.downscale_numbered(1, 1, 1, mib(1024));
    story.check(expect![[r#"
        0.00s < agent 1 registers
        0.00s > AddedIsMovable
        0.00s > Note(10s)
        0.00s > agent 1 is registered, v1.2, metrics at 10301
        0.10s > Resume to agent 1: #2
        3.00s < #0 of 0: live with 2 vCPU / 768MiB?
        3.00s   yes: 100MiB in use and 139.7MiB to spare fit in 718MiB, which is 768MiB less 50MiB for the kernel
        3.00s > Remember({2, 3})
        3.00s > OfflineCpu(3)
        3.00s > OfflineCpu(2)
        4.00s > MoreMemory to agent 1: #3
        5.00s > MoreMemory to agent 1: #4
        5.00s < #0 of 0: live with 2 vCPU / 768MiB?
        5.00s   no: 900MiB in use and 139.7MiB to spare do not fit in 718MiB, which is 768MiB less 50MiB for the kernel
        5.00s < #0 of 0: use 4 vCPU / 1GiB
        5.00s > OnlineCpu(2)
        5.00s > OnlineCpu(3)
        5.00s > Remember({})
        6.00s > MoreMemory to agent 1: #5
        6.00s < #1 of 1: live with 1 vCPU / 1GiB?
        6.00s   yes: 1GiB is no less than the VM has
    "#]]);
}

#[test]
fn a_size_without_a_sender_is_nobody_s_where_sizes_have_one() {
    let mut story = Story::with_agent(1);
    story.downscale_numbered(NOBODY, 0, 1, mib(512));
    story.upscale_numbered(NOBODY, 0, 1, mib(512));
    story.register_up_to(2, 3);
    story.run(secs(1));
    story.downscale_numbered(NOBODY, 0, 1, mib(512));
    story.unregister(2);
    story.downscale_numbered(NOBODY, 0, 1, mib(512));
    story.check(expect![[r#"
        0.00s < #0 of 0: live with 1 vCPU / 512MiB?
        0.00s   400: Agent ID 00000000-0000-0000-0000-000000000000 is not the active Agent
        0.00s < #0 of 0: use 1 vCPU / 512MiB
        0.00s   400: Agent ID 00000000-0000-0000-0000-000000000000 is not the active Agent
        0.00s < agent 2 registers
        0.00s > Suspend to agent 1: #3
        0.00s > agent 2 is registered, v1.2, metrics at 10301
        0.10s > Resume to agent 2: #2
        1.00s < #0 of 0: live with 1 vCPU / 512MiB?
        1.00s   yes: 512MiB is no less than the VM has
        1.00s < agent 2 unregisters
        1.00s   Ok(Unregistered { was_active: true })
        1.00s < #0 of 0: live with 1 vCPU / 512MiB?
        1.00s   400: Agent ID 00000000-0000-0000-0000-000000000000 is not the active Agent
    "#]]);
}

#[test]
fn an_agent_is_asked_for_memory_from_v1_1_on() {
    let mut story = Story::with_older(1);
    story.run(secs(1));
    story.uses(mib(450));
    story.run(secs(12));
    story.register_up_to(2, 2);
    story.run(secs(2));
    story.check(expect![[r#"
        0.00s < agent 1 registers
        0.00s > AddedIsMovable
        0.00s > Note(15s)
        0.00s > agent 1 is registered, v1.0, metrics at 10301
        0.10s > Resume to agent 1: #2
        13.00s < agent 2 registers
        13.00s > Suspend to agent 1: #4
        13.00s > agent 2 is registered, v1.1, metrics at 10301
        13.10s > Resume to agent 2: #2
        13.10s > MoreMemory to agent 2: #3
        14.10s > MoreMemory to agent 2: #4
    "#]]);
}

#[test]
fn health_is_asked_from_v1_2_on() {
    let mut story = Story::new();
    story.limit(Versions { min: InformantVersion::V1_0, max: InformantVersion::V1_2 });
    // An agent that is not registered yet is not told that it is.
    story.while_called(Ask::Id, |story| story.health_check(1));
    for (agent, max) in [(1, 2), (2, 3), (3, 4)] {
        story.register_up_to(agent, max);
        story.run(secs(1));
        story.health_check(agent);
    }
    story.check(expect![[r#"
        0.00s < agent 1 registers
        0.00s < agent 1 asks whether it is registered
        0.00s   404: No Agent with ID 00000000-0000-0000-0000-000000000001 registered
        0.00s > AddedIsMovable
        0.00s > Note(15s)
        0.00s > agent 1 is registered, v1.1, metrics at 10301
        0.10s > Resume to agent 1: #2
        1.00s < agent 1 asks whether it is registered
        1.00s   400: health checks are not supported in protocol version v1.1
        1.00s < agent 2 registers
        1.00s > Suspend to agent 1: #3
        1.00s > agent 2 is registered, v1.2, metrics at 10301
        1.10s > Resume to agent 2: #2
        2.00s < agent 2 asks whether it is registered
        2.00s   yes
        2.00s < agent 3 registers
        2.00s > Suspend to agent 2: #3
        2.00s > agent 3 is registered, v1.2, metrics at 10301
        2.10s > Resume to agent 3: #2
        3.00s < agent 3 asks whether it is registered
        3.00s   yes
    "#]]);
}

#[test]
fn both_forms_of_a_size_are_read() {
    let resources = Resources { mem: mib(512), ..Resources::default() };
    let request = Request::decode(DOWNSCALE, &v1_2::Size(resources).encode()).unwrap();
    let message = ResourceMessage::from(v1_2::Size(resources));
    assert!(message.is_bare());
    assert_eq!(request, Request::Downscale(message));
}
