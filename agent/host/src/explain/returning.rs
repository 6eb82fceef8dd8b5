//! What other VMs keep of the node without a use for it, and when it comes back.
//!
//! A VM that waits for room does not shorten that: no wire between agents and books can say so.

use super::words::{clock, list, short};
use serde::{Deserialize, Serialize};
use windlass_protocol::status::VmStatus;
use windlass_protocol::{Moment, Resources, VmName, Waiting};

/// The most VMs that are named; those that come first.
const MOST: usize = 5;

/// What a VM keeps for a while, though its signals no longer call for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Returning {
    /// Which VM.
    pub vm: VmName,
    /// How much it is about to return.
    pub size: Resources,
    /// When it begins to, if its load stays as it is.
    pub from: Moment,
}

/// What other VMs than this one keep for a while.
pub fn returned_by_others(vm: &VmName, vms: &[VmStatus]) -> Vec<Returning> {
    let of = |other: &VmStatus| {
        let upper = other.upper?;
        other.waiting.iter().find_map(|why| {
            let Waiting::Holding { goal, until: Some(from) } = why else { return None };
            let size = upper.saturating_sub(*goal);
            Some(Returning { vm: other.name.clone(), size, from: *from })
        })
    };
    vms.iter().filter(|other| other.name != *vm).filter_map(of).collect()
}

/// When others begin to return what counts here, if any of them does.
pub(super) fn returning(
    returning: &[Returning],
    amount: impl Fn(Resources) -> Option<String>,
) -> Option<String> {
    let mut others: Vec<&Returning> = returning.iter().collect();
    // Stable: they come in the order of names.
    others.sort_by_key(|returning| returning.from);
    let named = others.into_iter().filter_map(|returning| {
        let amount = amount(returning.size)?;
        let (name, from) = (short(&returning.vm), clock(returning.from));
        Some(format!("{name} returns {amount} from {from} on"))
    });
    let named: Vec<String> = named.take(MOST).collect();
    (!named.is_empty()).then(|| format!("If their load stays as it is, {}.", list(&named)))
}
