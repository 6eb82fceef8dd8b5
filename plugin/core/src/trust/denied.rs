//! Callers that are denied, and why.

use std::sync::Arc;
use thiserror::Error;

/// Why a caller is denied. No variant holds a token.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Denied {
    /// There are no credentials.
    #[error("no bearer token: agents and people need one with the audience windlass-plugin")]
    NoToken,
    /// The API server refuses the token.
    #[error("the API server refuses the token: {0}")]
    NotValid(Arc<str>),
    /// The token was accepted once, and its time is over.
    #[error("the token has expired")]
    Expired,
    /// The API server is silent, and has not said lately whom the token is of.
    #[error("the API server does not answer whom the token is of")]
    NotKnown,
    /// As many tokens are reviewed as may be at a time.
    #[error("too many tokens are being reviewed")]
    Busy,
    /// The token is of another account.
    #[error("{user} is not the account of agents, which is {agent}")]
    OtherAccount {
        /// Whom the token is of.
        user: Arc<str>,
        /// Whose tokens are taken.
        agent: Arc<str>,
    },
    /// The token names no node.
    #[error("the token names no node: it must be bound to a pod that is on one")]
    NoNode,
    /// The caller showed no certificate.
    #[error("no client certificate: the extender answers {0}")]
    NoCertificate(Arc<str>),
    /// The caller's certificate is not the scheduler's.
    #[error("the certificate is that of {name:?}: the extender answers {scheduler}")]
    OtherCertificate {
        /// The common name of the certificate.
        name: Arc<str>,
        /// Whose certificate is taken.
        scheduler: Arc<str>,
    },
    /// The caller may not see what it asks for.
    #[error("{user} may not get pods in {place}, and VMs are shown to those who may")]
    NoRight {
        /// Whom the token is of.
        user: Arc<str>,
        /// A namespace, or all.
        place: Arc<str>,
    },
    /// The VM is on another node than the caller.
    #[error("the VM is not on {0}, the node of the token")]
    OtherNode(Arc<str>),
}

// === impl Denied ===

impl Denied {
    /// Whether a caller with this common name in its certificate is denied what the scheduler may ask.
    ///
    /// # Errors
    /// It is denied.
    pub fn unless_scheduler(scheduler: &Arc<str>, name: Option<&Arc<str>>) -> Result<(), Self> {
        match name {
            None => Err(Self::NoCertificate(scheduler.clone())),
            Some(name) if name == scheduler => Ok(()),
            Some(name) => {
                let (name, scheduler) = (name.clone(), scheduler.clone());
                Err(Self::OtherCertificate { name, scheduler })
            }
        }
    }

    /// Whether a caller on `node` is denied for a VM that is on `of_vm`. A VM that no node has is unknown to everybody.
    ///
    /// # Errors
    /// It is denied.
    pub fn unless_same(node: &Arc<str>, of_vm: Option<&str>) -> Result<(), Self> {
        match of_vm {
            Some(other) if *other != **node => Err(Self::OtherNode(node.clone())),
            Some(_) | None => Ok(()),
        }
    }

    /// The HTTP status that goes with it.
    pub const fn status(&self) -> u16 {
        match self {
            Self::NoToken | Self::NotValid(_) | Self::Expired | Self::NoCertificate(_) => 401,
            Self::OtherAccount { .. }
            | Self::NoRight { .. }
            | Self::NoNode
            | Self::OtherNode(_)
            | Self::OtherCertificate { .. } => 403,
            Self::NotKnown | Self::Busy => 503,
        }
    }

    /// The stable spelling.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::NoToken => "no-token",
            Self::NotValid(_) => "not-valid",
            Self::Expired => "expired",
            Self::NotKnown => "not-known",
            Self::Busy => "busy",
            Self::OtherAccount { .. } => "other-account",
            Self::NoNode => "no-node",
            Self::NoRight { .. } => "no-right",
            Self::OtherNode(_) => "other-node",
            Self::NoCertificate(_) => "no-certificate",
            Self::OtherCertificate { .. } => "other-certificate",
        }
    }
}
