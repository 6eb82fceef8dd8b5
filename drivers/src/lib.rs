//! How a VM is resized: the trait that every driver implements.
//!
//! A driver says what it can do ([`Capabilities`]), what a VM has ([`Seen`]) and carries out
//! one [`Resize`] at a time. It decides nothing: it holds no goal, retries nothing, and keeps nothing from one call
//! to the next but the connection and what came over it. What it learns unasked (a reset, the end of the VM) comes
//! as a [`Notice`]. Behind [`any::AnyAttach`] drivers of every kind look the same.

pub mod any;

use std::future::Future;
use std::time::Duration;
use thiserror::Error;
use tokio::sync::mpsc;
use windlass_protocol::{Capabilities, LimitCounts, Resize, Seen};

/// A VM that can be seen and resized. Each call has a deadline of its own inside the driver.
pub trait Driver: Send + 'static {
    /// What can be done with this VM, and what the driver [promises](windlass_protocol::Promises) of order
    /// and time; constant for as long as the connection lasts.
    fn capabilities(&self) -> Capabilities;

    /// The size of the VM, and whether the hypervisor runs it. Growth that was asked of
    /// [`Driver::resize`] is in it or never comes, also where the answer was lost, from as soon on as the
    /// driver promises. What was asked back may still leave later, with the guest's doing.
    ///
    /// # Errors
    /// [`DriverError::Gone`] if the VM is no more; otherwise the VM is unknown for now.
    fn see(&mut self) -> impl Future<Output = Result<Seen, DriverError>> + Send;

    /// How the host's limit held the VM up, as of the last look; `None` where there is no limit.
    fn limit_counts(&self) -> Option<LimitCounts> {
        None
    }

    /// Asks for a size. `Ok` says that the hypervisor took the request, not that the guest
    /// followed; only a later [`Driver::see`] says that.
    ///
    /// # Errors
    /// [`DriverError::Refused`] if it was certainly not done; any other error leaves that open.
    fn resize(&mut self, resize: Resize) -> impl Future<Output = Result<(), DriverError>> + Send;
}

/// A way to reach a VM: connects, again after a loss.
pub trait Attach: Send + Sync + 'static {
    /// The driver that a connection gives.
    type Driver: Driver;

    /// Where the hypervisor is, in the words of its driver: the path of a socket, the name of an
    /// object. A place serves one client at a time: beside a connection over one way to it, another
    /// way can only wait for its end.
    fn place(&self) -> String;

    /// Whether a connection over `other` is as good as one over this.
    fn is_same_way(&self, other: &Self) -> bool {
        self.place() == other.place()
    }

    /// Connects. Notices come on the receiver until the connection ends, which closes it.
    ///
    /// # Errors
    /// [`DriverError::Gone`] if there is no VM; [`DriverError::Taken`] if its hypervisor serves
    /// another client; [`DriverError::Stopped`] if its process is stopped; [`DriverError::Silent`] if
    /// that cannot be told; otherwise it may work later.
    fn attach(
        &self,
    ) -> impl Future<Output = Result<(Self::Driver, mpsc::Receiver<Notice>), DriverError>> + Send;
}

/// What a hypervisor says unasked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The guest restarted: the session and each consent end.
    Reset,
    /// Something about its size changed, or whether it runs; worth a look.
    Changed,
}

/// Why a hypervisor could not be asked, or did not do it.
#[derive(Debug, Error)]
pub enum DriverError {
    /// The hypervisor has ended. Not said for a time-out.
    #[error("the vm is gone: {place}: {why}")]
    Gone {
        /// Where it was looked for.
        place: String,
        /// What was found.
        why: String,
    },
    /// The hypervisor does not answer, and its process runs: it serves another client, or hangs.
    #[error(
        "{place} does not answer: it serves one client at a time, and another seems to have it"
    )]
    Taken {
        /// Where it was looked for.
        place: String,
    },
    /// The hypervisor does not answer, and its process cannot be seen.
    #[error("{place} does not answer: another client has it, or its process is stopped or hangs")]
    Silent {
        /// Where it was looked for.
        place: String,
    },
    /// The hypervisor does not answer, and its process is stopped: by a signal, or by a debugger.
    #[error("{place} does not answer: its process {pid} is stopped")]
    Stopped {
        /// Where it was looked for.
        place: String,
        /// The process.
        pid: i32,
    },
    /// No answer in time.
    #[error("no answer to {command} within {limit:?}")]
    NoAnswer {
        /// What was asked.
        command: &'static str,
        /// How long was waited.
        limit: Duration,
    },
    /// The hypervisor refused; nothing was changed.
    #[error("{command} refused: {reason}")]
    Refused {
        /// What was asked.
        command: &'static str,
        /// The hypervisor's words.
        reason: String,
    },
    /// A part was done, and the rest refused.
    #[error("{command} went only a part of the way: {reason}")]
    Partly {
        /// What was asked.
        command: &'static str,
        /// The hypervisor's words.
        reason: String,
    },
    /// The connection broke or carried something that is not the protocol.
    #[error("connection broken: {0}")]
    Broken(String),
}

// === impl DriverError ===

impl DriverError {
    /// Whether what was asked may have been done all the same, wholly or in part.
    pub const fn may_have_happened(&self) -> bool {
        match self {
            Self::Taken { .. }
            | Self::Silent { .. }
            | Self::Stopped { .. }
            | Self::Refused { .. } => false,
            Self::Gone { .. } | Self::NoAnswer { .. } | Self::Partly { .. } | Self::Broken(_) => {
                true
            }
        }
    }
}
