//! What an answer of the API server that is no success says of the request.

/// What became of a request that had no success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoSuccess {
    /// There is no such object: it has not taken effect.
    Gone,
    /// The object is not what the request was for: it has not taken effect.
    Conflict,
    /// No object can be so, or a JSON patch found another value than it tests for: it has not taken effect.
    Invalid,
    /// The request itself is refused: it has not taken effect.
    Refused,
    /// It may have taken effect, or may do so when it is sent again.
    Unknown,
}

// === impl NoSuccess ===

impl NoSuccess {
    /// By the HTTP status. One that is about the rate of requests, their time, or credentials that are renewed refuses no
    /// request for good.
    pub const fn of(status: u16) -> Self {
        match status {
            404 | 410 => Self::Gone,
            409 | 412 => Self::Conflict,
            422 => Self::Invalid,
            401 | 408 | 429 => Self::Unknown,
            400..500 => Self::Refused,
            _ => Self::Unknown,
        }
    }

    /// Whether it has not taken effect.
    pub const fn is_refusal(self) -> bool {
        match self {
            Self::Gone | Self::Conflict | Self::Invalid | Self::Refused => true,
            Self::Unknown => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_says_whether_the_request_may_have_taken_effect() {
        for (status, says) in [
            (404, NoSuccess::Gone),
            (409, NoSuccess::Conflict),
            (410, NoSuccess::Gone),
            (412, NoSuccess::Conflict),
            (422, NoSuccess::Invalid),
            (400, NoSuccess::Refused),
            (403, NoSuccess::Refused),
            (413, NoSuccess::Refused),
            (451, NoSuccess::Refused),
            (0, NoSuccess::Unknown),
            (302, NoSuccess::Unknown),
            (401, NoSuccess::Unknown),
            (408, NoSuccess::Unknown),
            (429, NoSuccess::Unknown),
            (500, NoSuccess::Unknown),
            (504, NoSuccess::Unknown),
        ] {
            assert_eq!(NoSuccess::of(status), says, "{status}");
            assert_eq!(says.is_refusal(), says != NoSuccess::Unknown);
        }
    }
}
