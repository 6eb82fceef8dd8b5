//! Answers of peers that do not say what was asked, and what the scaler hears of them.

use crate::event::Failure;
use thiserror::Error;
use windlass_protocol::BadBody;
use windlass_protocol::version::{InformantVersion, Versions};

/// An answer that does not say what was asked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WireError {
    /// A refusal by status.
    #[error("status: {0} is a refusal")]
    Refused(u16),
    /// A refusal of the version that was stated, and its words, shortened.
    #[error("protoVersion: the plugin does not take it: {0}")]
    Version(String),
    /// A refusal because the VM is about to be moved.
    #[error("resources: the plugin says that the VM is about to be moved")]
    Moving,
    /// A status that is neither an answer nor a refusal.
    #[error("status: {0} is neither 200 nor a refusal")]
    Odd(u16),
    /// A body that is not the message.
    #[error(transparent)]
    Broken(#[from] BadBody),
    /// The informant chose a version that the agent did not offer.
    #[error("protoVersion: {chosen} is not {offered}")]
    NotOffered {
        /// What it chose.
        chosen: InformantVersion,
        /// What was offered.
        offered: Versions<InformantVersion>,
    },
    /// The informant does not say where metrics are read.
    #[error("metricsMethod.prometheus.port: is missing")]
    NoMetricsPort,
    /// The action is not a request to the informant.
    #[error("the informant was not asked")]
    Unasked,
}

// === impl WireError ===

impl WireError {
    /// What the scaler hears.
    pub const fn failure(&self) -> Failure {
        match self {
            Self::Refused(status) => Failure::Refused(*status),
            Self::Version(_) => Failure::Version,
            Self::Moving => Failure::Moving,
            Self::Odd(_)
            | Self::Broken(_)
            | Self::NotOffered { .. }
            | Self::NoMetricsPort
            | Self::Unasked => Failure::NoAnswer,
        }
    }
}
