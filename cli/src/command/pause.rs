//! `windlass pause` and `resume`, `freeze` and `thaw`: one VM or all of a host keep their size.

use crate::api::Pause;
use crate::client::vm_path;
use crate::command::completions::of_vms;
use crate::failure::Failure;
use crate::options::HostOptions;
use jiff::{SignedDuration, Timestamp};

#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("end").required(true)), after_help = "\
A paused VM keeps the size that it has. Its load is read and shown; no goal is computed, and no
decision recorded, until the pause ends. It counts in the books with what it has. The pause
survives a restart of the host.

Examples:
  windlass pause db1 --for 2h
  windlass pause db1 --for 1h30m
  windlass pause db1 --until 2026-12-24T18:00:00Z
  windlass pause db1 --until 2026-12-24T18:00:00+01:00")]
pub(crate) struct PauseArgs {
    /// Which VM.
    #[arg(add = of_vms())]
    vm: String,
    /// Until this moment (RFC 3339, with an offset).
    #[arg(long, value_name = "TIME", group = "end", value_parser = moment)]
    until: Option<Timestamp>,
    /// For this long: `90s`, `15m`, `2h`, `1h30m`.
    #[arg(long = "for", value_name = "SPAN", group = "end", value_parser = span)]
    span: Option<SignedDuration>,
    #[command(flatten)]
    host: HostOptions,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  windlass resume db1")]
pub(crate) struct ResumeArgs {
    /// Which VM.
    #[arg(add = of_vms())]
    vm: String,
    #[command(flatten)]
    host: HostOptions,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
A frozen host changes no size: nothing grows, nothing shrinks. Load is read and shown; no goal is
computed, and no decision recorded, until `windlass thaw`. It stays frozen over a restart.

Examples:
  windlass freeze
  windlass thaw
  windlass top --output json | jq .frozen")]
pub(crate) struct FreezeArgs {
    #[command(flatten)]
    host: HostOptions,
}

pub(crate) fn pause(args: &PauseArgs) -> Result<(), Failure> {
    let now = Timestamp::now();
    let end = match (args.until, args.span) {
        (Some(until), _) => Ok(until),
        (None, Some(span)) => now.checked_add(span),
        (None, None) => return Err(Failure::Usage("say --until or --for".to_owned())),
    }
    .map_err(|_| Failure::Usage("--for is too long: write at most 365 days, as 48h".to_owned()))?;
    if end <= now {
        return Err(Failure::Usage(format!("--until {end} is not in the future; it is {now:.0}")));
    }
    let path = vm_path("/v1/vm", &args.vm, "/pause")?;
    args.host.order(&path, &Pause { until: end.to_string() })
}

pub(crate) fn resume(args: &ResumeArgs) -> Result<(), Failure> {
    args.host.order(&vm_path("/v1/vm", &args.vm, "/resume")?, &())
}

pub(crate) fn freeze(args: &FreezeArgs) -> Result<(), Failure> {
    args.host.order("/v1/freeze", &())
}

pub(crate) fn thaw(args: &FreezeArgs) -> Result<(), Failure> {
    args.host.order("/v1/thaw", &())
}

fn moment(text: &str) -> Result<Timestamp, &'static str> {
    text.parse().map_err(|_| "write date, time and offset, as 2026-12-24T18:00:00Z")
}

fn span(text: &str) -> Result<SignedDuration, String> {
    let digits = !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    if digits {
        return Err(format!("has no unit: write {text}s, {text}m or {text}h"));
    }
    let span: SignedDuration =
        text.parse().map_err(|_| "write hours, minutes or seconds, as 2h, 15m, 1h30m or 90s")?;
    if span.is_positive() { Ok(span) } else { Err("must be longer than nothing".to_owned()) }
}
