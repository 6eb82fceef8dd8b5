//! Whether the hypervisor runs the guest, and what follows from that.
//!
//! - A VM that its hypervisor does not run, or is about to hand over, is not resized: it keeps what
//!   it has, in the books too.
//! - A guest that stands still answers nothing, so it is asked nothing, and its silence is no fault
//!   of its informant. No other agent can be told to act in it meanwhile.
//! - Its clock stands still with it, so its informant does not notice. The agent does: load counts
//!   over a window once the guest has run for so long again.

use super::Scaler;
use super::runs::Runs;
use windlass_protocol::timing::FIGURES_LAST;
use windlass_protocol::{Moment, RunState, Waiting};
use windlass_scaling::{Sample, memory};

// === impl Scaler ===

impl Scaler {
    /// What the hypervisor last said of it; before it was seen, that it runs.
    pub fn run_state(&self) -> RunState {
        self.holding.seen().map_or(RunState::Running, |seen| seen.state)
    }

    /// Since when the informant is silent, not counting the time in which its guest stood still.
    pub fn silent_since(&self) -> Moment {
        self.session.heard_at().max(self.runs.since().unwrap_or_default())
    }

    /// Whether this agent acted when its guest was found to stand still: it is the only one then.
    pub(super) fn acted_last(&self) -> bool {
        self.runs == Runs::Not { acted: true } && self.session.is_active()
    }

    /// The hypervisor was looked at.
    pub(super) fn sees_state(&mut self, now: Moment) {
        let executes = self.run_state().executes();
        match self.runs {
            Runs::Not { .. } if executes => {
                self.runs = Runs::Since(now);
                self.measure_at = now;
            }
            Runs::Always | Runs::Since(_) if !executes => {
                self.runs = Runs::Not { acted: self.acts(now) };
                self.sample = None;
            }
            Runs::Always | Runs::Since(_) | Runs::Not { .. } => return,
        }
        // What was asked before is of another time.
        self.lines.metrics.disregard();
    }

    /// The guest's figures were read.
    pub(super) fn measured(&mut self, sample: Sample) {
        self.holding.report(sample.online);
        let giving = self.holding.is_giving();
        let sample = self.reading.counts(sample, self.sample.as_ref(), giving);
        let sample = Sample { loads: self.runs.counts(sample.at, sample.loads), ..sample };
        let window = sample.loads.over(self.info.load_window);
        if window.is_some() && memory::used(&sample).is_some() {
            self.complete_at = Some(sample.at);
        }
        self.sample = Some(sample);
    }

    /// What is missing of the guest's figures.
    pub(super) fn waiting_for_figures(&self, now: Moment) -> Option<Waiting> {
        let lasts = |at: Moment| now.since(at) < FIGURES_LAST;
        match (&self.sample, self.complete_at) {
            (None, None) => Some(Waiting::FirstSignals),
            (_, Some(at)) if lasts(at) => None,
            (Some(sample), _) if lasts(sample.at) && memory::used(sample).is_some() => {
                let window = self.info.load_window;
                let over = sample.loads.shorter(window).map(|(over, _)| over);
                let resumed = self.runs.since().is_some_and(|at| now.since(at) < window.length());
                let fills = over.is_some() || resumed;
                Some(match fills {
                    true => Waiting::Window { over },
                    false => Waiting::Signals { since: self.complete_at },
                })
            }
            (Some(sample), _) if !lasts(sample.at) => {
                Some(Waiting::Signals { since: Some(sample.at) })
            }
            (_, since) => Some(Waiting::Signals { since }),
        }
    }
}
