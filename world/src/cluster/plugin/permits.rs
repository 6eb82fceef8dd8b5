//! Answers to agents, at once or once a ceiling is recorded or a kubelet has answered.

use super::{Asks, Out, Plugin, Turn, Waiting};
use windlass_plugin_core::cluster::Node;
use windlass_plugin_core::{Books, Proposed};
use windlass_protocol::timing::ANSWER_WAITS;
use windlass_protocol::{Resources, VmName};

// === impl Plugin ===

impl Plugin {
    pub(crate) fn permit(&mut self, turn: &mut Turn<'_>, asks: Asks) {
        if self.serves(turn.now).is_err() {
            return self.answer(turn, asks, None);
        }
        if asks.begun != self.rebuild.begun() {
            turn.met.note("requests over connections of before a plugin led");
            return self.answer(turn, asks, None);
        }
        if self.passes_over(turn.now) {
            turn.met.note("requests that waited in a stopped plugin");
            return self.answer(turn, asks, None);
        }
        if self.books.node_of(&asks.vm).is_some_and(|node| *node.name != *asks.node) {
            turn.met.note("agents of another node than the pod's");
            return self.answer(turn, asks, None);
        }
        let (now, ask) = (turn.now, asks.ask);
        let proposed = self.ask_books(&asks.vm, |books| {
            let proposed = books.propose(now, &asks.vm, ask).ok()?;
            let says_too_little = match &proposed {
                Proposed::Granted(granted) => books.says_too_little(&asks.vm, ask.wanted, granted),
                Proposed::Waits => false,
            };
            (!says_too_little).then_some(proposed)
        });
        match proposed {
            Some(Proposed::Granted(granted)) => self.answer(turn, asks, Some(granted.permit)),
            Some(Proposed::Waits) => {
                let (vm, until) = (asks.vm.clone(), turn.now.after(ANSWER_WAITS));
                self.requests += 1;
                self.waiting.insert(self.requests, Waiting { asks, until });
                if self.books.is_resized(&vm) {
                    turn.met.note("answers that waited for a kubelet");
                    self.resizes.call_for(&vm, None);
                    self.resize(turn);
                } else {
                    turn.met.note("answers that waited for a ceiling");
                    self.proposals.call_for(&vm, Some(self.requests));
                    self.record(turn);
                }
            }
            None => self.answer(turn, asks, None),
        }
    }

    /// Requests that have waited for long enough, or whose kubelet has answered, are answered as far as they can be.
    pub(crate) fn end_waits(&mut self, turn: &mut Turn<'_>) {
        let books = &self.books;
        let is_over = |waiting: &Waiting| {
            let vm = &waiting.asks.vm;
            waiting.until <= turn.now || (books.is_resized(vm) && !books.waits_for_kubelet(vm))
        };
        let over = self.waiting.iter().filter(|(_, waiting)| is_over(waiting));
        let over: Vec<u64> = over.map(|(number, _)| *number).collect();
        self.go_on(turn, &over);
    }

    /// These requests are answered, if they still wait: what came of the write is in the books.
    pub(super) fn go_on(&mut self, turn: &mut Turn<'_>, requests: &[u64]) {
        for number in requests {
            let Some(Waiting { asks, .. }) = self.waiting.remove(number) else { continue };
            let (now, ask) = (turn.now, asks.ask);
            let granted = self.ask_books(&asks.vm, |books| {
                let granted = books.request(now, &asks.vm, ask).ok()?;
                (!books.says_too_little(&asks.vm, ask.wanted, &granted)).then_some(granted)
            });
            if granted.as_ref().is_some_and(|granted| granted.is_unrecorded) {
                turn.met.note("answers that were cut at a ceiling");
            }
            self.answer(turn, asks, granted.map(|granted| granted.permit));
        }
    }

    /// Asks the books of the node that has a VM.
    pub(super) fn ask_books<T>(
        &self,
        vm: &VmName,
        ask: impl FnOnce(&mut Books) -> Option<T>,
    ) -> Option<T> {
        self.books.node_of(vm)?.with_books(ask)
    }

    /// The lease may have ended meanwhile.
    fn answer(&self, turn: &mut Turn<'_>, to: Asks, permit: Option<Resources>) {
        let answers = self.serves(turn.now).is_ok() && !self.passes_over(turn.now);
        turn.out.push(Out::Answers { to, permit: permit.filter(|_| answers) });
    }
}
