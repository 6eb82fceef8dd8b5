//! What is said: units, names, wire types, versions, and the words for a decision.
//!
//! The parts of Windlass know each other only through this crate. It has no I/O, no clock and no async.
//! Within a version a message only gains fields. Messages of older versions are converted: only the
//! latest form leaves [`plugin`] and [`informant`].
//!
//! Where to look: quantities in [`units`], names in [`ids`], time in [`moment`]. The desired state of a
//! VM is in [`vm`], its written forms in [`config`], [`vm_file`] and [`annotations`], its actual size in
//! [`size`]. Objects of a cluster are in [`pod`], [`node`] and [`vm_object`], a scheduler's messages in [`extender`].
//! [`reason`] and [`decision`] explain decisions; [`words`] makes text of peers safe to show.

pub mod annotations;
mod bad_body;
pub mod config;
pub mod decision;
pub mod extender;
mod go_json;
pub mod ids;
pub mod informant;
pub mod limits;
pub mod moment;
pub mod neighbours;
mod no_success;
pub mod node;
pub mod plugin;
pub mod pod;
pub mod quantity;
pub mod reason;
mod rfc3339;
pub mod shortage;
pub mod size;
pub mod status;
pub mod timing;
pub mod unit_choice;
pub mod units;
pub mod version;
pub mod vm;
pub mod vm_file;
pub mod vm_object;
pub mod vm_record;
pub mod vm_view;
pub mod words;

pub use bad_body::BadBody;
pub use decision::{Change, Decision, Outcome};
pub use ids::{AgentId, Generation, Sequence, VmName};
pub use moment::Moment;
pub use no_success::NoSuccess;
pub use reason::{Clip, Peer, Reason, Signal, Signals, Waiting};
pub use shortage::{Axis, Held, Note, Shortage};
pub use size::{
    Capabilities, CpuLimit, LimitCounts, MemorySeen, Promises, Resize, RunState, Seen, ShrinkCpu,
};
pub use unit_choice::UnitChoice;
pub use units::{Bytes, ComputeUnit, MilliCpu, Resources};
pub use version::{InformantVersion, PluginVersion, Versions};
pub use vm::{Bounds, LoadWindow, Mode, Policy, ScaleDown, ScaleDownSaid, Target, Usual, VmInfo};
pub use vm_file::VmFile;
pub use vm_record::VmRecord;
