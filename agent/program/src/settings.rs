//! The agent's configuration, read again while it runs: all of it takes effect at the next start, so
//! what can be done is to say whether that will go well.

use crate::args::Source;
use crate::config::AgentConfig;
use windlass_agent_host::settings::Settings;
use windlass_kit::problem::Problem;

/// What the configuration says, and how it is read.
pub(crate) struct AgentSettings {
    pub(crate) source: Source,
    pub(crate) config: AgentConfig,
}

// === impl AgentSettings ===

impl Settings for AgentSettings {
    fn file(&self) -> &'static str {
        self.source.name
    }

    fn follow(&mut self, text: &str) -> Result<Vec<&'static str>, Vec<Problem>> {
        Ok(self.source.parse(text)?.needs_restart(&self.config))
    }
}
