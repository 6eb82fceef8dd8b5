//! Orders to the controller, and how they are handed to it.
//!
//! The controller owns everything that is written down, so a request that needs it becomes an order in
//! its queue and waits for the answer; the queue is short, and a request that finds it full is refused.
//!
//! An order is taken exactly once: by the controller, which carries it out in the same moment, or by
//! its sender, which has waited long enough or hung up. So an order that was answered "not done"
//! is never done later.

use crate::refused::Refused;
use crate::socket::REQUEST_TIME;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use windlass_kit::clock::Clock;
use windlass_protocol::Moment;
use windlass_protocol::status::Caller;

/// Orders that wait at most.
pub(crate) const QUEUE: usize = 32;

/// An order that was not taken within this is not done. What is left of the socket's time for a
/// request is for writing down what was done, and for the answer.
const TAKEN_WITHIN: Duration = REQUEST_TIME.saturating_sub(Duration::from_secs(5));

/// An order that was taken is answered within this.
pub(crate) const ANSWERED_WITHIN: Duration = Duration::from_secs(4);

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

/// Where an answer goes.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, Refused>>;

/// Where orders to a host are handed in.
pub(crate) struct HostCommands<Host> {
    orders: mpsc::Sender<Asked<Host>>,
    clock: Clock,
}

/// What the controller does of an order.
type Order<Host> = Box<dyn FnOnce(&mut Host) + Send>;

/// An order that waits to be taken.
pub(crate) struct Asked<Host> {
    order: Order<Host>,
    ticket: Ticket,
    by: Moment,
}

/// Belongs to one order: the first who takes it decides what becomes of the order.
#[derive(Clone, Debug, Default)]
struct Ticket(Arc<AtomicBool>);

// === impl HostCommands ===

impl<Host> HostCommands<Host> {
    /// The queue, and where its orders come out.
    pub(crate) fn new(clock: Clock) -> (Self, mpsc::Receiver<Asked<Host>>) {
        let (orders, receiver) = mpsc::channel(QUEUE);
        (Self { orders, clock }, receiver)
    }

    /// Hands in a question and waits for the answer.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Host) -> T + Send + 'static,
    ) -> Result<T, Refused> {
        let order = |host: &mut Host, reply: Reply<T>| drop(reply.send(Ok(question(host))));
        self.order(&Sender::default(), order).await
    }

    /// The same for what changes something, which is not done after the sender's last moment, nor if the
    /// sender stops waiting before it was taken.
    pub(crate) async fn order<T: Send + 'static>(
        &self,
        sender: &Sender,
        order: impl FnOnce(&mut Host, Reply<T>) + Send + 'static,
    ) -> Result<T, Refused> {
        let by = self.clock.now().after(TAKEN_WITHIN);
        let by = sender.not_after.map_or(by, |moment| moment.min(by));
        let (reply, mut answer) = oneshot::channel();
        let ticket = Ticket::default();
        let order = Box::new(|host: &mut Host| order(host, reply));
        let asked = Asked { order, ticket: ticket.clone(), by };
        self.orders.try_send(asked).map_err(|_| Refused::Busy)?;
        tokio::select! {
            biased;
            answer = &mut answer => return answer.unwrap_or(Err(Refused::Busy)),
            () = self.clock.sleep_until(by) => {}
        }
        if ticket.take() {
            return Err(Refused::Late(TAKEN_WITHIN));
        }
        answer.await.unwrap_or(Err(Refused::Busy))
    }
}

// === impl Asked ===

impl<Host> Asked<Host> {
    /// The order, if it is to be done: at once, since nothing takes it back any more.
    pub(crate) fn take(self, now: Moment) -> Option<Order<Host>> {
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
        let (commands, mut orders) = HostCommands::<()>::new(clock);
        let start = clock.now();
        let asking = commands.ask(|()| ());
        let declined = timeout(2 * REQUEST_TIME, asking).await.unwrap().unwrap_err();
        assert_eq!(declined, Refused::Late(TAKEN_WITHIN));
        assert!(declined.to_string().starts_with("not done: "), "{declined}");
        assert!(clock.now().since(start) < REQUEST_TIME);
        assert!(orders.recv().await.unwrap().take(start).is_none(), "however soon");
    }

    #[tokio::test(start_paused = true)]
    async fn an_order_whose_sender_hung_up_is_not_done() {
        let clock = Clock::system();
        let (commands, mut orders) = HostCommands::<()>::new(clock);
        let asking = commands.ask(|()| ());
        assert!(timeout(Duration::from_secs(1), asking).await.is_err());
        assert!(orders.recv().await.unwrap().take(clock.now()).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn an_order_that_was_taken_is_waited_for() {
        let clock = Clock::system();
        let (commands, mut orders) = HostCommands::<()>::new(clock);
        let controller = async {
            tokio::time::sleep(TAKEN_WITHIN - Duration::from_secs(1)).await;
            let order = orders.recv().await.unwrap().take(clock.now()).unwrap();
            tokio::time::sleep(ANSWERED_WITHIN).await;
            order(&mut ());
        };
        let full = |(): &mut (), reply: Reply<()>| {
            reply.send(Err(Refused::NotKept("full".to_owned()))).unwrap();
        };
        let sender = Sender::default();
        let (answer, ()) = tokio::join!(commands.order(&sender, full), controller);
        assert_eq!(answer.unwrap_err(), Refused::NotKept("full".to_owned()));
        // A sender that wants it sooner is not waited for as long.
        let not_after = Some(clock.now().after(Duration::from_secs(1)));
        let sender = Sender { by: None, not_after };
        let controller = async {
            let asked = orders.recv().await.unwrap();
            assert!(asked.take(clock.now().after(Duration::from_secs(1))).is_none());
        };
        let (answer, ()) = tokio::join!(commands.order(&sender, full), controller);
        assert_eq!(answer.unwrap_err(), Refused::Busy);
        // An order that comes too late is not taken, also by a sender that still waits.
        let controller = async {
            let asked = orders.recv().await.unwrap();
            assert!(asked.take(clock.now().after(TAKEN_WITHIN)).is_none());
        };
        let (answer, ()) = tokio::join!(commands.ask(|()| ()), controller);
        assert_eq!(answer.unwrap_err(), Refused::Busy);
    }
}
