//! Orders to the controller, and how they are handed to it.
//!
//! The controller owns everything that is written down, so a request that needs it becomes an order in
//! its queue and waits for the answer; the queue is short, and a request that finds it full is refused.
//!
//! An order is taken exactly once: by the controller, which carries it out in the same moment, or by
//! its sender, which has waited long enough or hung up. So an order that was answered "not done"
//! is never done later.

use crate::api::{Check, Checked, Done, Release, Releasing, VmEntry};
use crate::problem::Report;
use crate::socket::REQUEST_TIME;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use thiserror::Error;
use tokio::sync::{mpsc, oneshot};
use windlass_kit::clock::Clock;
use windlass_protocol::status::{Caller, Ordered};
use windlass_protocol::{Moment, Note};
use windlass_vm_files::folder::Look;

/// Orders that wait at most.
pub(crate) const QUEUE: usize = 32;

/// An order that was not taken within this is not done. What is left of the socket's time for a
/// request is for writing down what was done, and for the answer.
const TAKEN_WITHIN: Duration = REQUEST_TIME.saturating_sub(Duration::from_secs(5));

/// An order that was taken is answered within this.
pub(crate) const ANSWERED_WITHIN: Duration = Duration::from_secs(4);

/// What can be asked of the controller.
#[derive(Debug)]
pub(crate) enum Order {
    /// Nothing of any VM moves, or that ends.
    Freeze(bool, By, Reply<Done>),
    /// Nothing of this VM moves until then; `None` ends that, and a release.
    Pause(String, Option<Moment>, By, Reply<Done>),
    /// Let go of this VM.
    Release(String, Release, By, Reply<Done>),
    /// How far did that come?
    Releasing(String, Reply<Releasing>),
    /// Is this the text of a VM file, beside those that the folder holds now?
    Check(Check, Look, By, Reply<Checked>),
    /// Where does the file of this VM say that its informant is?
    Informant(String, Reply<Option<SocketAddr>>),
    /// Which VMs are there?
    List(Reply<Vec<VmEntry>>),
    /// What is wrong?
    Problems(Reply<Vec<Report>>),
    /// What do the books' answers and the files say of this VM?
    Tell(String, Moment, Reply<Told>),
}

/// Which process gives an order; `None` where the kernel does not say.
pub(crate) type By = Option<Caller>;

/// The sender of an order that is still wanted.
#[derive(Debug, Default)]
pub(crate) struct Sender {
    /// Which process.
    pub(crate) by: By,
    /// From when on the order is not wanted any more, where the sender says so, by the host's clock.
    pub(crate) not_after: Option<Moment>,
}

/// The controller's part of an explanation.
#[derive(Debug)]
pub(crate) struct Told {
    /// Answers of the books that fell short.
    pub(crate) notes: Vec<Note>,
    /// What is wrong with its file, and more of that kind.
    pub(crate) problems: Vec<String>,
    /// How it stands, unless only its history is left.
    pub(crate) entry: Option<VmEntry>,
    /// The last orders about it and about the host.
    pub(crate) ordered: Vec<Ordered>,
    /// Whether it is known at all.
    pub(crate) known: bool,
}

/// Where an answer goes.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, Declined>>;

/// Why an order is not obeyed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum Declined {
    /// No VM of that name has a file in force; which there are, or what became of it.
    #[error("{0}")]
    UnknownVm(String),
    /// It makes no sense.
    #[error("{0}")]
    Senseless(String),
    /// It makes no sense at this moment.
    #[error("{0}")]
    NotNow(String),
    /// It is done and will be forgotten at the next start.
    #[error("done, but it could not be written down and will not survive a restart: {0}")]
    NotKept(String),
    /// The controller has too many orders, or is gone.
    #[error("not done: the host is busy or about to end; try again")]
    Busy,
    /// The controller did not come to it in time.
    #[error("not done: the host did not come to it within {} s; try again", TAKEN_WITHIN.as_secs())]
    Late,
    /// It reached the host after the last moment at which its sender wanted it.
    #[error("not done: the host came to it only after its sender gave up; try again")]
    Outdated,
    /// The process that sent it has ended.
    #[error("not done: the process that sent it has ended")]
    Abandoned,
}

/// Where orders are handed in.
#[derive(Clone, Debug)]
pub(crate) struct HostCommands {
    orders: mpsc::Sender<Asked>,
    clock: Clock,
}

/// An order that waits to be taken.
#[derive(Debug)]
pub(crate) struct Asked {
    order: Order,
    ticket: Ticket,
    by: Moment,
}

/// Belongs to one order: the first who takes it decides what becomes of the order.
#[derive(Clone, Debug, Default)]
struct Ticket(Arc<AtomicBool>);

// === impl HostCommands ===

impl HostCommands {
    /// The queue, and where its orders come out.
    pub(crate) fn new(clock: Clock) -> (Self, mpsc::Receiver<Asked>) {
        let (orders, receiver) = mpsc::channel(QUEUE);
        (Self { orders, clock }, receiver)
    }

    /// Hands in a question and waits for the answer.
    pub(crate) async fn ask<T>(&self, to: impl FnOnce(Reply<T>) -> Order) -> Result<T, Declined> {
        self.order(&Sender::default(), to).await
    }

    /// The same for what changes something, which is not done after the sender's last moment, nor if the
    /// sender stops waiting before it was taken.
    pub(crate) async fn order<T>(
        &self,
        sender: &Sender,
        order: impl FnOnce(Reply<T>) -> Order,
    ) -> Result<T, Declined> {
        let by = self.clock.now().after(TAKEN_WITHIN);
        let by = sender.not_after.map_or(by, |moment| moment.min(by));
        let (reply, mut answer) = oneshot::channel();
        let ticket = Ticket::default();
        let asked = Asked { order: order(reply), ticket: ticket.clone(), by };
        self.orders.try_send(asked).map_err(|_| Declined::Busy)?;
        tokio::select! {
            biased;
            answer = &mut answer => return answer.unwrap_or(Err(Declined::Busy)),
            () = self.clock.sleep_until(by) => {}
        }
        if ticket.take() {
            return Err(Declined::Late);
        }
        answer.await.unwrap_or(Err(Declined::Busy))
    }
}

// === impl Asked ===

impl Asked {
    /// The order, if it is to be done: at once, since nothing takes it back any more.
    pub(crate) fn take(self, now: Moment) -> Option<Order> {
        (now < self.by && self.ticket.take()).then_some(self.order)
    }
}

// === impl Ticket ===

impl Ticket {
    /// Whether this is the first to take it.
    fn take(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }
}

/// Takes the order back if its sender goes away.
impl Drop for Ticket {
    fn drop(&mut self) {
        self.take();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::timeout;

    #[tokio::test(start_paused = true)]
    async fn an_order_that_was_answered_not_done_is_not_done_later() {
        let clock = Clock::system();
        let (commands, mut orders) = HostCommands::new(clock);
        let start = clock.now();
        let asking = commands.ask(|reply| Order::Freeze(true, None, reply));
        let declined = timeout(2 * REQUEST_TIME, asking).await.unwrap().unwrap_err();
        assert_eq!(declined, Declined::Late);
        assert!(declined.to_string().starts_with("not done: "), "{declined}");
        assert!(clock.now().since(start) < REQUEST_TIME);
        assert!(orders.recv().await.unwrap().take(start).is_none(), "however soon");
    }

    #[tokio::test(start_paused = true)]
    async fn an_order_whose_sender_hung_up_is_not_done() {
        let clock = Clock::system();
        let (commands, mut orders) = HostCommands::new(clock);
        let asking = commands.ask(|reply| Order::Freeze(true, None, reply));
        assert!(timeout(Duration::from_secs(1), asking).await.is_err());
        assert!(orders.recv().await.unwrap().take(clock.now()).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn an_order_that_was_taken_is_waited_for() {
        let clock = Clock::system();
        let (commands, mut orders) = HostCommands::new(clock);
        let controller = async {
            tokio::time::sleep(TAKEN_WITHIN - Duration::from_secs(1)).await;
            let order = orders.recv().await.unwrap().take(clock.now()).unwrap();
            tokio::time::sleep(ANSWERED_WITHIN).await;
            let Order::Freeze(_, _, reply) = order else { panic!("{order:?}") };
            reply.send(Err(Declined::NotKept("full".to_owned()))).unwrap();
        };
        let (answer, ()) =
            tokio::join!(commands.ask(|reply| Order::Freeze(true, None, reply)), controller);
        assert_eq!(answer.unwrap_err(), Declined::NotKept("full".to_owned()));
        // A sender that wants it sooner is not waited for as long.
        let not_after = Some(clock.now().after(Duration::from_secs(1)));
        let sender = Sender { by: None, not_after };
        let controller = async {
            let asked = orders.recv().await.unwrap();
            assert!(asked.take(clock.now().after(Duration::from_secs(1))).is_none());
        };
        let (answer, ()) = tokio::join!(
            commands.order(&sender, |reply| Order::Freeze(true, sender.by, reply)),
            controller
        );
        assert_eq!(answer.unwrap_err(), Declined::Busy);
        // An order that comes too late is not taken, also by a sender that still waits.
        let controller = async {
            let asked = orders.recv().await.unwrap();
            assert!(asked.take(clock.now().after(TAKEN_WITHIN)).is_none());
        };
        let (answer, ()) =
            tokio::join!(commands.ask(|reply| Order::Freeze(true, None, reply)), controller);
        assert_eq!(answer.unwrap_err(), Declined::Busy);
    }
}
