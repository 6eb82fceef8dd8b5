//! The demo: real guests follow their load on this machine, and the laws are checked from
//! outside.
//!
//! `stage` boots guests by the lab and starts the `windlass host` that lies beside this program; `player`
//! plays the [`script`] to them while `sampler` writes a `recording`. When the script is over,
//! `laws` judges the recording, `report` and `picture` draw it. Everything but `stage`,
//! `sampler`, `player` and `screen` is a function of data.

pub(crate) mod laws;
mod picture;
mod player;
mod progress_log;
pub mod reasons;
pub(crate) mod recording;
#[cfg(test)]
pub(crate) mod rehearsal;
mod report;
mod sampler;
mod screen;
pub mod script;
mod stage;
mod step_check;
mod summary;
mod view;
mod waits;

use recording::{Recording, Track};
use script::{SCRIPT, Script};
use stage::{Stage, chain};
use std::fs;
use std::path::{Path, PathBuf};
use windlass_cli::explain::{Explained, page};
use windlass_cli::failure::Failure;
use windlass_cli::{client, out};
use windlass_kit::clock::Clock;
use windlass_kit::tasks::Tasks;
use windlass_lab::Lab;

/// Options of `windlass-demo`.
#[derive(Debug, clap::Parser)]
#[command(name = "windlass-demo", version, about, after_help = HELP)]
pub struct Args {
    /// Where the report is written: one HTML page that needs nothing else.
    #[arg(long, value_name = "FILE", default_value = "report.html")]
    report: PathBuf,
    /// Draw the live view of the whole run as a moving picture, as SVG.
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,
    /// Write the reasons of all decisions, in order.
    #[arg(long, value_name = "FILE")]
    reasons: Option<PathBuf>,
    /// Write everything that was seen, as JSON.
    #[arg(long, value_name = "FILE")]
    recording: Option<PathBuf>,
    /// Play nothing: judge and draw what an earlier run wrote with --recording.
    #[arg(long, value_name = "FILE", conflicts_with = "recording")]
    read: Option<PathBuf>,
    /// Plain lines, also on a terminal.
    #[arg(long)]
    plain: bool,
}

const HELP: &str = "\
Three real guests on a pretend node with room for less than they all want: load rises, there is
contention, one takes memory in a burst, everything falls. Takes about two minutes once QEMU, a
kernel and the programs for the guests are there; they are fetched and built first if they are
not. Exits with 1 if a law was broken, a VM did not get where it should, or what was decided was
not decided for the reasons of the script.

Examples:
  windlass-demo
  windlass-demo --report /tmp/report.html --plain
  windlass-demo --read run.json --picture run.svg";

/// What the demo takes on trust, for a person who reads what it prints.
const TRUST: &str = "\
The demo needs no root, so no cgroup limits the CPU of its guests: it trusts each guest to leave
the vCPUs alone that it has parked (cpu_limit = \"trust\"). A host that may write cgroups enforces it.
";

/// Plays, judges, and reports.
///
/// # Errors
/// A law was broken, a VM did not get where it should, or the demo could not be played.
pub fn run(args: Args) -> Result<(), Failure> {
    if let Some(path) = &args.read {
        return written(&args, &load(path)?);
    }
    out::text("Looking for QEMU, a kernel and the programs for the guests.\n")?;
    let lab = Lab::prepared().map_err(|error| Failure::Failed(chain(&error)))?;
    client::run(async {
        let tasks = Tasks::default();
        windlass_kit::signal::stop_on_signal(&tasks)
            .map_err(|error| Failure::Failed(format!("cannot listen for signals: {error}")))?;
        let stopping = tasks.stopping();
        tokio::select! {
            over = perform(&args, &lab) => over,
            () = stopping.cancelled() => {
                Err(Failure::Failed("stopped; guests and host are gone".to_owned()))
            }
        }
    })
}

async fn perform(args: &Args, lab: &Lab) -> Result<(), Failure> {
    let script = &SCRIPT;
    out::text(&format!("{TRUST}Booting {} guests.\n", script.players.len()))?;
    let mut stage = Stage::set_up(script, lab).await?;
    let clock = Clock::system();
    let shared = sampler::Shared::new(empty(script, clock));
    let looking = sampler::start(&shared, stage.guests(), stage.client(), clock);
    let screen = if args.plain { None } else { screen::Screen::find() };
    let mut player = player::Player {
        script,
        stage: &mut stage,
        shared: &shared,
        clock,
        screen,
        log: progress_log::ProgressLog::default(),
    };
    let played = player.play().await;
    let explained = explained(&stage, &shared, script).await;
    drop(looking);
    let ended = stage.end_host().await;
    let recording = shared.lock().clone();
    let outcome = written(args, &recording);
    let all = played.and(explained).and(ended).and(outcome);
    if all.is_err() {
        let log = args.report.with_extension("host.log");
        if stage.keep_host_log(&log).is_ok() {
            out::text(&format!("The host's log is in {}.\n", log.display()))?;
        }
    }
    all
}

/// Before anything was seen.
fn empty(script: &Script, clock: Clock) -> Recording {
    Recording {
        began: clock.now(),
        room: script.room,
        unit: script.unit,
        vms: script.players.iter().map(Track::of).collect(),
        acts: Vec::new(),
        books: Vec::new(),
        explained: None,
    }
}

/// Asks the host for the decisions of each VM, and keeps the text of `windlass explain` for one.
async fn explained(
    stage: &Stage,
    shared: &sampler::Shared,
    script: &Script,
) -> Result<(), Failure> {
    for player in script.players {
        let path = client::vm_path("/v1/explain", player.name, "")?;
        let explained: Explained = stage.client().get(&path).await?;
        let text = page(&explained);
        let mut recording = shared.lock();
        if player.name == script.explained {
            recording.explained = Some(recording::Explained { vm: explained.vm.clone(), text });
        }
        if let Some(vm) = recording.vms.iter_mut().find(|vm| vm.name == explained.vm) {
            vm.decisions = explained.decisions.into_iter().chain(explained.open).collect();
        }
    }
    Ok(())
}

/// Judges, prints, and writes what was asked for.
fn written(args: &Args, recording: &Recording) -> Result<(), Failure> {
    let verdicts = laws::check_run(recording);
    out::text(&summary::summary(recording, &verdicts))?;
    save(&args.report, &report::render(recording, &verdicts))?;
    out::text(&format!("\nThe report is in {}.\n", args.report.display()))?;
    if let Some(path) = &args.picture {
        save(path, &picture::svg(recording, &SCRIPT))?;
    }
    if let Some(path) = &args.reasons {
        save(path, &reasons::of(recording))?;
    }
    if let Some(path) = &args.recording {
        let text = serde_json::to_string(recording)
            .map_err(|error| Failure::Failed(format!("cannot write the recording: {error}")))?;
        save(path, &text)?;
    }
    match verdicts.iter().filter(|verdict| !verdict.holds()).count() {
        0 => Ok(()),
        failed => Err(Failure::Failed(format!("{failed} of {} checks failed", verdicts.len()))),
    }
}

fn load(path: &Path) -> Result<Recording, Failure> {
    let name = path.display();
    let text = fs::read_to_string(path)
        .map_err(|error| Failure::Missing(format!("cannot read {name}: {error}")))?;
    serde_json::from_str(&text)
        .map_err(|error| Failure::Invalid(format!("{name} is no recording of the demo: {error}")))
}

fn save(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text)
        .map_err(|error| Failure::CannotCreate(format!("cannot write {}: {error}", path.display())))
}
