//! What answers of the API server are for.

use crate::cluster::call::{Found, Kind};
use windlass_plugin_core::ceiling_turn::CeilingTurn;
use windlass_plugin_core::ceilings::{CeilingWrite, FirstCeiling};
use windlass_plugin_core::pods::{CeilingOn, Change, Move, Placement, Resize};
use windlass_plugin_core::rebuild::Inherited;
use windlass_protocol::VmName;

/// What an answer of the API server is for.
#[derive(Debug)]
pub(super) enum Task {
    Lease,
    List { kind: Kind, epoch: u64, number: u64 },
    Watch { kind: Kind, number: u64 },
    Audit(Kind),
    BindRead { pod: VmName, uid: String, node: String },
    Bind { placement: Placement, first: Option<FirstCeiling> },
    SettleRead { pod: VmName, uid: String },
    SettleTouch { pod: VmName },
    TakeOver(Inherited),
    Ceiling(Writing, CeilingTask),
    FitRead { pod: VmName, on: CeilingOn },
    Fit,
    Headroom(Change),
    Resize(Resize),
    Begin(Move),
    BeginRead(Move),
    EndMigration,
}

/// The write of a ceiling.
#[derive(Debug)]
pub(super) struct Writing {
    pub(super) vm: VmName,
    pub(super) turn: CeilingTurn<Found>,
}

#[derive(Debug)]
pub(super) enum CeilingTask {
    Replaces { on: CeilingOn, write: CeilingWrite },
    Reads { on: CeilingOn },
}

// === impl Task ===

impl Task {
    /// The pod that is changed so that no earlier binding of it takes effect.
    pub(super) fn taken_over(&self) -> Option<&Inherited> {
        if let Self::TakeOver(pod) = self { Some(pod) } else { None }
    }

    /// Whether it is a request of a leader that changes something.
    pub(super) const fn is_act(&self) -> bool {
        match self {
            Self::Bind { .. }
            | Self::SettleTouch { .. }
            | Self::TakeOver(_)
            | Self::Ceiling(_, CeilingTask::Replaces { .. })
            | Self::Fit
            | Self::Headroom(_)
            | Self::Resize(_)
            | Self::Begin(_)
            | Self::EndMigration => true,
            Self::Lease
            | Self::List { .. }
            | Self::Watch { .. }
            | Self::Audit(_)
            | Self::BindRead { .. }
            | Self::SettleRead { .. }
            | Self::FitRead { .. }
            | Self::BeginRead(_)
            | Self::Ceiling(_, CeilingTask::Reads { .. }) => false,
        }
    }
}
