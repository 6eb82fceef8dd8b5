//! The files of an image, with what Kubernetes mounts, and its program in them.
//!
//! The program is the image's user, and has this folder for all there is: no loader, no library, no `/proc`, and of `/dev` the sources of random
//! numbers, which every runtime puts there, as files. All files are root's but for those of a volume, so that it can write nowhere else. The one
//! capability that it has is the one by which it came there.

use crate::image::{Image, unpack};
use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use windlass_testkit::{Folder, Process};

/// Bytes of random numbers: more than a program reads while a test lasts.
const RANDOM: usize = 64 * 1024;

/// A root.
#[derive(Debug)]
pub struct Root {
    folder: Folder,
    user: (u32, u32),
    program: String,
}

// === impl Root ===

impl Root {
    /// The root of an image.
    pub fn of(image: &Image) -> Self {
        let folder = Folder::create().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        unpack(&image.layer(), folder.path());
        for source in ["dev/random", "dev/urandom"] {
            let mut numbers = vec![0; RANDOM];
            fs::File::open("/dev/urandom").unwrap().read_exact(&mut numbers).unwrap();
            folder.put(source, numbers);
        }
        let user = image.config["config"]["User"].as_str().unwrap().split_once(':').unwrap();
        let program = image.config["config"]["Entrypoint"][0].as_str().unwrap().to_owned();
        Self { folder, user: (user.0.parse().unwrap(), user.1.parse().unwrap()), program }
    }

    /// Mounts a file.
    pub fn mount(&self, path: &str, text: &str) {
        self.folder.put(path, text);
    }

    /// Mounts a volume that the program may write to, and gives where that is outside.
    pub fn volume(&self, path: &str) -> PathBuf {
        let outside = self.folder.at(path);
        fs::create_dir_all(&outside).unwrap();
        chown(&outside, Some(self.user.0), Some(self.user.1)).unwrap();
        outside
    }

    /// Starts the program, and reads both its outputs.
    pub fn start(&self, args: &[&str], env: &[(&str, &str)]) -> Process {
        Process::start("setpriv", |command| {
            self.enter(command);
            command.args(args).envs(env.iter().copied()).stderr(Stdio::piped());
        })
    }

    /// What the program says on its standard output; it is to succeed.
    pub fn run(&self, args: &[&str]) -> String {
        let mut process = self.start(args, &[]);
        let status = process.wait();
        assert!(status.success(), "{status}: {:?}", process.err().to_end());
        process.out().to_end().join("\n")
    }

    /// All files and folders, with what tells whether they were changed.
    pub fn files(&self) -> Vec<(PathBuf, u32, i64)> {
        let mut found = Vec::new();
        let mut folders = vec![self.folder.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                let data = fs::symlink_metadata(&path).unwrap();
                found.push((path.clone(), data.mode(), data.mtime_nsec()));
                if data.is_dir() {
                    folders.push(path);
                }
            }
        }
        found.sort();
        found
    }

    /// Where its files are.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// `setpriv` has the program end with the test, which it can do once the user is another.
    fn enter(&self, command: &mut Command) {
        let (user, group) = self.user;
        let user = format!("--reuid={user} --regid={group} --clear-groups --pdeathsig=KILL");
        command.args(user.split(' '));
        for set in ["inh-caps", "ambient-caps", "bounding-set"] {
            command.arg(format!("--{set}=-all,+sys_chroot"));
        }
        command.args(["--no-new-privs", "chroot"]).arg(self.folder.path()).arg(&self.program);
    }
}

/// Says that this machine cannot show what a test is about, and why, if that is so. `make test` counts these lines.
pub fn is_not_run(test: &str) -> bool {
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    if !is_root {
        eprintln!(
            "\nnot run: {test}: only root may enter another root, and serve names at port 53"
        );
    }
    !is_root
}
