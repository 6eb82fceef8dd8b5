//! Agents of older releases, for the stories of an informant.

use crate::story::Story;

impl Story {
    /// An agent registers that speaks every version up to the one of this number.
    pub(crate) fn register_up_to(&mut self, agent: u128, max: u32) {
        self.register_as(agent, &format!("10.0.2.2:{}", 20_000 + agent), 1, max);
    }

    /// The first story of an agent of that release: it registers, and time is not yet passing.
    pub(crate) fn with_older(max: u32) -> Self {
        let mut story = Self::new();
        story.register_up_to(1, max);
        story
    }
}
