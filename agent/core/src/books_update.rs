//! What the books hear of a VM that is managed.

use crate::scaler::Scaler;
use windlass_protocol::Resources;

/// What the books are to hear of a VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BooksUpdate {
    /// The VM may have this much: the books must cover no less.
    Witnessed(Resources),
    /// The VM may have this much, and its agent counts on no permit for it: the books hold exactly
    /// this.
    Counted(Resources),
}

// === impl BooksUpdate ===

impl BooksUpdate {
    /// What the books are to hear now: after each look, and where what the VM may have is another
    /// than they heard `last`.
    pub fn due(scaler: &Scaler, looked: bool, last: Option<Resources>) -> Option<Self> {
        let upper = scaler.upper().filter(|upper| looked || last != Some(*upper))?;
        Some(match scaler.relies_on_a_permit() {
            true => Self::Witnessed(upper),
            false => Self::Counted(upper),
        })
    }

    /// The most that the VM may have.
    pub const fn upper(self) -> Resources {
        match self {
            Self::Witnessed(upper) | Self::Counted(upper) => upper,
        }
    }
}
