//! Answers on their way: those of one exchange at a time, handed over together once the last of them is there.
//!
//! A look asks five questions, and QEMU answers one after another. Whoever asked is woken once, not at each answer.

use crate::wire::{QmpError, Returned};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// What QEMU answered to a command.
pub(crate) type Answer = Result<Returned, QmpError>;

/// The answers that are awaited over one connection. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Awaited(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// The largest number of a command that was sent.
    asked: u64,
    /// The connection has ended.
    is_over: bool,
    exchange: Option<Exchange>,
}

#[derive(Debug)]
struct Exchange {
    /// The number of its first command; those of the others follow.
    first: u64,
    count: usize,
    answers: Vec<Answer>,
    done: oneshot::Sender<Vec<Answer>>,
}

// === impl Awaited ===

impl Awaited {
    /// So many commands are about to be sent, the first with this number. Answers to earlier ones are passed over from here on. The
    /// channel closes without a value when the connection ends.
    pub(crate) fn begin(&self, first: u64, count: usize) -> oneshot::Receiver<Vec<Answer>> {
        let (done, answers) = oneshot::channel();
        let mut state = self.lock();
        state.asked = first.saturating_add(count as u64).saturating_sub(1);
        let exchange = Exchange { first, count, answers: Vec::with_capacity(count), done };
        state.exchange = (!state.is_over).then_some(exchange);
        answers
    }

    /// How many answers of this exchange are there.
    pub(crate) fn came(&self) -> usize {
        self.lock().exchange.as_ref().map_or(0, |exchange| exchange.answers.len())
    }

    /// An answer came to the command of this number. Whether there was such a command.
    pub(crate) fn hear(&self, id: u64, answer: Answer) -> bool {
        let mut state = self.lock();
        if id == 0 || id > state.asked {
            return false;
        }
        let next = |exchange: &Exchange| exchange.first + exchange.answers.len() as u64;
        if let Some(exchange) = state.exchange.as_mut().filter(|exchange| next(exchange) == id) {
            exchange.answers.push(answer);
        }
        let is_whole = |exchange: &mut Exchange| exchange.answers.len() == exchange.count;
        if let Some(Exchange { answers, done, .. }) = state.exchange.take_if(is_whole) {
            // Its caller may have given up.
            let _ = done.send(answers);
        }
        true
    }

    /// The connection has ended: nothing is answered any more.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        (state.is_over, state.exchange) = (true, None);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot::error::TryRecvError;

    #[test]
    fn answers_of_one_exchange_come_together_and_those_of_before_are_passed_over() {
        let awaited = Awaited::default();
        assert!(!awaited.hear(1, refused("nothing was asked yet")));
        let mut first = awaited.begin(1, 2);
        assert!(awaited.hear(1, refused("a")));
        assert_eq!((awaited.came(), first.try_recv().is_err()), (1, true));
        let mut second = awaited.begin(3, 2);
        assert!(first.try_recv().is_err(), "its caller gave up");
        for (id, word) in [(2, "b"), (4, "out of turn"), (3, "c"), (3, "again"), (4, "d")] {
            assert!(awaited.hear(id, refused(word)), "{word} was asked for");
        }
        let words = second.try_recv().unwrap().into_iter().map(|said| said.unwrap_err().desc);
        assert_eq!(words.collect::<Vec<_>>(), ["c", "d"]);
        assert!(!awaited.hear(5, refused("nobody asked")) && !awaited.hear(0, refused("nor that")));
    }

    #[test]
    fn nothing_is_awaited_after_the_end() {
        let awaited = Awaited::default();
        let mut open = awaited.begin(1, 1);
        awaited.end();
        assert!(matches!(open.try_recv(), Err(TryRecvError::Closed)));
        let mut late = awaited.begin(2, 1);
        assert!(matches!(late.try_recv(), Err(TryRecvError::Closed)));
    }

    fn refused(word: &str) -> Answer {
        Err(QmpError { class: String::new(), desc: word.to_owned() })
    }
}
