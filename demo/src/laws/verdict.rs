//! What a check of a recording found.

use serde::{Deserialize, Serialize};
use windlass_protocol::{Moment, VmName};

/// What was checked, and how it came out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Verdict {
    /// Which check.
    pub(crate) check: Check,
    /// How many comparisons were made.
    pub(crate) compared: u64,
    /// How many could not be made, for want of a figure.
    pub(crate) unknown: u64,
    /// What was found, oldest first.
    pub(crate) violations: Vec<Violation>,
}

/// A check of a whole recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Check {
    /// Law 1.
    PermitBeforeGrowth,
    /// Law 2.
    BooksWithinTheNode,
    /// Law 3, what the informant agreed to.
    ConsentBeforeShrinkage,
    /// Law 3, what is in use.
    NeverBelowUse,
    /// Law 8: every VM got where the script says.
    EveryGoalReached,
    /// Each VM was seen from all sides in each step.
    EverythingSeen,
    /// The reasons are those that the script is known to give.
    ReasonsOfTheScript,
}

/// Something that must not be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Violation {
    /// When it was seen first.
    pub(crate) at: Moment,
    /// The VM that broke it; `None` where the node did.
    pub(crate) vm: Option<VmName>,
    /// What was seen, and what it should have been.
    pub(crate) what: String,
}

// === impl Verdict ===

impl Verdict {
    pub(super) fn of(check: Check) -> Self {
        Self { check, compared: 0, unknown: 0, violations: Vec::new() }
    }

    /// Whether it was seen to hold.
    pub(crate) fn holds(&self) -> bool {
        self.violations.is_empty() && self.compared > self.unknown
    }

    /// How it came out, in a word or two.
    pub(crate) fn word(&self) -> &'static str {
        match (self.violations.is_empty(), self.holds()) {
            (false, _) => "broken",
            (true, true) => "held",
            (true, false) => "not shown",
        }
    }

    /// Counts a comparison; `wrong` says what was found if it came out badly. A violation
    /// that goes on is told once.
    pub(super) fn compare(&mut self, at: Moment, vm: Option<&VmName>, wrong: Option<String>) {
        self.compared += 1;
        let Some(what) = wrong else { return };
        let told = self.violations.iter().any(|seen| seen.vm.as_ref() == vm && seen.what == what);
        if !told {
            self.violations.push(Violation { at, vm: vm.cloned(), what });
        }
    }
}

// === impl Check ===

impl Check {
    /// The law, in a sentence.
    pub(crate) const fn sentence(self) -> &'static str {
        match self {
            Self::PermitBeforeGrowth => "A VM never has more than its permit",
            Self::BooksWithinTheNode => "All VMs together never have more than the node",
            Self::ConsentBeforeShrinkage => "Memory is asked back only as far as the guest agreed",
            Self::NeverBelowUse => "Memory never goes below what is in use inside",
            Self::EveryGoalReached => "Every VM got where it should, in each step",
            Self::EverythingSeen => "Every VM was seen from all sides, in each step",
            Self::ReasonsOfTheScript => "The reasons are those of the script, in their order",
        }
    }

    /// The number of the law in ARCHITECTURE.md; `None` for a check that is not of a law.
    pub(crate) const fn law(self) -> Option<u8> {
        match self {
            Self::PermitBeforeGrowth => Some(1),
            Self::BooksWithinTheNode => Some(2),
            Self::ConsentBeforeShrinkage | Self::NeverBelowUse => Some(3),
            Self::EveryGoalReached => Some(8),
            Self::EverythingSeen | Self::ReasonsOfTheScript => None,
        }
    }

    /// How it is checked.
    pub(crate) const fn how(self) -> &'static str {
        match self {
            Self::PermitBeforeGrowth => {
                "vCPUs online, counted inside the guest, and memory that the hypervisor has or \
                 was asked for, against the permits read before and after"
            }
            Self::BooksWithinTheNode => {
                "the same sizes of all VMs added up, each taken as the smaller of two successive \
                 readings; and the books' own sum"
            }
            Self::ConsentBeforeShrinkage => {
                "each time the hypervisor was asked to take memory, against the amounts that the \
                 informant had agreed to"
            }
            Self::NeverBelowUse => {
                "memory in use, read inside the guest, against what the hypervisor left it; and \
                 the guest kernel's count of processes killed for want of memory"
            }
            Self::EveryGoalReached => "sizes from outside at the end of each step of the script",
            Self::EverythingSeen => "figures of hypervisor, guest and Windlass in each step",
            Self::ReasonsOfTheScript => {
                "the decisions that the host explains, against those of the same script played \
                 without guests, in virtual time"
            }
        }
    }
}
