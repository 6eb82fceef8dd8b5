//! Between the bytes of a request for a permit, the books, and the bytes of the answer.
//!
//! Pure, so that a simulation carries the same bytes as a shell does. The order of the checks
//! is the reference's: body, version, what the version asks of a request, VM, what that asks of
//! it. Refusals are plain text that begins with the
//! reference's words and goes on to name the field. Bodies are read up to [`BODY_LIMIT`] bytes
//! and no further.

use crate::ask::{Ask, Granted, Proposed};
use crate::books::{Books, BooksError};
use thiserror::Error;
use windlass_protocol::plugin::{BODY_LIMIT, OverRange, PermitResponse, RawRequest, Unfit};
use windlass_protocol::{
    BadBody, Bytes, ComputeUnit, Moment, PluginVersion, Resources, Versions, VmName, VmRecord,
};

/// A request that was granted, in part or in full. The books have changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Permitted {
    /// Which VM.
    pub vm: VmName,
    /// In which version.
    pub version: PluginVersion,
    /// What it asked for.
    pub asked: Resources,
    /// What it got.
    pub granted: Granted,
    unit: ComputeUnit,
    slot: Bytes,
}

/// What the books say at once.
#[derive(Debug)]
pub enum Answer {
    /// The answer.
    Permitted(Permitted),
    /// It has to wait until a ceiling is recorded.
    Waits(Waiting),
}

/// A request whose answer waits until a ceiling is recorded.
#[derive(Debug)]
pub struct Waiting {
    /// Which VM.
    pub vm: VmName,
    request: RawRequest,
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// Not the method of the protocol.
    #[error("must be POST")]
    Method,
    /// The body is not the message.
    #[error("bad JSON: {0}")]
    Body(BadBody),
    /// What is read of the body is not the message.
    #[error("bad JSON: body: longer than 1024 bytes, of which no more are read ({0})")]
    TooLong(BadBody),
    /// The agent does not say what it speaks.
    #[error("Invalid protocol version {0}: protoVersion is 0 or missing")]
    NoVersion(PluginVersion),
    /// The agent speaks a version that is not spoken here.
    #[error("Protocol version mismatch: Need {need} but got {got}")]
    Version {
        /// What is spoken here.
        need: Versions<PluginVersion>,
        /// What it speaks.
        got: PluginVersion,
    },
    /// The request does not keep to its version.
    #[error(transparent)]
    Unfit(#[from] Unfit),
    /// The VM is not in the books.
    #[error("pod not found: {0}")]
    UnknownVm(BadBody),
    /// The VM keeps its size until it is moved.
    #[error("cannot change resources: agent has already been informed that pod is migrating: {0}")]
    Moving(BadBody),
    /// This plugin does not answer at this moment.
    #[error("not answered here at this moment: {0}")]
    Passing(&'static str),
    /// The answer does not fit the wire.
    #[error("cannot say it in this version: {0}")]
    OverRange(#[from] OverRange),
}

/// Which VM asks for what. [`grant`] is the second half, so that a shell locks the books for that alone.
///
/// # Errors
/// If the body is not a request in one of these versions, or does not keep to it.
pub fn read(body: &[u8], versions: Versions<PluginVersion>) -> Result<RawRequest, Refusal> {
    let read = RawRequest::decode(&body[..body.len().min(BODY_LIMIT)]);
    let request = read.map_err(|bad| {
        if body.len() > BODY_LIMIT { Refusal::TooLong(bad) } else { Refusal::Body(bad) }
    })?;
    let got = request.version();
    if !got.is_valid() {
        return Err(Refusal::NoVersion(got));
    }
    if versions.latest_shared(Versions::only(got)).is_none() {
        return Err(Refusal::Version { need: versions, got });
    }
    request.check()?;
    Ok(request)
}

/// What the books say to a request. `unit` is told to agents that have no compute unit of their own.
///
/// # Errors
/// If the VM is unknown or about to be moved, or the request does not fit it.
pub fn grant(
    books: &mut Books,
    now: Moment,
    unit: ComputeUnit,
    mut request: RawRequest,
) -> Result<Permitted, Refusal> {
    let vm = request.take_vm();
    hear(books, now, &vm, &mut request);
    Waiting { vm, request }.again(books, now, unit)
}

/// The same, where an answer may have to wait until a ceiling is recorded.
///
/// # Errors
/// Those of [`grant`].
pub fn propose(
    books: &mut Books,
    now: Moment,
    unit: ComputeUnit,
    mut request: RawRequest,
) -> Result<Answer, Refusal> {
    let vm = request.take_vm();
    hear(books, now, &vm, &mut request);
    // Its VM and its words were taken: the copy is small.
    let read = |record: &VmRecord| read_by(request.clone(), record);
    Ok(match books.propose_by(now, &vm, read)? {
        (_, Proposed::Waits) => Answer::Waits(Waiting { vm, request }),
        ((version, asked, slot), Proposed::Granted(granted)) => {
            if granted.is_unrecorded && books.says_too_little(&vm, asked, &granted) {
                return Err(TOO_LITTLE);
            }
            Answer::Permitted(Permitted { vm, version, asked, granted, unit, slot })
        }
    })
}

/// The agent of this VM was heard, whatever becomes of its request.
fn hear(books: &mut Books, now: Moment, vm: &VmName, request: &mut RawRequest) {
    books.hear_by(now, vm, |record| request.take_told(record.memory_slot));
}

/// What a request says of a VM that is known like this.
fn read_by(
    request: RawRequest,
    record: &VmRecord,
) -> Result<((PluginVersion, Resources, Bytes), Ask), Refusal> {
    let slot = record.memory_slot;
    let request = request.with_slot(slot)?;
    let ask = Ask {
        wanted: request.resources,
        last_permit: request.last_permit,
        unit: request.unit.and_then(|unit| ComputeUnit::try_from(unit).ok()),
        whole_cpus: !request.version.features().fractional_cpu,
        names_permits: request.version.features().last_permit,
    };
    Ok(((request.version, request.resources, slot), ask))
}

/// An answer would be less than the VM may have, and no agent has spoken for it.
const TOO_LITTLE: Refusal =
    Refusal::Passing("what the VM was permitted before is not recorded or allocated");

// === impl Waiting ===

impl Waiting {
    /// Asks again: the answer is no more than a recorded ceiling covers or was promised before.
    ///
    /// # Errors
    /// Those of [`grant`].
    pub fn again(
        self,
        books: &mut Books,
        now: Moment,
        unit: ComputeUnit,
    ) -> Result<Permitted, Refusal> {
        let Self { vm, request } = self;
        let read = |record: &VmRecord| read_by(request, record);
        let ((version, asked, slot), granted) = books.request_by(now, &vm, read)?;
        if granted.is_unrecorded && books.says_too_little(&vm, asked, &granted) {
            return Err(TOO_LITTLE);
        }
        Ok(Permitted { vm, version, asked, granted, unit, slot })
    }
}

// === impl Permitted ===

impl Permitted {
    /// The body of the answer, in the version of the request; its status is 200.
    ///
    /// # Errors
    /// If an amount does not fit the wire.
    pub fn encode(&self) -> Result<Vec<u8>, Refusal> {
        let Self { granted, unit, slot, version, .. } = self;
        let response = PermitResponse { permit: granted.permit, migrate: granted.moving };
        Ok(response.encode(*version, *slot, *unit)?)
    }
}

// === impl Refusal ===

impl Refusal {
    /// The HTTP status that goes with it.
    pub const fn status(&self) -> u16 {
        match self {
            Self::Method
            | Self::Body(_)
            | Self::TooLong(_)
            | Self::NoVersion(_)
            | Self::Version { .. }
            | Self::Unfit(_)
            | Self::Moving(_) => 400,
            Self::UnknownVm(_) => 404,
            Self::OverRange(_) => 500,
            Self::Passing(_) => 503,
        }
    }
}

impl From<BooksError> for Refusal {
    fn from(error: BooksError) -> Self {
        match error {
            BooksError::UnknownVm(vm) => {
                Self::UnknownVm(BadBody::field("pod", vm, "a VM in the books of this node"))
            }
            BooksError::Moving { vm: _, wanted, permit } => {
                Self::Moving(BadBody::field("resources", wanted, permit))
            }
        }
    }
}

#[cfg(test)]
mod tests;
