//! Plays the script: begins loads, waits for what should follow, shows what is seen.

use super::progress_log::ProgressLog;
use super::recording::{Act, End, Recording};
use super::sampler::Shared;
use super::screen::Screen;
use super::script::{Because, Load, Script, Step};
use super::stage::{Stage, chain};
use super::step_check::{had, missing};
use super::view::frame;
use std::time::Duration;
use tokio::time::sleep;
use windlass_cli::failure::Failure;
use windlass_cli::out;
use windlass_kit::clock::Clock;
use windlass_lab::Guest;
use windlass_protocol::{Bytes, Moment, VmName};

/// Between two looks at the recording, and two frames.
const EVERY: Duration = Duration::from_millis(200);

/// Plays a script to the guests of a stage.
pub(crate) struct Player<'a> {
    /// The script.
    pub(crate) script: &'a Script,
    /// The guests, and the host beside them.
    pub(crate) stage: &'a mut Stage,
    /// What the sampler has seen so far.
    pub(crate) shared: &'a Shared,
    /// What time it is.
    pub(crate) clock: Clock,
    /// A terminal, if there is one.
    pub(crate) screen: Option<Screen>,
    /// The plain lines, where there is no terminal.
    pub(crate) log: ProgressLog,
}

// === impl Player ===

impl Player<'_> {
    /// Plays every step; the first that does not come to its end is the last.
    pub(crate) async fn play(&mut self) -> Result<(), Failure> {
        for step in self.script.steps {
            let began = self.clock.now();
            self.shared.lock().acts.push(act(step, began));
            for (vm, load) in step.loads {
                self.begin(vm, *load).await?;
            }
            let reached = self.wait(step, began).await?;
            {
                let mut recording = self.shared.lock();
                let ends = step.ends.iter().map(|end| played(&recording, end)).collect();
                if let Some(act) = recording.acts.last_mut() {
                    (act.reached, act.ends) = (reached, ends);
                }
            }
            self.show()?;
            if reached.is_none() {
                break;
            }
        }
        Ok(())
    }

    async fn begin(&self, vm: &str, load: Load) -> Result<(), Failure> {
        let guest = self.stage.guests().iter().find(|guest| guest.name() == vm);
        let Some(guest) = guest else {
            return Err(Failure::Failed(format!("the script names {vm}, which is no guest")));
        };
        loaded(guest, load)
            .await
            .map_err(|error| Failure::Failed(format!("cannot load {vm}: {}", chain(&error))))
    }

    /// Until nothing was missing for as long as it should be; `None` at the deadline.
    async fn wait(&mut self, step: &Step, began: Moment) -> Result<Option<Moment>, Failure> {
        let mut there: Option<Moment> = None;
        loop {
            sleep(EVERY).await;
            if let Some(fallen) = self.stage.fallen() {
                return Err(Failure::Failed(fallen));
            }
            self.show()?;
            let now = self.clock.now();
            let lacks = missing(&self.shared.lock(), step, began);
            if lacks.is_empty() {
                let since = *there.get_or_insert(now);
                if now.since(since) >= step.steady {
                    return Ok(Some(since));
                }
            } else {
                there = None;
                if now.since(began) >= step.within {
                    let lacks = lacks.join("\n  ");
                    out::text(&format!(
                        "step {} did not end; still missing:\n  {lacks}\n",
                        step.name
                    ))?;
                    return Ok(None);
                }
            }
        }
    }

    fn show(&mut self) -> Result<(), Failure> {
        let now = self.clock.now();
        match &mut self.screen {
            Some(screen) => {
                let steps: Vec<&str> = self.script.steps.iter().map(|step| step.name).collect();
                let frame = frame(&self.shared.lock(), &steps, now);
                screen.draw(&frame).map_err(|error| {
                    Failure::CannotCreate(format!("cannot draw on the terminal: {error}"))
                })
            }
            None => {
                let news = self.log.news(&self.shared.lock(), now);
                news.iter().try_for_each(|line| out::text(&format!("{line}\n")))
            }
        }
    }
}

async fn loaded(guest: &Guest, load: Load) -> Result<(), windlass_lab::LabError> {
    let mib = |bytes: Bytes| u32::try_from(bytes.mib()).unwrap_or(u32::MAX);
    match load {
        Load::Spin(processes) => guest.cpu(u32::try_from(processes).unwrap_or(u32::MAX)).await,
        Load::Take { total, chunk, every } => guest.ramp(mib(total), mib(chunk), every).await,
        Load::Free => guest.memory(0).await,
    }
}

fn act(step: &Step, began: Moment) -> Act {
    Act {
        name: step.name.to_owned(),
        says: step.says.to_owned(),
        began,
        reached: None,
        within: step.within,
        ends: Vec::new(),
    }
}

fn played(recording: &Recording, end: &super::script::End) -> End {
    let vm = VmName::on_host(end.vm);
    End {
        should: end.has,
        wanted: if let Because::Room(wants) = end.because { Some(wants) } else { None },
        had: recording.vm(&vm).and_then(had),
        vm,
    }
}
