//! What was found in a cgroup, kept in a file until it is put back.
//!
//! The file is there before the first write, and is replaced as a whole, so that a crash leaves the old file
//! or the new one. It also has every quota that may stand by Windlass's doing: by these a later start tells
//! its own quota from one that somebody else has set.

use crate::drop_in::DropIn;
use crate::group::Group;
use crate::machine::Machine;
use crate::quota::Quota;
use crate::version::Version;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The longest escaped path in a file's name, in bytes: a name has at most 255.
const LONGEST_NAME: usize = 200;

/// How many quotas of ours are remembered. More than two need several failures in a row.
const MOST_OURS: usize = 8;

/// What a file says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Kept {
    /// The cgroup's path, as the kernel names it.
    pub(crate) group: String,
    pub(crate) version: Version,
    /// Where the cgroup's files are.
    folder: PathBuf,
    pub(crate) unit: Option<String>,
    /// What systemd kept for the unit.
    pub(crate) drop_ins: Vec<DropIn>,
    /// The run of the machine in which this was found; empty if unknown.
    boot: String,
    /// The inode of the cgroup: another one of the same name has another.
    inode: u64,
    /// What somebody else has set.
    pub(crate) found: Quota,
    /// What may stand by our doing, the latest last.
    pub(crate) ours: Vec<Quota>,
}

/// How a file fits to a cgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    /// It was found in this very cgroup.
    Same,
    /// The cgroup was removed and made again.
    MadeAgain,
    /// The machine has restarted since: nothing of it is left.
    Bygone,
}

// === impl Kept ===

impl Kept {
    /// What stands in a cgroup before anything is set.
    pub(crate) fn new(group: &Group, found: Quota) -> io::Result<Self> {
        let unit = group.unit().map(str::to_owned);
        let root = &group.machine.root;
        let drop_ins = unit.as_ref().map(|unit| DropIn::all_of(root, unit)).transpose()?;
        Ok(Self {
            group: group.path().to_owned(),
            version: group.version(),
            folder: group.folder.clone(),
            unit,
            drop_ins: drop_ins.unwrap_or_default(),
            boot: group.machine.boot(),
            inode: inode(group)?,
            found,
            ours: Vec::new(),
        })
    }

    /// Reads a file; `None`: there is none.
    pub(crate) fn read(path: &Path) -> io::Result<Option<Self>> {
        let text = match fs::read(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            text => text?,
        };
        let read: Result<Self, _> = serde_json::from_slice(&text);
        let read = read.ok().filter(|kept| kept.is_possible());
        let damaged = || format!("{} is damaged; it says what a CPU quota was", path.display());
        read.map(Some).ok_or_else(|| io::Error::new(ErrorKind::InvalidData, damaged()))
    }

    /// Replaces the file, and makes its folder, which only its owner can read.
    pub(crate) fn write(&self, path: &Path) -> io::Result<()> {
        let folder = path.parent().unwrap_or(Path::new("."));
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let beside = path.with_extension("new");
        let mut file = File::create(&beside)?;
        file.write_all(serde_json::to_string(self)?.as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, path)?;
        File::open(folder)?.sync_all()
    }

    /// How what was read fits to what a cgroup is now.
    pub(crate) fn fit(&self, now: &Self) -> Fit {
        if self.boot != now.boot {
            Fit::Bygone
        } else if self.inode != now.inode || self.version != now.version {
            Fit::MadeAgain
        } else {
            Fit::Same
        }
    }

    /// Whether this very cgroup is still there.
    ///
    /// # Errors
    /// The file system's, but that it is gone.
    pub(crate) fn is_there(&self, group: &Group) -> io::Result<bool> {
        match inode(group) {
            Ok(inode) => Ok(inode == self.inode),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Adds a quota that is about to be set.
    pub(crate) fn add(&mut self, quota: Quota) {
        self.ours.retain(|known| *known != quota);
        self.ours.push(quota);
        let excess = self.ours.len().saturating_sub(MOST_OURS);
        self.ours.drain(..excess);
    }

    /// The kernel has no period of zero.
    fn is_possible(&self) -> bool {
        self.ours.iter().chain([&self.found]).all(|quota| quota.period > 0)
    }
}

/// The file of a cgroup. The name is its path with `-` for `/`, as systemd escapes paths; of a long one
/// the start and a hash.
pub(crate) fn file(folder: &Path, group: &str) -> PathBuf {
    let mut name = String::new();
    for byte in group.trim_matches('/').bytes() {
        match byte {
            b'/' => name.push('-'),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b':' => name.push(char::from(byte)),
            _ => name.push_str(&format!("\\x{byte:02x}")),
        }
    }
    if name.len() > LONGEST_NAME {
        // All of it is ASCII. Two with one hash are told apart by what the file says.
        name.truncate(LONGEST_NAME - 17);
        name.push_str(&format!("-{:016x}", hash(group)));
    }
    folder.join(format!("{name}.json"))
}

/// Removes what is kept of cgroups that are gone, and says how many files these were. A unit's is kept until
/// the machine restarts: its quota may come back with a unit of the same name.
///
/// # Errors
/// The folder or a file cannot be read or removed. A folder that is absent has no files.
pub fn forget_gone(machine: &Machine, folder: &Path) -> io::Result<usize> {
    let boot = machine.boot();
    let mut forgotten = 0;
    for (path, kept) in all(folder)? {
        let gone = kept.unit.is_none() && !kept.folder.exists();
        if gone || kept.boot != boot {
            fs::remove_file(&path)?;
            forgotten += 1;
        }
    }
    Ok(forgotten)
}

/// What was found in the cgroups in which a quota of ours may stand, by their paths.
///
/// # Errors
/// The folder or a file cannot be read. A folder that is absent has no files.
pub fn found(machine: &Machine, folder: &Path) -> io::Result<BTreeMap<String, Quota>> {
    let boot = machine.boot();
    let kept = all(folder)?.into_iter().map(|(_, kept)| kept);
    Ok(kept.filter(|kept| kept.boot == boot).map(|kept| (kept.group, kept.found)).collect())
}

/// All files of a folder, which need not be there.
fn all(folder: &Path) -> io::Result<Vec<(PathBuf, Kept)>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut all = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|kind| kind == "json")
            && let Some(kept) = Kept::read(&path)?
        {
            all.push((path, kept));
        }
    }
    Ok(all)
}

fn inode(group: &Group) -> io::Result<u64> {
    Ok(fs::metadata(&group.folder)?.ino())
}

/// FNV-1a: the same in every release.
fn hash(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cgroup_has_a_file_of_its_own() {
        let name = |group: &str| {
            let path = file(Path::new("/limits"), group);
            path.file_name().and_then(|name| name.to_str()).unwrap().to_owned()
        };
        assert_eq!(
            name("/machine.slice/machine-qemu\\x2d1.scope/libvirt"),
            "machine\\x2eslice-machine\\x2dqemu\\x5cx2d1\\x2escope-libvirt.json"
        );
        assert_eq!(name("/a/b"), "a-b.json");
        assert_ne!(name("/a/b"), name("/a-b"));
        let long = |last: &str| name(&format!("/{}{last}", "a.".repeat(300)));
        assert_ne!(long("b"), long("c"));
        assert_eq!((long("b"), long("b").len()), (long("b"), LONGEST_NAME + 5));
        // By which a file is found again after an upgrade.
        assert_eq!(hash("a"), 0xaf63_dc4c_8601_ec8c);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named() {
        let folder = windlass_testkit::Folder::create().unwrap();
        for text in ["", "{}", "{\"group\":1}", "\u{0}"] {
            let path = folder.put("x.json", text);
            let error = Kept::read(&path).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidData, "{text}");
            assert!(error.to_string().contains("x.json is damaged"), "{error}");
        }
        assert_eq!(Kept::read(&folder.at("y.json")).unwrap(), None);
    }
}
