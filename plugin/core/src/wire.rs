//! Between the bytes of a request for a permit, the books, and the bytes of the answer.
//!
//! Pure, so that a simulation carries the same bytes as a shell does. The order of the checks
//! is the reference's: body, version, VM. Refusals are plain text that begins with the
//! reference's words and goes on to name the field. Bodies are read up to [`BODY_LIMIT`] bytes
//! and no further.

use crate::books::{Books, BooksError, Granted};
use thiserror::Error;
use windlass_protocol::plugin::{BODY_LIMIT, OverRange, PermitResponse, SlotRequest};
use windlass_protocol::{
    BadBody, Bytes, ComputeUnit, Moment, PluginVersion, Resources, Versions, VmName,
};

/// The most slots that the wire counts.
const MOST_SLOTS: u64 = u16::MAX as u64;

/// A request that was granted, in part or in full. The books have changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Permitted {
    /// Which VM.
    pub vm: VmName,
    /// What it asked for.
    pub asked: Resources,
    /// What it got.
    pub granted: Granted,
    unit: Resources,
    slot: Bytes,
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
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
    #[error("Protocol version mismatch: Need {} but got {got}", PluginVersion::SPOKEN)]
    Version {
        /// What it speaks.
        got: Versions<PluginVersion>,
    },
    /// The VM is not in the books.
    #[error("pod not found: {0}")]
    UnknownVm(BadBody),
    /// The answer does not fit the wire.
    #[error("cannot say it in this version: {0}")]
    OverRange(#[from] OverRange),
}

/// Asks the books what a body says; the agent is told of this compute unit.
///
/// # Errors
/// If the body is not a request in a version that is spoken, or its VM is unknown.
pub fn permit(
    books: &mut Books,
    now: Moment,
    unit: ComputeUnit,
    body: &[u8],
) -> Result<Permitted, Refusal> {
    grant(books, now, unit, &read(body)?)
}

/// The first half of [`permit`], for a shell that locks the books: who asks for what.
///
/// # Errors
/// If the body is not a request in a version that is spoken.
pub fn read(body: &[u8]) -> Result<SlotRequest, Refusal> {
    let read = SlotRequest::decode(&body[..body.len().min(BODY_LIMIT)]);
    let request = read.map_err(|bad| {
        if body.len() > BODY_LIMIT { Refusal::TooLong(bad) } else { Refusal::Body(bad) }
    })?;
    if !request.version.is_valid() {
        return Err(Refusal::NoVersion(request.version));
    }
    let version = Versions::only(request.version);
    match PluginVersion::SPOKEN.latest_shared(version) {
        Some(_) => Ok(request),
        None => Err(Refusal::Version { got: version }),
    }
}

/// The second half of [`permit`]: what the books say to it.
///
/// # Errors
/// If the VM is unknown.
pub fn grant(
    books: &mut Books,
    now: Moment,
    unit: ComputeUnit,
    request: &SlotRequest,
) -> Result<Permitted, Refusal> {
    let record = books.record(&request.vm);
    let slot = record.ok_or_else(|| BooksError::UnknownVm(request.vm.clone()))?.memory_slot;
    let asked = request.resources(slot);
    let granted = books.request(now, &request.vm, asked)?;
    Ok(Permitted { vm: request.vm.clone(), asked, granted, unit: unit.into(), slot })
}

// === impl Permitted ===

impl Permitted {
    /// The body of the answer; its status is 200.
    ///
    /// # Errors
    /// If an amount does not fit the wire.
    pub fn encode(&self) -> Result<Vec<u8>, Refusal> {
        let Self { granted, unit, slot, .. } = self;
        // Only told, not meant: a unit that this wire cannot say is no reason to refuse.
        let unit = Resources { mem: unit.mem.min(slot.saturating_mul(MOST_SLOTS)), ..*unit };
        let response = PermitResponse { permit: granted.permit, migrate: false, unit };
        Ok(response.encode(*slot)?)
    }
}

// === impl Refusal ===

impl Refusal {
    /// The HTTP status that goes with it.
    pub const fn status(&self) -> u16 {
        match self {
            Self::Body(_) | Self::TooLong(_) | Self::NoVersion(_) | Self::Version { .. } => 400,
            Self::UnknownVm(_) => 404,
            Self::OverRange(_) => 500,
        }
    }
}

impl From<BooksError> for Refusal {
    fn from(error: BooksError) -> Self {
        match error {
            BooksError::UnknownVm(vm) => {
                Self::UnknownVm(BadBody::field("pod", vm, "a VM in the books of this node"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::books::VmRecord;
    use windlass_protocol::MilliCpu;
    use windlass_protocol::plugin::PermitRequest;

    const NOW: Moment = Moment::from_millis(1_000_000);
    const SLOT: Bytes = Bytes::from_mib(128);

    #[test]
    fn an_agent_reads_what_it_may_have() {
        for (asked, permit) in [(cu(2), cu(2)), (cu(4), cu(3)), (cu(1), cu(1))] {
            let mut books = node(SLOT);
            let permitted = super::permit(&mut books, NOW, unit(), &body(asked)).unwrap();
            assert_eq!((&permitted.vm, permitted.asked), (&VmName::on_host("a"), asked));
            assert_eq!(permitted.granted.permit, permit);
            assert_eq!(permitted.granted.short.is_empty(), asked == permit);
            let answer = PermitResponse::decode(&permitted.encode().unwrap(), SLOT);
            assert_eq!(answer, Ok(PermitResponse { permit, migrate: false, unit: cu(1) }));
        }
    }

    #[test]
    fn a_body_is_read_no_further_than_its_limit() {
        let padded = [body(cu(2)), vec![b' '; 10_000]].concat();
        assert!(permit(&mut node(SLOT), NOW, unit(), &padded).is_ok());
        let late = [vec![b' '; BODY_LIMIT], body(cu(2))].concat();
        let refusal = permit(&mut node(SLOT), NOW, unit(), &late).unwrap_err();
        assert!(matches!(refusal, Refusal::TooLong(_)), "{refusal}");
        assert_eq!(refusal.status(), 400);
    }

    #[test]
    fn a_refusal_has_its_status_and_words_and_leaves_the_books_alone() {
        let good = String::from_utf8(body(cu(2))).unwrap();
        let with = |what: &str, other: &str| {
            assert!(good.contains(what), "{what} in {good}");
            good.replace(what, other)
        };
        let mut books = node(SLOT);
        let before = books.clone();
        for (body, status, words) in [
            (String::new(), 400, "bad JSON: byte 0: the body ends"),
            ("[]".into(), 400, "bad JSON: body: a list is not an object"),
            ("{}".into(), 400, "Invalid protocol version <invalid: zero>: protoVersion is 0"),
            (with("n\":3", "n\":2"), 400, "Protocol version mismatch: Need v2.0 but got v1.1"),
            (with("\"mem\":16", "\"mem\":-1"), 400, "bad JSON: resources.mem: -1 is not a"),
            (with("\"a\"", "\"b\""), 404, "pod not found: pod: default/b is not a VM in the"),
            ("[".repeat(2000), 400, "bad JSON: body: longer than 1024 bytes, of which no more"),
        ] {
            let refusal = permit(&mut books, NOW, unit(), body.as_bytes()).unwrap_err();
            assert_eq!(refusal.status(), status, "{body}: {refusal}");
            assert!(refusal.to_string().starts_with(words), "{body}: {refusal}");
        }
        assert_eq!(books, before);
    }

    #[test]
    fn an_answer_that_does_not_fit_is_not_said() {
        let permitted = permit(&mut node(Bytes::ZERO), NOW, unit(), &body(cu(1))).unwrap();
        let refusal = permitted.encode().unwrap_err();
        assert_eq!(refusal, Refusal::OverRange(OverRange::Slot));
        assert_eq!(refusal.status(), 500);
        // What is only told is told as far as it goes.
        let mut books = node(Bytes::from_kib(16));
        let permitted = permit(&mut books, NOW, unit(), &body(cu(1))).unwrap();
        let answer = PermitResponse::decode(&permitted.encode().unwrap(), Bytes::from_kib(16));
        assert_eq!(answer.unwrap().unit.mem, Bytes::from_kib(16 * MOST_SLOTS));
    }

    /// A node with room for 4 CUs, where `a` has 1 and somebody else 1.
    fn node(memory_slot: Bytes) -> Books {
        let mut books = Books::new(cu(4));
        for name in ["a", "other"] {
            let record = VmRecord { grain: cu(1), memory_slot, ..VmRecord::default() };
            books.enter(VmName::on_host(name), record, cu(1));
        }
        books
    }

    fn body(resources: Resources) -> Vec<u8> {
        let (version, vm) = (PluginVersion::V2_0, VmName::on_host("a"));
        PermitRequest { version, vm, resources, metrics: None }.encode(SLOT).unwrap()
    }

    fn unit() -> ComputeUnit {
        ComputeUnit::try_from(cu(1)).unwrap()
    }

    fn cu(count: u64) -> Resources {
        Resources { cpu: MilliCpu::from_cores(count), mem: Bytes::from_gib(count) }
    }
}
