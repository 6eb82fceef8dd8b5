//! When and why a VM got less than it asked for. Bounded: the oldest is forgotten.
//!
//! An agent that is short asks every few seconds; the same question with the same answer is
//! one note that says how often, so an hour of waiting fits.

use std::collections::VecDeque;
use windlass_protocol::{Moment, Note, Resources, Shortage};

/// The notes kept per VM, at most.
const MOST_NOTES: usize = 32;

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Journal(VecDeque<Note>);

// === impl Journal ===

impl Journal {
    pub(crate) fn write(
        &mut self,
        now: Moment,
        asked: Resources,
        permit: Resources,
        short: &[Shortage],
    ) {
        if let Some(note) = self.0.back_mut().filter(|note| is_same(note, asked, permit, short)) {
            note.last = now;
            note.times = note.times.saturating_add(1);
            short.clone_into(&mut note.short);
            return;
        }
        if self.0.len() >= MOST_NOTES {
            self.0.pop_front();
        }
        let short = short.to_vec();
        self.0.push_back(Note { first: now, last: now, times: 1, asked, permit, short });
    }

    pub(crate) fn notes(&self) -> Vec<Note> {
        self.0.iter().cloned().collect()
    }
}

fn is_same(note: &Note, asked: Resources, permit: Resources, short: &[Shortage]) -> bool {
    let axis = |short: &Shortage| short.axis;
    let same_axes = note.short.iter().map(axis).eq(short.iter().map(axis));
    (note.asked, note.permit) == (asked, permit) && same_axes
}
