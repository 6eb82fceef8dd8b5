//! What agent and plugin say to each other: the latest model, and its bytes in every version.
//!
//! The agent POSTs a [`PermitRequest`] to any path and reads a [`PermitResponse`]; it states one
//! version, and is answered in that. What a version says is in [`PluginFeatures`], and the keys of
//! all are in `wire`; only the latest form leaves this module.
//!
//! [`PluginFeatures`]: crate::version::PluginFeatures
//!
//! Before v4.0 memory counts in 16-bit slots whose size the wire does not carry: both sides know
//! the VM's `memory_slot`. What a VM has is rounded up to whole slots (before v2.0 to whole CPUs
//! too), what it may have is rounded down; what does not fit is an error that names it. The
//! plugin learns from the body whose slot counts, so it reads a [`RawRequest`] first and
//! completes it.

mod parts;
mod spoken;
mod told;
mod wire;

use crate::go_json::{self, Parser, Read, keys};
use crate::version::PluginVersion;
use crate::{BadBody, Bytes, ComputeUnit, MilliCpu, Resources, VmName};
use parts::{Memory, Size, Slots};
use thiserror::Error;
use wire::{In, Request, Response};

pub use spoken::{MOST_SPOKEN, SPOKEN_PATH, Spoken, SpokenVm};
pub use told::{LONGEST_WORDS, Told, Why};

/// The port on which a plugin listens for permits.
pub const PORT: u16 = 10299;

/// The method of a request for a permit; every path is as good.
pub const METHOD: &str = "POST";

/// The longest body of a request that is read, in bytes.
pub const BODY_LIMIT: usize = 1024;

/// An agent reports what its VM has, or asks for more.
#[derive(Clone, Debug, PartialEq)]
pub struct PermitRequest {
    /// The version that it is said in.
    pub version: PluginVersion,
    /// Which VM.
    pub vm: VmName,
    /// The agent's compute unit: in versions from v4.0 on, and there always.
    pub unit: Option<Resources>,
    /// What it is to have: less is a report, more is a question.
    pub resources: Resources,
    /// What the plugin last permitted, if the agent knows: in versions from v2.1 on.
    pub last_permit: Option<Resources>,
    /// Its load, if it is known.
    pub metrics: Option<Metrics>,
    /// What its agent tells people of it: in versions from v5.0 on, by agents of ours alone.
    pub told: Option<Box<Told>>,
}

/// How busy a VM is; versions say more or less of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Metrics {
    /// The load over one minute, as the guest's kernel averages it.
    pub load_1m: f32,
    /// The same over five minutes; written before v5.0.
    pub load_5m: Option<f32>,
    /// Memory in use, in bytes; written from v2.1 to v4.0.
    pub memory_usage: Option<f32>,
}

/// A request whose memory may still count in slots.
#[derive(Clone, Debug, PartialEq)]
pub struct RawRequest(Said);

/// What a VM may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PermitResponse {
    /// The most that it may use.
    pub permit: Resources,
    /// Whether the VM is going to be moved, and must keep its size until then.
    pub migrate: bool,
}

/// An amount that the wire has no room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum OverRange {
    /// Too much CPU: the field, and what it would hold.
    #[error("{0}: {1} vCPU is more than 4294967.295")]
    Cpu(&'static str, MilliCpu),
    /// Too much memory for so small a slot: the field, what it would hold, and the slot.
    #[error("{0}: {1} is more than 65535 slots of {2}")]
    Memory(&'static str, Bytes, Bytes),
    /// Too much memory for a quantity: the field, and what it would hold.
    #[error("{0}: {1} is more than 9223372036854775807B")]
    Bytes(&'static str, Bytes),
    /// A slot of no size.
    #[error("memory_slot: 0B is not above zero")]
    Slot,
}

/// A request that does not keep to its version. The texts begin with the reference's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Unfit {
    /// Without metrics in v1.0.
    #[error("nil metrics not supported for protocol version {0}: metrics is null or missing")]
    NoMetrics(PluginVersion),
    /// Without the agent's compute unit in v4.0.
    #[error("computeUnit required for protocol version {0}: computeUnit is null or missing")]
    NoUnit(PluginVersion),
    /// Without it from v5.0 on: no release of the reference that speaks that tells it from a unit
    /// of nothing.
    #[error(
        "computeUnit fields must be non-zero: vCPUs must be non-zero: computeUnit is null or \
         missing"
    )]
    UnitMissing,
    /// With a compute unit of nothing.
    #[error("computeUnit fields must be non-zero: {0} must be non-zero")]
    ZeroUnit(&'static str),
    /// With a compute unit whose memory is no multiple of the VM's slot.
    #[error(
        "computeUnit is not divisible by VM memory slot size: computeUnit.mem: {0} is no multiple \
         of {1}"
    )]
    UnitOfParts(Bytes, Bytes),
    /// With parts of a vCPU before v2.0.
    #[error(
        "agent requested fractional CPU with protocol version that does not support it: \
         resources.vCPUs: {0} is no whole number in {1}"
    )]
    FractionalCpu(MilliCpu, PluginVersion),
}

/// What is left to do depends on how memory counts.
#[derive(Clone, Debug, PartialEq)]
enum Said {
    Slots(Request<u16>),
    Bytes(Request<Memory>),
}

/// The one field that says how the rest is to be read.
#[derive(Default)]
struct Stated {
    version: PluginVersion,
}

keys!(read Stated { "protoVersion": version });

// === impl PermitRequest ===

impl PermitRequest {
    /// The body in its version; `slot` is the VM's.
    ///
    /// # Errors
    /// If an amount does not fit.
    pub fn encode(&self, slot: Bytes) -> Result<Vec<u8>, OverRange> {
        let has = self.version.features();
        if !has.memory_in_bytes {
            return Ok(go_json::encode(&In(has, &Request::<u16>::of(self, slot)?)));
        }
        let mut request = Request::<Memory>::of(self, slot)?;
        let body = go_json::encode(&In(has, &request));
        if body.len() <= BODY_LIMIT || request.told.is_none() {
            return Ok(body);
        }
        // No more is read of it.
        request.told = None;
        Ok(go_json::encode(&In(has, &request)))
    }

    /// The metrics, if all that its version says of them is known. JSON has no NaN: a figure that
    /// is no number is not known.
    fn metrics_said(&self) -> Option<Metrics> {
        let features = self.version.features();
        let said =
            |needed: bool, figure: Option<f32>| !needed || figure.is_some_and(f32::is_finite);
        self.metrics.filter(|metrics| {
            metrics.load_1m.is_finite()
                && said(features.five_minutes, metrics.load_5m)
                && said(features.memory_usage, metrics.memory_usage)
        })
    }
}

// === impl RawRequest ===

impl RawRequest {
    /// Reads a request: the first value counts, what follows is ignored. What states no version,
    /// or one from the future, is read as the oldest, or the latest, that it could be.
    ///
    /// # Errors
    /// If it is not JSON, or a field holds what it must not.
    pub fn decode(body: &[u8]) -> Result<Self, BadBody> {
        match Self::written(body) {
            Some(request) => Ok(request),
            None => Self::tree(body),
        }
    }

    /// A request of the latest version, as agents write it: most requests are. It has all keys of
    /// that version and no other, in order, so it is read without a tree. `None` says nothing about
    /// any other body.
    fn written(body: &[u8]) -> Option<Self> {
        let mut latest: Request<Memory> = Request::default();
        let mut keys = In(PluginVersion::V5_0.features(), &mut latest);
        keys.read_written(&mut Parser::new(body))?;
        (latest.version >= PluginVersion::V5_0).then_some(Self(Said::Bytes(latest)))
    }

    /// A request of any version, in any form that Go reads.
    fn tree(body: &[u8]) -> Result<Self, BadBody> {
        let json = &go_json::first(body)?;
        let Stated { version } = go_json::fill(json)?;
        let has = version.features();
        Ok(Self(match has.memory_in_bytes {
            true => Said::Bytes(In::fill(has, json)?),
            false => Said::Slots(In::fill(has, json)?),
        }))
    }

    /// The version that it states; zero if it states none.
    pub fn version(&self) -> PluginVersion {
        match &self.0 {
            Said::Slots(request) => request.version,
            Said::Bytes(request) => request.version,
        }
    }

    /// Whose it is.
    pub fn vm(&self) -> &VmName {
        match &self.0 {
            Said::Slots(request) => &request.vm,
            Said::Bytes(request) => &request.vm,
        }
    }

    /// Takes the VM's name out, without a copy. The request names no VM afterwards.
    pub fn take_vm(&mut self) -> VmName {
        match &mut self.0 {
            Said::Slots(request) => std::mem::take(&mut request.vm),
            Said::Bytes(request) => std::mem::take(&mut request.vm),
        }
    }

    /// Takes out what its agent tells people, in slots of this size if memory counts in slots.
    pub fn take_told(&mut self, slot: Bytes) -> Option<Box<Told>> {
        let told = match &mut self.0 {
            Said::Slots(request) => request.told.take().map(|told| told.told(slot)),
            Said::Bytes(request) => request.told.take().map(|told| told.told(slot)),
        };
        told.map(Box::new)
    }

    /// Whether it says how busy the VM is.
    pub fn has_metrics(&self) -> bool {
        match &self.0 {
            Said::Slots(request) => request.metrics.is_some(),
            Said::Bytes(request) => request.metrics.is_some(),
        }
    }

    /// Whether it keeps to its version, as far as that can be told without the VM.
    ///
    /// # Errors
    /// What it lacks.
    pub fn check(&self) -> Result<(), Unfit> {
        let (version, features) = (self.version(), self.version().features());
        if !self.has_metrics() && !features.metrics_may_be_missing {
            return Err(Unfit::NoMetrics(version));
        }
        let Said::Bytes(request) = &self.0 else { return Ok(()) };
        let unit = request.unit.ok_or(match version < PluginVersion::V5_0 {
            true => Unfit::NoUnit(version),
            false => Unfit::UnitMissing,
        })?;
        let unit = unit.resources(Bytes::ZERO);
        if unit.cpu.is_zero() {
            return Err(Unfit::ZeroUnit("vCPUs"));
        }
        if unit.mem.is_zero() {
            return Err(Unfit::ZeroUnit("mem"));
        }
        Ok(())
    }

    /// The request, with slots of this size.
    ///
    /// # Errors
    /// If it does not keep to its version.
    pub fn with_slot(self, slot: Bytes) -> Result<PermitRequest, Unfit> {
        let request = match self.0 {
            Said::Slots(request) => request.with_slot(slot),
            Said::Bytes(request) => request.with_slot(slot),
        };
        if let Some(unit) = request.unit.map(|unit| unit.mem)
            && unit != unit.round_up(slot)
        {
            return Err(Unfit::UnitOfParts(unit, slot));
        }
        let (cpu, version) = (request.resources.cpu, request.version);
        if !version.features().fractional_cpu && cpu != cpu.round_up(MilliCpu::from_cores(1)) {
            return Err(Unfit::FractionalCpu(cpu, version));
        }
        Ok(request)
    }
}

// === impl PermitResponse ===

impl PermitResponse {
    /// The body in this version, with slots of this size; versions before v3.0 name the plugin's
    /// compute unit too.
    ///
    /// # Errors
    /// If an amount does not fit.
    pub fn encode(
        &self,
        version: PluginVersion,
        slot: Bytes,
        unit: ComputeUnit,
    ) -> Result<Vec<u8>, OverRange> {
        let has = version.features();
        Ok(match has.memory_in_bytes {
            true => go_json::encode(&In(has, Response::<Memory>::of(*self, slot)?)),
            false => go_json::encode(&In(has, Response::in_slots(*self, has, slot, unit)?)),
        })
    }

    /// Reads a reply in the version of its request: one value and nothing else.
    ///
    /// # Errors
    /// If it is not JSON, or a field holds what it must not.
    pub fn decode(version: PluginVersion, body: &[u8], slot: Bytes) -> Result<Self, BadBody> {
        let (has, json) = (version.features(), &go_json::whole(body)?);
        if has.memory_in_bytes {
            let Response { permit, migrate, .. } = In::<Response<Memory>>::fill(has, json)?;
            return Ok(Self { permit: permit.resources(slot), migrate: migrate.is_some() });
        }
        let Response { permit, migrate, .. } = In::<Response<Slots>>::fill(has, json)?;
        let permit = Size { cpu: permit.cpu, mem: permit.mem.0 };
        Ok(Self { permit: permit.resources(slot), migrate: migrate.is_some() })
    }
}

#[cfg(test)]
mod tests;
