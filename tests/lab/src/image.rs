//! The initramfs of a lab guest: busybox, modules, our programs, and the init script.
//!
//! Not compressed: the kernel of a TCG guest unpacks slower than QEMU loads.

use crate::LabError;
use crate::cpio::Archive;
use std::fs;
use std::path::Path;

/// Modules of the guest's kernel, in the order they are loaded. `dev/kernel` has the same list.
pub(crate) const MODULES: [&str; 9] = [
    "virtio_ring",
    "virtio",
    "virtio_pci_modern_dev",
    "virtio_pci_legacy_dev",
    "virtio_pci",
    "failover",
    "net_failover",
    "virtio_net",
    "virtio_mem",
];

const INIT: &str = include_str!("init.sh");

/// What goes into an image.
pub(crate) struct Parts<'a> {
    pub(crate) kernel: &'a Path,
    pub(crate) busybox: &'a Path,
    pub(crate) load: &'a Path,
    pub(crate) informant: Option<&'a Path>,
    pub(crate) limit: Option<&'a Path>,
}

/// Makes an image.
pub(crate) fn build(parts: &Parts<'_>) -> Result<Vec<u8>, LabError> {
    let mut archive = Archive::default();
    for name in ["bin", "dev", "proc", "run", "sys", "tmp", "modules"] {
        archive.directory(name);
    }
    archive.character("dev/console", 5, 1);
    archive.program("init", INIT.as_bytes());
    archive.program("bin/busybox", &read(parts.busybox)?);
    archive.program("bin/windlass-lab-load", &read(parts.load)?);
    if let Some(informant) = parts.informant {
        archive.program("bin/windlass-informant", &read(informant)?);
    }
    if let Some(limit) = parts.limit {
        archive.program("bin/windlass-lab-limit", &read(limit)?);
    }
    archive.program("modules/order", format!("{}\n", MODULES.join("\n")).as_bytes());
    for module in MODULES {
        let file = format!("{module}.ko");
        archive.program(&format!("modules/{file}"), &read(&parts.kernel.join(&file))?);
    }
    Ok(archive.finish())
}

/// The smallest image that says a word: for the probe of an accelerator.
pub(crate) fn greeting(busybox: &Path, word: &str) -> Result<Vec<u8>, LabError> {
    let mut archive = Archive::default();
    archive.directory("bin");
    archive.directory("dev");
    archive.character("dev/console", 5, 1);
    archive.program("bin/busybox", &read(busybox)?);
    let init = format!("#!/bin/busybox sh\necho {word}\n/bin/busybox poweroff -f\n");
    archive.program("init", init.as_bytes());
    Ok(archive.finish())
}

fn read(path: &Path) -> Result<Vec<u8>, LabError> {
    fs::read(path).map_err(|source| LabError::File { path: path.to_owned(), source })
}
