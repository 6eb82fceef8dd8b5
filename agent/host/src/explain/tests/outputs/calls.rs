//! What an operator reads of a VM that has its goal: what calls for so much, and what does not.

use super::*;
use crate::explain::why::why;

/// A size that is rounded up or kept is not called for, and one that is clipped is not all of it.
#[test]
fn what_calls_for_a_size_is_told_by_what_made_it() {
    use {Clip as C, Signal as S};
    let lines: Vec<String> = [
        (S::Load, None, None),
        (S::Load, Some(C::Unit), None),
        (S::Load, Some(C::Held), None),
        (S::Load, Some(C::Maximum), None),
        (S::Load, Some(C::DriverMinimum), Some(C::Missing)),
        (S::Memory, None, None),
        (S::Memory, None, Some(C::Held)),
        (S::Memory, None, Some(C::DriverMaximum)),
        (S::Urgent, None, None),
        (S::Order, None, None),
        (S::Idle, None, None),
    ]
    .into_iter()
    .map(|(signal, cpu, mem)| {
        let has = size(2, 512);
        let vm = VmStatus {
            seen: Some(seen(2, 512)),
            online: Some(has.cpu),
            upper: Some(has),
            goal: Some(has),
            reason: Some(Reason { signal, cpu, mem }),
            ..idle()
        };
        let why = why(&page(vm));
        let [(_, more), ("Why not less", less)] = &why[..] else { panic!("{why:?}") };
        format!("{more}\n  {less:?}\n")
    })
    .collect();
    expect![[r#"
        Nothing calls for more: load 0.03 over 15s (aim: 0.9 per vCPU), 40MiB of 218MiB used (aim: 75%).
          "Load 0.03 over 15s (aim: 0.9 per vCPU) calls for 2 vCPU."
        Nothing calls for more: load 0.03 over 15s (aim: 0.9 per vCPU), 40MiB of 218MiB used (aim: 75%).
          "CPU is rounded up to 2 vCPU, because sizes move in whole compute units of 1 vCPU / 256MiB."
        Nothing calls for more: load 0.03 over 15s (aim: 0.9 per vCPU), 40MiB of 218MiB used (aim: 75%).
          ""
        CPU is held to its maximum of 2 vCPU (`max.cpu`).
          "Load 0.03 over 15s (aim: 0.9 per vCPU) calls for more than 2 vCPU."
        Nothing calls for more: load 0.03 over 15s (aim: 0.9 per vCPU), 40MiB of 218MiB used (aim: 75%).
          "Load 0.03 over 15s (aim: 0.9 per vCPU) calls for 2 vCPU; CPU is at 2 vCPU, with which QEMU was started, and which cannot be taken; memory stays at 512MiB: what is not known never shrinks a VM."
        Nothing calls for more: load 0.03 over 15s (aim: 0.9 per vCPU), 40MiB of 218MiB used (aim: 75%).
          "40MiB of 218MiB used (aim: 75%) calls for 512MiB."
        Nothing calls for more: load 0.03 over 15s (aim: 0.9 per vCPU), 40MiB of 218MiB used (aim: 75%).
          ""
        Memory is held to 512MiB, the most that QEMU was started to give (see `windlass vm check`).
          "40MiB of 218MiB used (aim: 75%) calls for more than 512MiB."
        Nothing calls for more: load 0.03 over 15s (aim: 0.9 per vCPU), 40MiB of 218MiB used (aim: 75%).
          "The guest asked for more at once."
        A person ordered this size.
          "A person ordered this size."
        Nothing calls for more: load 0.03 over 15s (aim: 0.9 per vCPU), 40MiB of 218MiB used (aim: 75%).
          "It is what the signals call for: load 0.03 over 15s (aim: 0.9 per vCPU), 40MiB of 218MiB used (aim: 75%)."
    "#]].assert_eq(&lines.concat());
}

#[test]
fn only_a_guest_that_declined_in_words_is_quoted() {
    let vm = VmStatus { waiting: Vec::new(), upper: Some(size(1, 512)), ..idle() };
    for (agreed, status, words) in [
        (true, "it fits", "It is shrinking."),
        (false, " ", "It is shrinking."),
        (false, "no\n", "Its words: “no”."),
    ] {
        let mut page = page(vm.clone());
        let consent = Consented { asked: size(1, 256), agreed, status: status.to_owned() };
        page.open = Some(Decision { consent: Some(consent), ..grows() });
        assert_eq!(why(&page)[1], ("Why not less", words.to_owned()));
    }
}
