//! The turn of a VM whose ceiling is to be recorded: what is read and replaced, how often, and what came of it.
//!
//! A write replaces the annotation that is known or was read, and takes effect on that alone. Where it finds another, that is
//! read, and the books say anew what is due.

use crate::ceilings::CeilingWrite;
use crate::pods::CeilingOn;
use crate::writes::Heard;
use windlass_protocol::NoSuccess;
use windlass_protocol::pod::Ceiling;

/// A write that finds another annotation than was known is made so often in all.
const ATTEMPTS: u32 = 4;

/// The turn of one VM. `F` is an annotation as it was found: its text, or that there is none at a revision of the object.
#[derive(Clone, Debug)]
pub struct CeilingTurn<F> {
    left: u32,
    read: Option<F>,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next<F> {
    /// Replace what was found at this object.
    Replaces {
        /// What has the annotation.
        on: CeilingOn,
        /// What is replaced.
        found: F,
        /// What it is to say.
        write: CeilingWrite,
    },
    /// Read the annotation of this object.
    Reads(CeilingOn),
    /// Nothing more.
    Ends(Outcome),
}

/// What came of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The ceiling is recorded.
    Written,
    /// None was called for any more, or a later leader recorded one.
    NotDue,
    /// This process does not lead.
    NotLeading,
    /// The annotation was changed each time.
    Conflict,
    /// There is no such object any more.
    Gone,
    /// The API server does not allow it.
    Refused,
    /// The API server is busy or gone.
    NoAnswer,
}

// === impl CeilingTurn ===

impl<F> Default for CeilingTurn<F> {
    fn default() -> Self {
        Self { left: ATTEMPTS, read: None }
    }
}

impl<F: From<Ceiling>> CeilingTurn<F> {
    /// What is to be done by a process that leads in this epoch, if it does, where this is due.
    pub fn next<E>(
        &mut self,
        epoch: Option<E>,
        due: impl FnOnce(E) -> Option<(CeilingOn, CeilingWrite)>,
    ) -> Next<F> {
        let Some(left) = self.left.checked_sub(1) else { return Next::Ends(Outcome::Conflict) };
        self.left = left;
        let Some(epoch) = epoch else { return Next::Ends(Outcome::NotLeading) };
        let Some((on, write)) = due(epoch) else { return Next::Ends(Outcome::NotDue) };
        match self.read.take().or(write.known.map(F::from)) {
            Some(found) => Next::Replaces { on, found, write },
            None => Next::Reads(on),
        }
    }

    /// The annotation was read.
    pub fn read(&mut self, found: F) {
        self.read = Some(found);
    }
}

/// What comes after a replacement that had no success: `Ok`: the annotation is another, and is read.
///
/// # Errors
/// What came of the turn.
pub const fn after(why: NoSuccess) -> Result<(), Outcome> {
    match why {
        NoSuccess::Conflict | NoSuccess::Invalid => Ok(()),
        NoSuccess::Gone | NoSuccess::Refused | NoSuccess::Unknown => Err(Outcome::of(why)),
    }
}

// === impl Outcome ===

impl Outcome {
    /// Of a request that had no success.
    pub const fn of(why: NoSuccess) -> Self {
        match why {
            NoSuccess::Conflict | NoSuccess::Invalid => Self::Conflict,
            NoSuccess::Gone => Self::Gone,
            NoSuccess::Refused => Self::Refused,
            NoSuccess::Unknown => Self::NoAnswer,
        }
    }

    /// As it is counted.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Written => "written",
            Self::NotDue => "not-due",
            Self::NotLeading => "not-leading",
            Self::Conflict => "conflict",
            Self::Gone => "gone",
            Self::Refused => "refused",
            Self::NoAnswer => "no-answer",
        }
    }

    /// What it says of the API server.
    pub const fn heard(self) -> Heard {
        match self {
            Self::NotDue | Self::NotLeading => Heard::NotSent,
            Self::Written | Self::Conflict | Self::Gone | Self::Refused => Heard::Answered,
            Self::NoAnswer => Heard::NoAnswer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_protocol::{Bytes, MilliCpu, Resources, VmName};

    #[derive(Clone, Debug, PartialEq, Eq)]
    enum Found {
        Known(Ceiling),
        Read(u32),
    }

    impl From<Ceiling> for Found {
        fn from(ceiling: Ceiling) -> Self {
            Self::Known(ceiling)
        }
    }

    #[test]
    fn what_is_known_is_replaced_and_what_was_read_after_a_conflict() {
        let (known, next) = (ceiling(3), ceiling(4));
        let write = CeilingWrite { vm: VmName::on_host("a"), known: Some(known), next };
        let due = |_: u8| Some((on(), write.clone()));
        let replaces = |found| Next::Replaces { on: on(), found, write: write.clone() };
        let mut turn = CeilingTurn::<Found>::default();
        assert_eq!(turn.next(Some(1), due), replaces(Found::Known(known)));
        for attempt in 2..=ATTEMPTS {
            assert_eq!(after(NoSuccess::Conflict), Ok(()));
            turn.read(Found::Read(attempt));
            assert_eq!(turn.next(Some(1), due), replaces(Found::Read(attempt)));
        }
        turn.read(Found::Read(9));
        assert_eq!(turn.next(Some(1), due), Next::Ends(Outcome::Conflict), "it goes on changing");
    }

    #[test]
    fn what_is_not_known_is_read_first_and_nothing_is_written_that_is_not_due() {
        let write = CeilingWrite { vm: VmName::on_host("a"), known: None, next: ceiling(4) };
        let due = |_: u8| Some((on(), write.clone()));
        let turn = || CeilingTurn::<Found>::default();
        assert_eq!(turn().next(Some(1), due), Next::Reads(on()));
        assert_eq!(turn().next(None, due), Next::Ends(Outcome::NotLeading));
        assert_eq!(turn().next(Some(1), |_| None), Next::Ends(Outcome::NotDue));
        assert_eq!(after(NoSuccess::Unknown), Err(Outcome::NoAnswer));
        assert_eq!(after(NoSuccess::Gone), Err(Outcome::Gone));
        assert_eq!(Outcome::of(NoSuccess::Conflict).heard(), Heard::Answered);
        assert_eq!(Outcome::NotLeading.heard(), Heard::NotSent);
        assert_eq!(Outcome::NoAnswer.heard(), Heard::NoAnswer);
    }

    fn on() -> CeilingOn {
        CeilingOn::Pod(VmName::on_host("a"), "uid".to_owned())
    }

    fn ceiling(write: u64) -> Ceiling {
        let size = Resources::new(MilliCpu::from_cores(2), Bytes::from_gib(2));
        Ceiling { epoch: 1, write, size }
    }
}
