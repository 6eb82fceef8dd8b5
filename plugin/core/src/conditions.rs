//! Whether a VM follows its load, and why not, for people: from what the books know of it, and what its agent told.
//!
//! What a plugin knows by itself comes before what an agent tells: an agent that is gone tells nothing, and one that waits for room
//! cannot know why there is none. A condition names no other VM: whoever reads a pod may not read those of other tenants.
//!
//! [`Pacing`] says which conditions are written.

mod pacing;

pub use pacing::{Due, Look, Pacing};

use crate::books::telling::Known;
use crate::stays::Stays;
use std::time::Duration;
use windlass_protocol::config::Problem;
use windlass_protocol::plugin::{Told, Why};
use windlass_protocol::timing::ASK_EVERY;
use windlass_protocol::vm_view::{Condition, Scaling};
use windlass_protocol::{Held, Moment, Shortage};

/// An agent that has asked for nothing for so long is gone, or cannot reach the plugin: it missed several turns.
pub const SILENT_AFTER: Duration = Duration::from_secs(30);
const _: () = assert!(3 * ASK_EVERY.as_millis() < SILENT_AFTER.as_millis());

/// Of a VM that is given what it was permitted.
const PERMITTED: &str = "The VM is permitted what its load calls for, and is being resized.";

/// What is known of a VM.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    /// What the books know.
    pub known: &'a Known,
    /// What is wrong with its annotations.
    pub problems: &'a [Problem],
    /// Why its pod is not resized, if it were to be.
    pub not_resized: Option<&'static str>,
    /// Why it does not leave its node, which VMs are to leave.
    pub stays: Option<Stays>,
    /// From then on its agent would have been heard.
    pub listening_since: Moment,
}

impl Facts<'_> {
    /// The condition of the VM at this moment.
    pub fn judge(&self, now: Moment) -> Condition {
        let (reason, message) = self.reason(now);
        Condition { reason, message }
    }

    fn reason(&self, now: Moment) -> (Scaling, String) {
        let Self { known, problems, not_resized, stays, .. } = self;
        if known.moves {
            let words = "The VM is about to move to another node, and keeps its size until then.";
            return (Scaling::Moving, words.to_owned());
        }
        // An agent that never understood the annotations of a VM asks for nothing.
        if let Some(problem) = problems.first() {
            return (Scaling::AnnotationsInvalid, format!("An annotation is invalid: {problem}."));
        }
        // Whoever empties a node waits for this VM, whatever its agent says.
        if let Some(why) = stays {
            let words = format!("The node is cordoned, and the VM cannot leave it: {why}.");
            return (Scaling::NodeCordoned, words);
        }
        if let Some(words) = self.silence(now) {
            return (Scaling::AgentSilent, words);
        }
        if let Some(said) = known.short.iter().map(of_shortage).min_by_key(|(reason, _)| *reason) {
            return said;
        }
        if known.is_permitted() {
            return (Scaling::Following, PERMITTED.to_owned());
        }
        let Some(told) = &known.told else {
            let words = match known.heard {
                Some(_) => "The VM has what its agent asked for.",
                None => "No agent has asked for the VM yet.",
            };
            return (Scaling::Following, words.to_owned());
        };
        let reason = of_agent(told);
        match (reason, not_resized) {
            (Scaling::PermitWaits, Some(why)) => {
                (Scaling::PodNotResized, format!("The pod of the VM is not resized: {why}."))
            }
            (_, _) => (reason, told.words.to_string()),
        }
    }

    /// How long its agent is silent already, if it is for too long.
    fn silence(&self, now: Moment) -> Option<String> {
        let here = self.known.here_since.map(|here| here.max(self.listening_since));
        let since = now.since(self.known.heard.or(here).unwrap_or(self.listening_since));
        if since < SILENT_AFTER {
            return None;
        }
        Some(match self.known.heard {
            Some(_) => format!(
                "The agent of the node has not asked for the VM for {} s: the VM keeps its size, and what it was permitted stays reserved.",
                since.as_secs()
            ),
            None => format!(
                "No agent has asked for the VM in the {} s since this plugin knows it: the VM keeps its size, and the most that it may have is reserved.",
                since.as_secs()
            ),
        })
    }
}

/// Why the books gave less than was asked for. It names no other VM.
fn of_shortage(short: &Shortage) -> (Scaling, String) {
    let Shortage { axis, asked, permitted, room, free, over, kept, held, .. } = short;
    let show = |amount: &u64| axis.show(*amount);
    let (reason, why) = match (held, over) {
        (Some(held @ Held::Cordoned), _) => (Scaling::NodeCordoned, held.to_string()),
        (Some(held @ Held::MemoryPressure), _) => (Scaling::NodeMemoryPressure, held.to_string()),
        (None, 0) if *kept > 0 => (
            Scaling::NodeFull,
            format!(
                "{} of the node's {} is free, of which {} is kept for other VMs",
                show(free),
                show(room),
                show(kept)
            ),
        ),
        (None, 0) => {
            (Scaling::NodeFull, format!("{} of the node's {} is free", show(free), show(room)))
        }
        (None, over) => (
            Scaling::NodeOverfull,
            format!("{} more is reserved than the node's {}", show(over), show(room)),
        ),
    };
    let words =
        format!("The VM asked for {} and may have {}: {why}.", show(asked), show(permitted));
    (reason, words)
}

/// The reason that an agent tells.
fn of_agent(told: &Told) -> Scaling {
    match told.why {
        Why::Paused => Scaling::Paused,
        Why::Observing => Scaling::Observing,
        Why::Moves => Scaling::Moving,
        Why::HypervisorSilent => Scaling::HypervisorSilent,
        Why::Stopped => Scaling::NotRunning,
        Why::NoInformant => Scaling::InformantSilent,
        Why::NoMetrics => Scaling::MetricsMissing,
        Why::Stuck => Scaling::ResizeStuck,
        Why::HostMemory => Scaling::HostMemoryShort,
        Why::Room | Why::NoPermit => Scaling::PermitWaits,
        Why::Declined | Why::Resizing | Why::Resting | Why::AtGoal | Why::Other => {
            Scaling::Following
        }
    }
}
