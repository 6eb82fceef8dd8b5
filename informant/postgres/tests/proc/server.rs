//! A PostgreSQL of its own: a directory, a socket in it, and the stand-ins for Neon's settings.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use windlass_testkit::wait::until;
use windlass_testkit::{Folder, leash};

/// What docs/postgres.md has an administrator do.
const ROLE: &str = "
CREATE ROLE windlass LOGIN;
GRANT ALTER SYSTEM ON PARAMETER neon.file_cache_size_limit TO windlass;
GRANT EXECUTE ON FUNCTION pg_reload_conf() TO windlass;
GRANT pg_monitor TO windlass;
";

/// Killed and removed when dropped.
pub(crate) struct Server {
    folder: Folder,
    programs: PathBuf,
    /// It refuses to run as root.
    user: Option<(u32, u32)>,
    process: Option<Child>,
}

impl Server {
    pub(crate) fn start() -> Self {
        let folder = Folder::create().unwrap();
        let root = rustix::process::getuid().is_root();
        let user = root.then(|| (id("-u"), id("-g")));
        if let Some((uid, gid)) = user {
            chown(folder.path(), Some(uid), Some(gid)).unwrap();
        }
        let mut server = Self { folder, programs: programs(), user, process: None };
        let data = server.data();
        let made = server
            .command("initdb")
            .args(["--no-sync", "--auth=trust", "--username=postgres", "--pgdata"])
            .arg(&data)
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let settings = "neon.file_cache_size_limit = '128MB'\nneon.max_file_cache_size = '64GB'\n\
                        fsync = off\nlisten_addresses = ''\nmax_connections = 20\n";
        let file = data.join("postgresql.conf");
        let text = fs::read_to_string(&file).unwrap() + settings;
        fs::write(&file, text).unwrap();
        server.boot(&[]);
        for statement in ROLE.lines().filter(|line| !line.is_empty()) {
            let done = server.ask(statement);
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        }
        server
    }

    /// Starts it, and waits until it answers. It does not start while a backend of one that was killed still has its memory:
    /// a backend that was being made meanwhile ends by itself, a moment later.
    pub(crate) fn boot(&mut self, more: &[&str]) {
        until("PostgreSQL", || {
            let has_ended = |process: &mut Child| process.try_wait().unwrap().is_some();
            if self.process.as_mut().is_none_or(has_ended) {
                self.process = Some(self.spawn(more));
            }
            self.ask("SELECT 1").status.success()
        });
    }

    fn spawn(&self, more: &[&str]) -> Child {
        let mut command = self.command("postgres");
        command.arg("-D").arg(self.data()).arg("-k").arg(self.folder.path()).args(more);
        command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        leash::spawn(command).unwrap()
    }

    /// Ends it as an administrator does.
    pub(crate) fn stop(&mut self) {
        let data = self.data();
        let ended = self.command("pg_ctl").args(["stop", "-m", "fast", "-D"]).arg(&data).output();
        assert!(ended.unwrap().status.success());
        self.process.take().unwrap().wait().unwrap();
    }

    /// Nobody in it does anything until [`Self::thaw`].
    pub(crate) fn freeze(&self) {
        self.signal_all("STOP");
    }

    pub(crate) fn thaw(&self) {
        self.signal_all("CONT");
    }

    /// All of it ends at once, in the middle of whatever it does.
    pub(crate) fn kill(&mut self) {
        self.signal_all("KILL");
        if let Some(mut process) = self.process.take() {
            process.wait().unwrap();
        }
        let _ = fs::remove_file(self.data().join("postmaster.pid"));
    }

    /// How the program reaches it.
    pub(crate) fn connection(&self) -> String {
        format!("host={} user=windlass dbname=postgres", self.folder.path().display())
    }

    /// The cache's size, as a new connection sees it.
    pub(crate) fn setting(&self) -> String {
        let output = self.ask("SHOW neon.file_cache_size_limit");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// What was set, and the time of the last change.
    pub(crate) fn configuration(&self) -> (String, std::time::SystemTime) {
        let file = self.data().join("postgresql.auto.conf");
        let changed = fs::metadata(&file).unwrap().modified().unwrap();
        (fs::read_to_string(file).unwrap(), changed)
    }

    /// The size in its file, in MiB.
    pub(crate) fn in_file(data: &Path) -> Option<u64> {
        let text = fs::read_to_string(data.join("postgresql.auto.conf")).ok()?;
        let line = text.lines().rfind(|line| line.starts_with("neon.file_cache_size_limit"))?;
        line.split('\'').nth(1)?.strip_suffix("MB")?.parse().ok()
    }

    pub(crate) fn ask(&self, query: &str) -> Output {
        self.command("psql")
            .args(["-X", "-A", "-t", "-U", "postgres", "-d", "postgres", "-c", query, "-h"])
            .arg(self.folder.path())
            .output()
            .unwrap()
    }

    /// The next write of its settings finds the disk full: the new file leads to a device that
    /// is. PostgreSQL removes it afterwards.
    pub(crate) fn fill_disk(&self) {
        std::os::unix::fs::symlink("/dev/full", self.data().join("postgresql.auto.conf.tmp"))
            .unwrap();
    }

    /// Whether its directory can be written to.
    pub(crate) fn writable(&self, writable: bool) {
        let mode = if writable { 0o700 } else { 0o500 };
        fs::set_permissions(self.data(), fs::Permissions::from_mode(mode)).unwrap();
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.at("data")
    }

    fn signal_all(&self, signal: &str) {
        let Some(process) = &self.process else { return };
        // Backends lead groups of their own: they are found by their parent.
        let postmaster = process.id().to_string();
        let list = Command::new("ps").args(["-o", "pid=", "--ppid", &postmaster]).output().unwrap();
        let children = String::from_utf8(list.stdout).unwrap();
        // The parent first, so that it starts none while they are stopped.
        let all = std::iter::once(postmaster.as_str()).chain(children.split_whitespace());
        for pid in all {
            // One that has just ended needs no signal.
            let _ = Command::new("kill").args([&format!("-{signal}"), pid]).output();
        }
    }

    fn command(&self, program: &str) -> Command {
        let mut command = leash::command(self.programs.join(program));
        if let Some((uid, gid)) = self.user {
            command.uid(uid).gid(gid);
        }
        command.current_dir(self.folder.path()).env("LC_ALL", "C").stdin(Stdio::null());
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
        let _ = fs::set_permissions(self.data(), fs::Permissions::from_mode(0o700));
    }
}

/// Where Debian has the newest version's programs.
fn programs() -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").expect("PostgreSQL is installed");
    let mut found: Vec<PathBuf> = versions.map(|entry| entry.unwrap().path().join("bin")).collect();
    found.retain(|folder| folder.join("initdb").is_file());
    found.sort();
    found.pop().expect("PostgreSQL's server is installed")
}

/// Of Debian's user for it.
fn id(which: &str) -> u32 {
    let output = Command::new("id").args([which, "postgres"]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
}
