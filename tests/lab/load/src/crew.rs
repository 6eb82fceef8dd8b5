//! The processes that the load program keeps: workers, the holder of memory, the informant.

use crate::lie;
use crate::request::{Informant, Ramp};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Where the image has the programs.
const BUSYBOX: &str = "/bin/busybox";
const LOAD: &str = "/bin/windlass-lab-load";
const INFORMANT: &str = "/bin/windlass-informant";

/// How long the informant may take to end when it is asked to.
const STOP_LIMIT: Duration = Duration::from_secs(30);

/// It is asked again after this long: a signal that comes while a program is about to install
/// its handler for it can be lost, and in an emulated guest that moment is long.
const ASK_EVERY: Duration = Duration::from_secs(1);

/// SIGKILL, as it stands in an exit status.
const KILLED: i32 = 9;

/// The processes, and what became of the ones that are gone.
#[derive(Default)]
pub(crate) struct Crew {
    /// Whether the informant is still to be started.
    asleep: bool,
    /// The versions that the informant is limited to.
    versions: Option<String>,
    workers: Vec<Child>,
    holder: Option<Holder>,
    informant: Option<Child>,
    holders_killed: u64,
    informants_ended: u64,
}

struct Holder {
    child: Child,
    input: ChildStdin,
    held: Arc<AtomicU64>,
    target: u32,
}

/// What the crew is doing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Doing {
    /// Processes that compute.
    pub(crate) workers: usize,
    /// Bytes held.
    pub(crate) held: u64,
    /// Bytes to be held in the end.
    pub(crate) wanted: u64,
    /// How many holders were killed by somebody else, that is by the kernel.
    pub(crate) holders_killed: u64,
    /// The informant's process.
    pub(crate) informant: Option<u32>,
    /// How often the informant ended without having been asked to.
    pub(crate) informants_ended: u64,
}

// === impl Crew ===

impl Crew {
    /// A crew that starts the informant when it awakes.
    pub(crate) fn with_informant(versions: Option<&str>) -> Self {
        Self { asleep: true, versions: versions.map(str::to_owned), ..Self::default() }
    }

    /// Starts the informant, the first time.
    pub(crate) fn awake(&mut self) {
        if std::mem::take(&mut self.asleep)
            && let Err(error) = self.informant(&Informant::Start(Vec::new()))
        {
            eprintln!("windlass-lab-load: informant: {error}");
        }
    }

    /// Has this many processes compute.
    pub(crate) fn work(&mut self, workers: u32) -> io::Result<()> {
        let workers = usize::try_from(workers).map_err(io::Error::other)?;
        while self.workers.len() > workers {
            if let Some(mut worker) = self.workers.pop() {
                worker.kill()?;
                worker.wait()?;
            }
        }
        while self.workers.len() < workers {
            self.workers.push(command(LOAD).arg("spin").spawn()?);
        }
        Ok(())
    }

    /// Has memory held. A holder that has nothing left to hold is ended.
    pub(crate) fn hold(&mut self, ramp: Ramp) -> io::Result<()> {
        self.look();
        if ramp.target == 0 {
            if let Some(mut holder) = self.holder.take() {
                holder.child.kill()?;
                holder.child.wait()?;
            }
            return Ok(());
        }
        let mut holder = match self.holder.take() {
            Some(holder) => holder,
            None => Holder::start()?,
        };
        holder.target = ramp.target;
        let told = writeln!(holder.input, "{ramp}");
        self.holder = Some(holder);
        told
    }

    /// Starts or ends the informant.
    pub(crate) fn informant(&mut self, what: &Informant) -> io::Result<()> {
        self.look();
        match what {
            Informant::Start(_) if self.informant.is_some() => {
                Err(io::Error::other("the informant runs already"))
            }
            Informant::Start(arguments) => {
                let limit = self.versions.iter().flat_map(|range| ["--versions", range]);
                self.informant = Some(command(INFORMANT).args(limit).args(arguments).spawn()?);
                Ok(())
            }
            Informant::Lie => {
                lie::prepare()?;
                let root = ["--root", lie::ROOT].map(str::to_owned);
                self.informant(&Informant::Start(root.into()))
            }
            Informant::Stop => {
                let Some(mut child) = self.informant.take() else { return Ok(()) };
                let ended = end(&mut child);
                if ended.is_err() {
                    self.informant = Some(child);
                }
                ended
            }
            Informant::Kill => {
                let Some(mut child) = self.informant.take() else { return Ok(()) };
                child.kill()?;
                child.wait().map(|_| ())
            }
            Informant::Halt => self.signal_informant("-STOP"),
            Informant::Continue => self.signal_informant("-CONT"),
            Informant::Limit(range) => {
                self.versions = Some(range.clone());
                if self.informant.is_none() {
                    self.awake();
                    return Ok(());
                }
                self.informant(&Informant::Stop)?;
                self.informant(&Informant::Start(Vec::new()))
            }
        }
    }

    /// Sends the informant a signal, as `kill` names it.
    fn signal_informant(&self, signal: &str) -> io::Result<()> {
        let running = || io::Error::other("no informant runs");
        let child = self.informant.as_ref().ok_or_else(running)?;
        let status =
            Command::new(BUSYBOX).args(["kill", signal, &child.id().to_string()]).status()?;
        if status.success() {
            Ok(())
        } else {
            Err(io::Error::other(format!("kill {signal}: {status}")))
        }
    }

    /// What the crew is doing.
    pub(crate) fn doing(&mut self) -> Doing {
        self.look();
        let holder = self.holder.as_ref();
        Doing {
            workers: self.workers.len(),
            held: holder.map_or(0, |holder| holder.held.load(Ordering::Relaxed)),
            wanted: holder.map_or(0, |holder| u64::from(holder.target) << 20),
            holders_killed: self.holders_killed,
            informant: self.informant.as_ref().map(Child::id),
            informants_ended: self.informants_ended,
        }
    }

    /// Takes note of processes that ended by themselves.
    fn look(&mut self) {
        self.workers.retain_mut(|worker| matches!(worker.try_wait(), Ok(None)));
        if let Some(holder) = &mut self.holder
            && let Ok(Some(status)) = holder.child.try_wait()
        {
            self.holders_killed += u64::from(status.signal() == Some(KILLED));
            self.holder = None;
        }
        if let Some(child) = &mut self.informant
            && let Ok(Some(_)) = child.try_wait()
        {
            self.informants_ended += 1;
            self.informant = None;
        }
    }
}

// === impl Holder ===

impl Holder {
    fn start() -> io::Result<Self> {
        let mut child =
            command(LOAD).arg("hold").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("the holder has no pipes"));
        };
        let held = Arc::new(AtomicU64::new(0));
        let told = Arc::clone(&held);
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if let Ok(bytes) = line.parse() {
                    told.store(bytes, Ordering::Relaxed);
                }
            }
        });
        Ok(Self { child, input, held, target: 0 })
    }
}

fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null());
    command
}

/// Asks a program to end, and waits until it has.
fn end(child: &mut Child) -> io::Result<()> {
    let start = Instant::now();
    let mut asked = 0;
    while child.try_wait()?.is_none() {
        if start.elapsed() > STOP_LIMIT {
            return Err(io::Error::other("the informant does not end"));
        }
        if start.elapsed() >= ASK_EVERY * asked {
            Command::new(BUSYBOX).args(["kill", &child.id().to_string()]).status()?;
            asked += 1;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
