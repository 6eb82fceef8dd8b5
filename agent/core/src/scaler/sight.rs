//! How old what was seen of the hypervisor is.

/// How old what was seen of the hypervisor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sight {
    /// From after the last resize, restart, connection, registration and notice.
    Fresh,
    /// From before one of them: nothing is resized, and no size spoken of, before a look.
    Due,
    /// The same, and a look is under way that was sent after it.
    Looking,
}

// === impl Sight ===

impl Sight {
    /// A look leaves.
    pub(super) const fn looking(self) -> Self {
        match self {
            Self::Fresh => Self::Fresh,
            Self::Due | Self::Looking => Self::Looking,
        }
    }

    /// A look was answered.
    pub(super) const fn seen(self) -> Self {
        match self {
            Self::Fresh | Self::Looking => Self::Fresh,
            Self::Due => Self::Due,
        }
    }
}
