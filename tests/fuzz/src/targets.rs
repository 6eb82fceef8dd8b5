//! The targets, by listener: who reads which bytes.

use crate::{
    agent_calls, informant, informant_answers, monitor, operator_texts, pages, permit_answers,
    plugin,
};

/// A function of bytes that panics where a promise does not hold.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name: of its corpus, and on the command line of `make fuzz`.
    pub name: &'static str,
    /// Who reads what.
    pub about: &'static str,
    play: fn(&[u8]),
}

/// All of them.
pub const TARGETS: [Target; 8] =
    [INFORMANT, CALLS, ANSWERS, PLUGIN, PERMITS, MONITOR, TEXTS, PAGES];

const INFORMANT: Target = Target {
    name: "informant",
    about: "the informant's listener: connections, and histories of requests and answers",
    play: informant::play,
};

const CALLS: Target = Target {
    name: "calls",
    about: "the agent's call-back server: what an informant asks a session",
    play: agent_calls::play,
};

const ANSWERS: Target = Target {
    name: "answers",
    about: "the agent as the informant's client: answers, and what is done upon them",
    play: informant_answers::play,
};

const PLUGIN: Target = Target {
    name: "plugin",
    about: "the plugin's listener: connections, and requests in every version, to the books",
    play: plugin::play,
};

const PERMITS: Target = Target {
    name: "permits",
    about: "the agent as the plugin's client: permits, and what is done upon them",
    play: permit_answers::play,
};

const MONITOR: Target = Target {
    name: "monitor",
    about: "the driver of QEMU: what a monitor says, before, between and in place of answers",
    play: monitor::play,
};

const TEXTS: Target = Target {
    name: "texts",
    about: "what operators write: VM files, annotations, amounts, what configures programs",
    play: operator_texts::play,
};

const PAGES: Target = Target {
    name: "pages",
    about: "metrics that the agent reads, and the host's socket",
    play: pages::play,
};

// === impl Target ===

impl Target {
    /// The target of this name.
    pub fn find(name: &str) -> Option<Self> {
        TARGETS.into_iter().find(|target| target.name == name)
    }

    /// Plays one input.
    ///
    /// # Panics
    /// If a promise does not hold.
    pub fn run(&self, input: &[u8]) {
        (self.play)(input);
    }
}
