//! Processes that do not outlive the one that started them.
//!
//! The kernel sends a child its parent-death signal when the *thread* that forked it ends, so
//! all children are forked by one thread that never does. `setpriv` (util-linux) sets the
//! signal and becomes the program, under the same process id.

use std::ffi::OsStr;
use std::io;
use std::process::{Child, Command};
use std::sync::{Mutex, OnceLock, PoisonError, mpsc};

type Job = (Command, mpsc::Sender<io::Result<Child>>);

static FORKER: OnceLock<Mutex<mpsc::Sender<Job>>> = OnceLock::new();

/// A command for `program` that dies with this process; to be started by [`spawn`].
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    command
}

/// Starts a command made by [`command`].
///
/// # Errors
/// Whatever [`Command::spawn`] says.
pub fn spawn(command: Command) -> io::Result<Child> {
    let gone = || io::Error::other("the thread that starts processes is gone");
    let forker = FORKER.get_or_init(|| {
        let (send, jobs) = mpsc::channel::<Job>();
        std::thread::spawn(move || {
            for (mut command, reply) in jobs {
                // Nobody waits for the reply only if the caller is gone.
                let _unheard = reply.send(command.spawn());
            }
        });
        Mutex::new(send)
    });
    let (reply, child) = mpsc::channel();
    let forker = forker.lock().unwrap_or_else(PoisonError::into_inner);
    forker.send((command, reply)).map_err(|_| gone())?;
    child.recv().map_err(|_| gone())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::process::Stdio;

    #[test]
    fn a_child_survives_the_thread_that_asked_for_it() {
        let mut child = std::thread::spawn(|| {
            let mut cat = command("cat");
            cat.stdin(Stdio::piped()).stdout(Stdio::piped());
            spawn(cat).unwrap()
        })
        .join()
        .unwrap();
        drop(child.stdin.take());
        let mut text = String::new();
        child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        assert!(child.wait().unwrap().success(), "cat was killed");
    }
}
