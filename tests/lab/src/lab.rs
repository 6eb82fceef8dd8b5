//! What a guest needs: QEMU, a kernel, busybox, our programs.
//!
//! [`Lab::find`] looks, and says by which command something missing is to be had;
//! [`Lab::prepared`] runs those commands first. The folder is
//! `${WINDLASS_CACHE:-$HOME/.cache/windlass}`; `WINDLASS_LOAD`, `WINDLASS_INFORMANT` and
//! `WINDLASS_LIMIT` name programs that lie elsewhere.

use crate::image::{self, Parts};
use crate::{Accel, LabError};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const QEMU: &str = "qemu-system-x86_64";
const LOAD: &str = "windlass-lab-load";
const INFORMANT: &str = "windlass-informant";
const LIMIT: &str = "windlass-lab-limit";

/// What every guest of this lab is made of.
#[derive(Clone, Debug)]
pub struct Lab {
    qemu: PathBuf,
    kernel: PathBuf,
    accel: Accel,
    busybox: PathBuf,
    load: PathBuf,
    informant: Option<PathBuf>,
    limit: Option<PathBuf>,
    snapshots: PathBuf,
}

// === impl Lab ===

impl Lab {
    /// Finds what is there, with the informant where `dev/static` puts it.
    ///
    /// # Errors
    /// [`LabError::Missing`], which says how to get it.
    pub fn find() -> Result<Self, LabError> {
        let lab = Self::without_informant()?;
        let informant = built(INFORMANT, "WINDLASS_INFORMANT")?;
        Ok(lab.with_informant(&informant))
    }

    /// Finds what is there, for guests without an informant.
    ///
    /// # Errors
    /// [`LabError::Missing`], which says how to get it.
    pub fn without_informant() -> Result<Self, LabError> {
        let cache = cache()?;
        let qemu = on_path(QEMU).ok_or_else(|| missing(QEMU, "dev/setup"))?;
        let busybox = busybox().ok_or_else(|| missing("a static busybox", "dev/setup"))?;
        let kernel = cache.join("lab/kernel");
        if !kernel.join("vmlinuz").is_file() {
            return Err(missing("the guests' kernel", "dev/kernel"));
        }
        let load = built(LOAD, "WINDLASS_LOAD")?;
        let vmlinuz = kernel.join("vmlinuz");
        let accel = Accel::probe(&cache.join("lab"), &qemu, &vmlinuz, &busybox)?;
        let snapshots = cache.join("lab/snapshots");
        Ok(Self { qemu, kernel, accel, busybox, load, informant: None, limit: None, snapshots })
    }

    /// Has `dev/` fetch and build what is missing or old, then finds it. Blocks for as long
    /// as that takes.
    ///
    /// # Errors
    /// [`LabError::Script`] with the script's last words.
    pub fn prepared() -> Result<Self, LabError> {
        script("setup", &[])?;
        script("static", &[LOAD])?;
        if env::var_os("WINDLASS_INFORMANT").is_none() {
            script("static", &[INFORMANT])?;
        }
        Self::find()
    }

    /// As [`Lab::prepared`], for guests without an informant.
    ///
    /// # Errors
    /// As [`Lab::prepared`].
    pub fn prepared_without_informant() -> Result<Self, LabError> {
        script("setup", &[])?;
        script("static", &[LOAD])?;
        Self::without_informant()
    }

    /// As [`Lab::prepared_without_informant`], with the program that limits a process inside a guest.
    ///
    /// # Errors
    /// As [`Lab::prepared`].
    pub fn prepared_with_limits() -> Result<Self, LabError> {
        let lab = Self::prepared_without_informant()?;
        script("static", &[LIMIT])?;
        Ok(Self { limit: Some(built(LIMIT, "WINDLASS_LIMIT")?), ..lab })
    }

    /// This lab with this informant in its guests.
    #[must_use]
    pub fn with_informant(mut self, informant: &Path) -> Self {
        self.informant = Some(informant.to_owned());
        self
    }

    /// The informant's file, if the lab has one.
    pub fn informant(&self) -> Option<&Path> {
        self.informant.as_deref()
    }

    /// How guests are run.
    pub fn accel(&self) -> Accel {
        self.accel
    }

    pub(crate) fn qemu(&self) -> &Path {
        &self.qemu
    }

    pub(crate) fn vmlinuz(&self) -> PathBuf {
        self.kernel.join("vmlinuz")
    }

    pub(crate) fn snapshots(&self) -> &Path {
        &self.snapshots
    }

    pub(crate) fn image(&self) -> Result<Vec<u8>, LabError> {
        image::build(&Parts {
            kernel: &self.kernel,
            busybox: &self.busybox,
            load: &self.load,
            informant: self.informant.as_deref(),
            limit: self.limit.as_deref(),
        })
    }
}

/// Runs a script of `dev/`; what it says goes to our standard error.
fn script(name: &str, arguments: &[&str]) -> Result<(), LabError> {
    let path = source().join("dev").join(name);
    let failed = |words| LabError::Script { script: format!("dev/{name}"), words };
    let status = Command::new(&path)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .map_err(|error| failed(error.to_string()))?;
    if status.success() { Ok(()) } else { Err(failed(status.to_string())) }
}

/// The project's source: what cargo runs tests of, or where this was built, or else where we are.
fn source() -> PathBuf {
    let run = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let built = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = run.iter().flat_map(|run| run.ancestors()).chain(built.ancestors());
    let top = folders.find(|folder| folder.join("dev/kernel").is_file());
    top.map_or_else(|| PathBuf::from("."), Path::to_owned)
}

fn cache() -> Result<PathBuf, LabError> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("WINDLASS_CACHE")
        .or_else(|| set("HOME").map(|home| home.join(".cache/windlass")))
        .ok_or_else(|| missing("a folder for what is fetched", "set WINDLASS_CACHE or HOME"))
}

/// A static program, where its variable says or where `dev/static` puts it.
fn built(name: &str, variable: &str) -> Result<PathBuf, LabError> {
    if let Some(path) = env::var_os(variable).map(PathBuf::from) {
        return if path.is_file() {
            Ok(path)
        } else {
            Err(missing(&path.display().to_string(), &format!("{variable} names it")))
        };
    }
    let target = format!("{}-unknown-linux-gnu", env::consts::ARCH);
    let path = cache()?.join("static").join(target).join("informant").join(name);
    if path.is_file() { Ok(path) } else { Err(missing(name, &format!("dev/static {name}"))) }
}

fn missing(what: &str, how: &str) -> LabError {
    LabError::Missing { what: what.to_owned(), how: how.to_owned() }
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// A busybox that needs nothing beside it.
fn busybox() -> Option<PathBuf> {
    ["busybox", "busybox-static", "busybox.static"]
        .into_iter()
        .filter_map(on_path)
        .find(|path| fs::read(path).is_ok_and(|content| is_static(&content)))
}

/// Whether an ELF file for this machine asks for no interpreter.
fn is_static(elf: &[u8]) -> bool {
    /// Program headers that name an interpreter.
    const INTERPRETER: u32 = 3;
    let number = |at: usize, length: usize| {
        let bytes = elf.get(at..at.checked_add(length)?)?;
        let value = bytes.iter().rev().fold(0_u64, |sum, &byte| sum << 8 | u64::from(byte));
        usize::try_from(value).ok()
    };
    let headers = || Some((number(32, 8)?, number(54, 2)?, number(56, 2)?));
    let (true, Some((start, size, count))) = (elf.starts_with(b"\x7fELF\x02\x01"), headers())
    else {
        return false;
    };
    (0..count).all(|header| {
        let kind = size.checked_mul(header).and_then(|at| at.checked_add(start));
        let kind = kind.and_then(|at| number(at, 4)).and_then(|kind| u32::try_from(kind).ok());
        kind.is_some_and(|kind| kind != INTERPRETER)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_wants_an_interpreter_is_not_static() {
        assert!(!is_static(b"#!/bin/sh\n"));
        let own = fs::read(env::current_exe().unwrap()).unwrap();
        assert!(!is_static(&own), "tests are linked dynamically");
    }
}
