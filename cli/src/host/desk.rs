//! Orders to the steward, and how they are handed to it.
//!
//! The steward owns everything that is written down, so whoever wants something of it sends
//! an order and waits for the answer; the queue is short, and whoever finds it full is told.

use crate::api::{Checked, Done, Release, VmEntry};
use crate::explain::Note;
use crate::problem::Report;
use thiserror::Error;
use tokio::sync::{mpsc, oneshot};
use windlass_protocol::Moment;

/// Orders that wait at most.
const QUEUE: usize = 32;

/// What can be asked of the steward.
#[derive(Debug)]
pub(super) enum Order {
    /// Nothing of any VM moves, or that ends.
    Freeze(bool, Reply<Done>),
    /// Nothing of this VM moves until then; `None` ends that, and a release.
    Pause(String, Option<Moment>, Reply<Done>),
    /// Let go of this VM.
    Release(String, Release, Reply<Done>),
    /// Is this the text of a VM file?
    Check(String, String, Reply<Checked>),
    /// Which VMs are there?
    List(Reply<Vec<VmEntry>>),
    /// What is wrong?
    Problems(Reply<Vec<Report>>),
    /// What do the books' answers and the files say of this VM?
    Tell(String, Moment, Reply<Told>),
}

/// The steward's part of an explanation.
#[derive(Debug)]
pub(super) struct Told {
    /// Answers of the books that fell short.
    pub(super) notes: Vec<Note>,
    /// What is wrong with its file, and more of that kind.
    pub(super) problems: Vec<String>,
    /// How it stands, unless only its history is left.
    pub(super) entry: Option<VmEntry>,
    /// Whether it is known at all.
    pub(super) known: bool,
}

/// Where an answer goes.
pub(super) type Reply<T> = oneshot::Sender<Result<T, Declined>>;

/// Why an order is not obeyed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum Declined {
    /// There is no such VM.
    #[error("there is no VM {vm}; {known}")]
    UnknownVm {
        /// What was asked for.
        vm: String,
        /// Which there are.
        known: String,
    },
    /// It makes no sense.
    #[error("{0}")]
    Senseless(String),
    /// It makes no sense at this moment.
    #[error("{0}")]
    NotNow(String),
    /// It is done and will be forgotten at the next start.
    #[error("done, but it could not be written down and will not survive a restart: {0}")]
    NotKept(String),
    /// The steward is busy or gone.
    #[error("the host is busy; try again")]
    Busy,
}

/// Where orders are handed in.
#[derive(Clone, Debug)]
pub(super) struct Desk(mpsc::Sender<Order>);

// === impl Desk ===

impl Desk {
    /// A desk, and where its orders come out.
    pub(super) fn new() -> (Self, mpsc::Receiver<Order>) {
        let (sender, receiver) = mpsc::channel(QUEUE);
        (Self(sender), receiver)
    }

    /// Hands in an order and waits for the answer.
    pub(super) async fn ask<T>(
        &self,
        order: impl FnOnce(Reply<T>) -> Order,
    ) -> Result<T, Declined> {
        let (reply, answer) = oneshot::channel();
        self.0.try_send(order(reply)).map_err(|_| Declined::Busy)?;
        answer.await.unwrap_or(Err(Declined::Busy))
    }
}
