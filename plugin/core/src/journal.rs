//! When and why a VM got less than it asked for. Bounded: the oldest is forgotten.
//!
//! An agent that is short asks every few seconds; the same question with the same answer is
//! one note that says how often, so an hour of waiting fits.

use std::collections::VecDeque;
use windlass_protocol::{Moment, Note, Resources, Shortage};

/// The notes kept per VM, at most.
const MOST_NOTES: usize = 32;

/// Few VMs are ever short: the others have no list.
#[expect(clippy::box_collection, reason = "an entry of the books has eight bytes for it")]
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Journal(Option<Box<VecDeque<Note>>>);

// === impl Journal ===

impl Journal {
    pub(crate) fn write(
        &mut self,
        now: Moment,
        asked: Resources,
        permit: Resources,
        short: &[Shortage],
    ) {
        let notes = &mut **self.0.get_or_insert_default();
        if let Some(note) = notes.back_mut().filter(|note| is_same(note, asked, permit, short)) {
            note.last = now;
            note.times = note.times.saturating_add(1);
            short.clone_into(&mut note.short);
            return;
        }
        if notes.len() >= MOST_NOTES {
            notes.pop_front();
        }
        let short = short.to_vec();
        notes.push_back(Note { first: now, last: now, times: 1, asked, permit, short });
    }

    pub(crate) fn notes(&self) -> Vec<Note> {
        self.0.iter().flat_map(|notes| notes.iter()).cloned().collect()
    }

    /// The last one.
    pub(crate) fn last(&self) -> Option<&Note> {
        self.0.as_ref()?.back()
    }
}

fn is_same(note: &Note, asked: Resources, permit: Resources, short: &[Shortage]) -> bool {
    let axis = |short: &Shortage| short.axis;
    let same_axes = note.short.iter().map(axis).eq(short.iter().map(axis));
    (note.asked, note.permit) == (asked, permit) && same_axes
}
