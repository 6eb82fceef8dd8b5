//! What an agent tells people of its VM.

use windlass_protocol::plugin::Why;
use windlass_protocol::{Moment, Waiting};

/// The weightiest reason is told: what an operator has to mend comes before what passes by itself.
#[test]
fn of_several_reasons_the_one_that_needs_a_person_is_told() {
    let until = Moment::from_millis(1);
    for (waiting, told) in [
        (vec![Waiting::AtGoal], Why::AtGoal),
        (vec![Waiting::Hypervisor, Waiting::Session], Why::NoInformant),
        (vec![Waiting::Refused { until }, Waiting::Paused { until }], Why::Paused),
        (vec![Waiting::Session, Waiting::HypervisorLost], Why::HypervisorSilent),
        (vec![Waiting::Informant, Waiting::Signals { since: None }], Why::NoInformant),
        (vec![Waiting::Plugin, Waiting::Consent], Why::NoPermit),
    ] {
        assert_eq!(waiting.iter().map(Why::from).min().unwrap(), told, "{waiting:?}");
    }
}
