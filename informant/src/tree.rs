//! Where the kernel's files are: the machine's own, or a directory that looks like it.
//!
//! Reads are bounded: a file that is larger than expected is an error, never memory.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

/// No file that is read whole is larger than this.
const LIMIT: u64 = 16 * 1024;

/// A root directory.
#[derive(Clone, Debug)]
pub struct Tree {
    root: PathBuf,
    own: bool,
}

impl Tree {
    /// The machine's own, or `root` in its place.
    pub fn new(root: Option<&Path>) -> Self {
        Self { root: root.unwrap_or(Path::new("/")).to_owned(), own: root.is_none() }
    }

    /// Whether it is the machine's own, which sends notices.
    pub fn is_the_machine(&self) -> bool {
        self.own
    }

    /// The file of this name, as `proc/meminfo`.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// A small file, whole.
    ///
    /// # Errors
    /// It cannot be read, is larger than 16 KiB, or is not text.
    pub fn read(&self, name: &str) -> io::Result<String> {
        let mut text = String::with_capacity(2048);
        File::open(self.path(name))?.take(LIMIT + 1).read_to_string(&mut text)?;
        if text.len() as u64 > LIMIT {
            return Err(io::Error::other("larger than 16 KiB"));
        }
        Ok(text)
    }

    /// A file that may be large, to be read line by line.
    pub fn open(&self, name: &str) -> io::Result<BufReader<File>> {
        Ok(BufReader::with_capacity(4096, File::open(self.path(name))?))
    }

    /// The names in a directory that are `prefix` and a number; at most 65,536 of them.
    pub fn numbered(&self, directory: &str, prefix: &str) -> io::Result<Vec<u32>> {
        let entries = fs::read_dir(self.path(directory))?.take(65_536).filter_map(Result::ok);
        let number = |name: &str| name.strip_prefix(prefix)?.parse().ok();
        Ok(entries.filter_map(|entry| number(entry.file_name().to_str()?)).collect())
    }

    /// Writes to a file of the kernel, which must exist, in one go.
    pub fn write(&self, name: &str, text: &str) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).truncate(true).open(self.path(name))?;
        file.write_all(text.as_bytes())
    }

    /// Replaces a file of our own, or leaves it as it was.
    pub fn replace(&self, name: &str, text: &str) -> io::Result<()> {
        let path = self.path(name);
        let new = path.with_extension("new");
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&new, text)?;
        fs::rename(&new, &path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_whole_or_not_at_all() {
        let root = windlass_testkit::Folder::create().unwrap();
        let tree = Tree::new(Some(root.path()));
        for (length, read) in [(0, true), (16_383, true), (16_384, true), (16_385, false)] {
            let text = "x".repeat(length);
            tree.replace("proc/file", &text).unwrap();
            assert_eq!(tree.read("proc/file").ok(), read.then_some(text), "{length}");
        }
        assert!(tree.write("proc/other", "").is_err(), "the kernel's files are there or not");
    }

    #[test]
    fn only_the_machine_s_own_sends_notices() {
        assert!(Tree::new(None).is_the_machine());
        assert!(!Tree::new(Some(Path::new("/"))).is_the_machine());
    }
}
