//! What the load program is asked for: one line, at most [`LIMIT`] bytes.
//!
//! | line | effect |
//! |---|---|
//! | `cpu N` | N processes that do nothing but compute |
//! | `memory MIB` | this much memory held, every page written |
//! | `memory MIB step MIB every MS` | the same, approached in steps |
//! | `figures` | what the guest sees, as one line of JSON |
//! | `informant start [ARGUMENT…]`, `stop`, `kill` | the informant's process |
//! | `informant halt`, `continue` | the informant does not run for a while (SIGSTOP, SIGCONT) |
//! | `informant versions RANGE` | the informant is limited to these, now and whenever it is started |
//! | `informant lie` | an informant is started that sees no load and one vCPU in use, whatever is, and can change none |
//! | `warnings` | what the kernel has logged as a warning or worse, as a list of strings |
//! | `limit MILLI-CPU SECONDS` | a busy loop is limited to this for so long, as the driver limits a VM; what it used, as JSON |
//! | `online` | every vCPU that is plugged and offline is brought online |
//! | `movable on` | added memory comes online by itself, and movable |
//! | `reboot` | restarts the guest in a moment |
//!
//! The answer is one line: `ok`, `ok JSON`, or `error WHY`.

/// Longest line that is read.
pub(crate) const LIMIT: u64 = 512;

/// Most workers that can be asked for.
const MOST_WORKERS: u32 = 64;

/// Most memory that can be asked for, in MiB.
const MOST_MEMORY: u32 = 1 << 16;

/// The most CPU that can be asked for, in thousandths.
const MOST_MILLI: u32 = 64_000;

/// The longest time that can be asked for.
const MOST_SECONDS: u32 = 30;

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    Cpu(u32),
    Memory(Ramp),
    Figures,
    Informant(Informant),
    Warnings,
    Limit { milli: u32, seconds: u32 },
    Online,
    Movable,
    Reboot,
}

/// How much memory to hold, and how fast to get there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ramp {
    /// What to hold in the end, in MiB.
    pub(crate) target: u32,
    /// How much of it at a time, in MiB.
    pub(crate) step: u32,
    /// How long to wait after each step, in milliseconds.
    pub(crate) every: u32,
}

/// What to do with the informant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Informant {
    Start(Vec<String>),
    /// SIGTERM, and waited for.
    Stop,
    /// SIGKILL.
    Kill,
    /// SIGSTOP.
    Halt,
    /// SIGCONT.
    Continue,
    /// Start, with a false `/sys`.
    Lie,
    /// The versions that it may speak from here on.
    Limit(String),
}

// === impl Request ===

impl Request {
    /// Reads a line.
    pub(crate) fn parse(line: &str) -> Result<Self, String> {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match words.as_slice() {
            ["cpu", workers] => number(workers, MOST_WORKERS).map(Self::Cpu),
            ["memory", rest @ ..] => Ramp::parse(rest).map(Self::Memory),
            ["figures"] => Ok(Self::Figures),
            ["informant", "start", arguments @ ..] => Ok(Self::Informant(Informant::Start(
                arguments.iter().map(|&argument| argument.to_owned()).collect(),
            ))),
            ["informant", "versions", range] => {
                Ok(Self::Informant(Informant::Limit((*range).to_owned())))
            }
            ["informant", "stop"] => Ok(Self::Informant(Informant::Stop)),
            ["informant", "kill"] => Ok(Self::Informant(Informant::Kill)),
            ["informant", "halt"] => Ok(Self::Informant(Informant::Halt)),
            ["informant", "continue"] => Ok(Self::Informant(Informant::Continue)),
            ["informant", "lie"] => Ok(Self::Informant(Informant::Lie)),
            ["limit", milli, seconds] => Ok(Self::Limit {
                milli: number(milli, MOST_MILLI)?,
                seconds: number(seconds, MOST_SECONDS)?,
            }),
            ["warnings"] => Ok(Self::Warnings),
            ["online"] => Ok(Self::Online),
            ["movable", "on"] => Ok(Self::Movable),
            ["reboot"] => Ok(Self::Reboot),
            _ => Err(format!("unknown request {line:?}")),
        }
    }
}

// === impl Ramp ===

impl Ramp {
    /// Reads what stands behind `memory`, on the socket and in the holder's own input.
    pub(crate) fn parse(words: &[&str]) -> Result<Self, String> {
        match words {
            [target] => {
                let target = number(target, MOST_MEMORY)?;
                Ok(Self { target, step: target.max(1), every: 0 })
            }
            [target, "step", step, "every", every] => {
                let ramp = Self {
                    target: number(target, MOST_MEMORY)?,
                    step: number(step, MOST_MEMORY)?,
                    every: number(every, 60_000)?,
                };
                if ramp.step == 0 { Err("step must be above 0".to_owned()) } else { Ok(ramp) }
            }
            _ => Err("expected: memory MIB [step MIB every MS]".to_owned()),
        }
    }
}

impl std::fmt::Display for Ramp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} step {} every {}", self.target, self.step, self.every)
    }
}

fn number(word: &str, most: u32) -> Result<u32, String> {
    match word.parse() {
        Ok(number) if number <= most => Ok(number),
        _ => Err(format!("{word:?} is not a number from 0 to {most}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_request_of_the_table_is_understood() {
        assert_eq!(Request::parse("cpu 3"), Ok(Request::Cpu(3)));
        assert_eq!(
            Request::parse("memory 64"),
            Ok(Request::Memory(Ramp { target: 64, step: 64, every: 0 }))
        );
        assert_eq!(
            Request::parse("memory 256 step 16 every 250"),
            Ok(Request::Memory(Ramp { target: 256, step: 16, every: 250 }))
        );
        assert_eq!(Request::parse("figures"), Ok(Request::Figures));
        assert_eq!(
            Request::parse("informant start --root /x"),
            Ok(Request::Informant(Informant::Start(vec!["--root".to_owned(), "/x".to_owned()])))
        );
        assert_eq!(
            Request::parse("informant versions v1.1"),
            Ok(Request::Informant(Informant::Limit("v1.1".to_owned())))
        );
        assert_eq!(Request::parse("informant stop"), Ok(Request::Informant(Informant::Stop)));
        assert_eq!(Request::parse("informant kill"), Ok(Request::Informant(Informant::Kill)));
        assert_eq!(Request::parse("informant halt"), Ok(Request::Informant(Informant::Halt)));
        let go_on = Request::Informant(Informant::Continue);
        assert_eq!(Request::parse("informant continue"), Ok(go_on));
        assert_eq!(Request::parse("informant lie"), Ok(Request::Informant(Informant::Lie)));
        let limit = Request::Limit { milli: 250, seconds: 10 };
        assert_eq!(Request::parse("limit 250 10"), Ok(limit));
        assert_eq!(Request::parse("warnings"), Ok(Request::Warnings));
        assert_eq!(Request::parse("online"), Ok(Request::Online));
        assert_eq!(Request::parse("movable on"), Ok(Request::Movable));
        assert_eq!(Request::parse("reboot"), Ok(Request::Reboot));
    }

    #[test]
    fn what_is_out_of_range_or_unknown_is_refused() {
        for line in ["", "cpu", "cpu -1", "cpu 65", "cpu 1 2", "memory 65537", "movable off"] {
            assert!(Request::parse(line).is_err(), "{line:?} was taken");
        }
        for line in ["memory 1 step 0 every 1", "memory 1 step 1", "memory x", "reboot now"] {
            assert!(Request::parse(line).is_err(), "{line:?} was taken");
        }
    }

    #[test]
    fn a_ramp_reads_what_it_writes() {
        let ramp = Ramp { target: 9, step: 2, every: 7 };
        let text = ramp.to_string();
        let words: Vec<&str> = text.split(' ').collect();
        assert_eq!(Ramp::parse(&words), Ok(ramp));
    }
}
