//! What can be asked of the benchmark.

use anyhow::{Context, Result, bail, ensure};

pub(crate) const HELP: &str = "\
windlass-bench: how fast and how small Windlass is, with real guests

usage: windlass-bench [--rounds N]

  --rounds N   how many bursts each way (default 20)

Runs the windlass that lies beside it, or that WINDLASS_BIN names.
";

/// Checked arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arguments {
    /// How many bursts each way.
    pub(crate) rounds: usize,
    /// Only say what can be asked.
    pub(crate) help: bool,
}

// === impl Arguments ===

impl Arguments {
    pub(crate) fn parse(words: impl IntoIterator<Item = String>) -> Result<Self> {
        let mut parsed = Self { rounds: 20, help: false };
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--rounds" => {
                    let rounds = words.next().context("--rounds needs a number")?;
                    parsed.rounds = rounds.parse().with_context(|| format!("--rounds {rounds}"))?;
                }
                "--help" | "-h" => parsed.help = true,
                _ => bail!("unknown argument {word:?}\n{HELP}"),
            }
        }
        ensure!(parsed.rounds > 0, "--rounds 0: there would be nothing to print");
        Ok(parsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twenty_rounds_unless_told_otherwise() {
        assert_eq!(parse(&[]).unwrap(), Arguments { rounds: 20, help: false });
        assert_eq!(parse(&["--rounds", "3"]).unwrap().rounds, 3);
        assert!(parse(&["-h"]).unwrap().help);
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        for (words, complaint) in [
            (&["--rounds"][..], "needs a number"),
            (&["--rounds", "many"], "--rounds many"),
            (&["--rounds", "0"], "nothing to print"),
            (&["--fast"], "\"--fast\""),
        ] {
            let error = parse(words).unwrap_err().to_string();
            assert!(error.contains(complaint), "{error}");
        }
    }

    fn parse(words: &[&str]) -> Result<Arguments> {
        Arguments::parse(words.iter().map(|&word| word.to_owned()))
    }
}
