//! What an agent tells of VMs for which it asks no permit at the moment: why it does not.
//!
//! An agent that may not act on a VM asks for none, so the plugin would hear nothing and people would read that the agent is silent.
//! It is no message of the reference's: a plugin of its kind refuses the body, which has no `protoVersion`, and changes nothing. The body
//! is JSON of [`Spoken`], POSTed to [`SPOKEN_PATH`] at the port of permits over TLS.

use super::told::Told;
use crate::{BadBody, VmName};
use serde::{Deserialize, Serialize};

/// Where it is POSTed.
pub const SPOKEN_PATH: &str = "/v1/told";

/// As many VMs are in one body, at most: some tens of KiB.
pub const MOST_SPOKEN: usize = 100;

/// What is told of some VMs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spoken {
    /// The VMs.
    pub vms: Vec<SpokenVm>,
}

/// What is told of a VM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpokenVm {
    /// Its pod.
    pub pod: VmName,
    /// What is told.
    pub told: Told,
}

// === impl Spoken ===

impl Spoken {
    /// The same, with each text cut to its limit.
    ///
    /// # Errors
    /// It says more than [`MOST_SPOKEN`].
    pub fn bounded(mut self) -> Result<Self, BadBody> {
        if self.vms.len() > MOST_SPOKEN {
            return Err(BadBody::field("vms", self.vms.len(), format!("at most {MOST_SPOKEN}")));
        }
        for vm in &mut self.vms {
            vm.told = Told::new(vm.told.goal, vm.told.why, &vm.told.words);
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugin::{LONGEST_WORDS, Why};

    #[test]
    fn what_is_told_is_read_as_it_was_said_and_cut_where_it_is_too_long() {
        let vm = |words: &str| SpokenVm {
            pod: VmName::on_host("a"),
            told: Told { goal: None, why: Why::NoInformant, words: words.into() },
        };
        let body = |vms| serde_json::to_vec(&Spoken { vms }).expect("it has no odd keys");
        let read =
            |body: &[u8]| serde_json::from_slice::<Spoken>(body).expect("it is one").bounded();
        let spoken = read(&body(vec![vm("No informant."), vm(&"é".repeat(500))])).expect("two");
        assert_eq!(spoken.vms[0], vm("No informant."));
        assert!(spoken.vms[1].told.words.len() <= LONGEST_WORDS);
        let later = r#"{"vms":[{"pod":{"namespace":"n","name":"a"},"told":{"why":"on-fire","words":"x"},"new":1}]}"#;
        assert_eq!(read(later.as_bytes()).expect("one").vms[0].told.why, Why::Other);
        let many = read(&body(vec![vm(""); MOST_SPOKEN + 1])).expect_err("one too many");
        assert!(many.to_string().contains("at most 100"), "{many}");
    }
}
