//! Which accelerator works here: tried, not guessed from the existence of a device file.

use crate::{LabError, image, leash};
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// The word that a probed guest says.
const WORD: &str = "LAB-SPEAKS";

/// How long the probed guest may take: hardware virtualisation needs less than two seconds.
const LIMIT: Duration = Duration::from_secs(10);

/// How QEMU runs a guest's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accel {
    /// In hardware.
    Kvm,
    /// By translation.
    Tcg,
}

// === impl Accel ===

impl Accel {
    /// As QEMU spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Kvm => "kvm",
            Self::Tcg => "tcg",
        }
    }

    /// What `WINDLASS_ACCEL` says; else what an earlier probe found since the machine
    /// started, kept in `folder`; else what a guest that is booted now shows.
    pub(crate) fn probe(
        folder: &Path,
        qemu: &Path,
        kernel: &Path,
        busybox: &Path,
    ) -> Result<Self, LabError> {
        if let Some(said) = std::env::var_os("WINDLASS_ACCEL") {
            return Self::named(&said).ok_or_else(|| LabError::Missing {
                what: format!("accelerator {said:?}"),
                how: "WINDLASS_ACCEL is kvm or tcg".to_owned(),
            });
        }
        if fs::File::options().read(true).write(true).open("/dev/kvm").is_err() {
            return Ok(Self::Tcg);
        }
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let memory = folder.join(format!("accel-{}", boot.trim()));
        if let Some(known) = fs::read_to_string(&memory).ok().and_then(|s| Self::named(s.as_ref()))
        {
            return Ok(known);
        }
        let found = if speaks(folder, qemu, kernel, busybox)? { Self::Kvm } else { Self::Tcg };
        fs::write(&memory, found.as_str())
            .map_err(|source| LabError::File { path: memory, source })?;
        Ok(found)
    }

    fn named(name: &OsStr) -> Option<Self> {
        [Self::Kvm, Self::Tcg].into_iter().find(|accel| name == accel.as_str())
    }
}

/// Whether a guest under KVM says its word in time.
fn speaks(folder: &Path, qemu: &Path, kernel: &Path, busybox: &Path) -> Result<bool, LabError> {
    let base = folder.join(format!("probe-{}", std::process::id()));
    let (image, serial) = (base.with_extension("cpio"), base.with_extension("log"));
    let file = |path: &Path, source| LabError::File { path: path.to_owned(), source };
    fs::write(&image, image::greeting(busybox, WORD)?).map_err(|source| file(&image, source))?;
    let mut command = leash::command(qemu);
    command
        .args(["-machine", "q35", "-accel", "kvm", "-cpu", "max", "-m", "256M", "-nodefaults"])
        .args(["-no-user-config", "-display", "none", "-no-reboot", "-append"])
        .arg("console=ttyS0 quiet panic=-1 rdinit=/init")
        .arg("-kernel")
        .arg(kernel)
        .arg("-initrd")
        .arg(&image)
        .args(["-serial", &format!("file:{}", serial.display())])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut qemu = leash::spawn(command)
        .map_err(|source| LabError::Start { program: "qemu".to_owned(), source })?;
    let start = Instant::now();
    let said = || fs::read_to_string(&serial).is_ok_and(|text| text.contains(WORD));
    let mut spoke = false;
    while start.elapsed() < LIMIT && !spoke {
        let ended = matches!(qemu.try_wait(), Ok(Some(_)));
        spoke = said();
        if ended {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    // It may have ended by itself; the files are only left-overs.
    let _ended = qemu.kill();
    let _status = qemu.wait();
    let _left = (fs::remove_file(&image), fs::remove_file(&serial));
    Ok(spoke)
}
