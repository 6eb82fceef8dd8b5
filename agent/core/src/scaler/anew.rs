//! What is known of a guest that restarted, or that is reached elsewhere: nothing, until it says
//! so again.

use super::Scaler;
use crate::trials::Trials;
use windlass_protocol::Moment;

// === impl Scaler ===

impl Scaler {
    /// The guest restarted.
    pub(super) fn reset(&mut self, now: Moment) {
        self.end_session();
        self.session.begins_anew();
        self.trials = Trials::new();
        self.holding.rebooted();
        self.forget_figures(now);
        self.must_look();
        self.journal.interrupted(now);
    }

    /// The informant is elsewhere, or calls back elsewhere: a session with the one of before is of
    /// no use, and a new one need not wait.
    pub(super) fn informant_moved(&mut self) {
        if !self.session.is_absent() {
            self.end_session();
        }
        self.session.begins_anew();
    }

    /// Figures are read elsewhere, at once. Those of before may be another guest's.
    pub(super) fn figures_moved(&mut self, now: Moment, elsewhere: bool) {
        self.figures_elsewhere = elsewhere;
        self.measure_at = now;
        self.forget_figures(now);
        // An agent that acted alone by these figures may act no more, and nothing else would end what
        // it was permitted.
        if !self.acts(now) {
            self.rest_from_asking();
        }
    }

    fn forget_figures(&mut self, now: Moment) {
        self.lines.metrics.disregard();
        self.sample = None;
        self.rest.keep(now);
    }
}
