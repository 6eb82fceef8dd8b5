//! What a guest is to be, and the QEMU command line that makes it so.

use crate::{Accel, snapshot};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

/// The informant's port, inside and outside.
pub(crate) const INFORMANT_PORT: u16 = 10301;

/// The load program's port, inside and outside.
pub(crate) const LOAD_PORT: u16 = 10302;

/// The id of the virtio-mem device.
pub(crate) const VIRTIO_MEM: &str = "vm0";

/// Shortens the boot, and lets vCPUs come and go quickly in an emulated guest.
const KERNEL: &str = "console=ttyS0 quiet loglevel=3 panic=-1 rdinit=/init tsc=reliable \
    swiotlb=noforce init_on_alloc=0 mitigations=off nokaslr audit=0 lsm= 8250.nr_uarts=1 \
    rcupdate.rcu_expedited=1 random.trust_cpu=on cryptomgr.notests no_timer_check i8042.noaux \
    i8042.nokbd lpj=10000000 noreplace-smp";

/// What a guest is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestSpec {
    /// Its name, in messages.
    pub name: String,
    /// Memory at boot, in MiB; 128 is the least that is comfortable.
    pub boot_mib: u32,
    /// vCPUs at boot.
    pub vcpus: u32,
    /// Most vCPUs.
    pub max_vcpus: u32,
    /// How its memory grows.
    pub extension: Extension,
    /// Whether a restart of the guest restarts it, or ends QEMU.
    pub reboots: bool,
    /// Whether the kernel's command line sets the onlining policy; else it is the informant's
    /// affair.
    pub onlining: bool,
    /// Whether the informant is started at boot, if the lab has one.
    pub informant: bool,
    /// How many monitors it has beside the lab's: each of Windlass's processes needs its own.
    pub monitors: usize,
    /// The versions that the informant is limited to whenever it is started, as its `--versions`
    /// takes them; `None` leaves it to the informant.
    pub versions: Option<String>,
    /// Whether its QEMU runs in a cgroup of its own.
    pub group: bool,
}

/// How a guest's memory grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extension {
    /// By a virtio-mem device that can have at most this much.
    VirtioMem {
        /// In MiB.
        mib: u32,
    },
    /// By DIMMs.
    Dimms {
        /// How many.
        slots: u32,
        /// How much in all, in MiB.
        mib: u32,
    },
    /// Not at all.
    Fixed,
}

/// Where things are for one guest.
pub(crate) struct Wiring<'a> {
    pub(crate) qemu: &'a Path,
    pub(crate) accel: Accel,
    pub(crate) kernel: &'a Path,
    pub(crate) image: &'a Path,
    pub(crate) monitors: &'a [PathBuf],
    pub(crate) serial: &'a Path,
    pub(crate) address: Ipv4Addr,
    /// A snapshot to start from.
    pub(crate) snapshot: Option<&'a Path>,
}

// === impl GuestSpec ===

impl GuestSpec {
    /// A guest of one vCPU and 256 MiB that can grow to 4 vCPUs and by 1 GiB.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            boot_mib: 256,
            vcpus: 1,
            max_vcpus: 4,
            extension: Extension::VirtioMem { mib: 1024 },
            reboots: false,
            onlining: false,
            informant: true,
            monitors: 1,
            versions: None,
            group: false,
        }
    }

    /// The program and its arguments.
    pub(crate) fn command_line(&self, wiring: &Wiring<'_>) -> (PathBuf, Vec<String>) {
        let mut line = Line(Vec::new());
        line.pair("-name", format!("windlass-lab-{}", self.name));
        line.pair("-machine", "q35,hpet=off");
        line.pair("-accel", wiring.accel.as_str());
        line.pair("-cpu", "max");
        line.pair("-smp", format!("{},maxcpus={}", self.vcpus, self.max_vcpus));
        line.pair("-m", self.memory());
        line.words(&["-nodefaults", "-no-user-config"]);
        line.pair("-display", "none");
        if !self.reboots {
            line.words(&["-no-reboot"]);
        }
        line.pair("-kernel", wiring.kernel.display());
        line.pair("-initrd", wiring.image.display());
        line.pair("-append", self.kernel_line());
        for (number, path) in wiring.monitors.iter().enumerate() {
            let place = escaped(path);
            line.pair("-chardev", format!("socket,id=q{number},path={place},server=on,wait=off"));
            line.pair("-mon", format!("chardev=q{number},mode=control"));
        }
        line.pair("-chardev", format!("file,id=s0,path={}", escaped(wiring.serial)));
        line.pair("-serial", "chardev:s0");
        let ip = wiring.address;
        let forward = |port| format!("hostfwd=tcp:{ip}:{port}-:{port}");
        let (informant, load) = (forward(INFORMANT_PORT), forward(LOAD_PORT));
        line.pair("-netdev", format!("user,id=n0,{informant},{load}"));
        line.pair("-device", "virtio-net-pci,netdev=n0,romfile=");
        if let Extension::VirtioMem { mib } = self.extension {
            line.pair("-object", format!("memory-backend-ram,id=vmem0,size={mib}M"));
            line.pair(
                "-device",
                format!("virtio-mem-pci,id={VIRTIO_MEM},memdev=vmem0,requested-size=0"),
            );
        }
        if let Some(path) = wiring.snapshot {
            line.pair("-incoming", snapshot::incoming(path));
        }
        (wiring.qemu.to_owned(), line.0)
    }

    fn memory(&self) -> String {
        let boot = self.boot_mib;
        match self.extension {
            // A gigabyte more than the device, for its alignment.
            Extension::VirtioMem { mib } => {
                format!("{boot}M,slots=8,maxmem={}M", boot + mib + 1024)
            }
            Extension::Dimms { slots, mib } => {
                format!("{boot}M,slots={slots},maxmem={}M", boot + mib)
            }
            Extension::Fixed => format!("{boot}M"),
        }
    }

    fn kernel_line(&self) -> String {
        let onlining = if self.onlining { " memhp_default_state=online_movable" } else { "" };
        let informant = if self.informant { "" } else { " lab_informant=off" };
        let versions = self.versions.as_ref().map(|versions| format!(" lab_versions={versions}"));
        format!("{KERNEL}{onlining}{informant}{}", versions.unwrap_or_default())
    }
}

struct Line(Vec<String>);

// === impl Line ===

impl Line {
    fn pair(&mut self, option: &str, value: impl ToString) {
        self.0.extend([option.to_owned(), value.to_string()]);
    }

    fn words(&mut self, words: &[&str]) {
        self.0.extend(words.iter().map(|&word| word.to_owned()));
    }
}

/// A path as QEMU's options take it.
fn escaped(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_that_may_not_restart_ends_with_its_kernel() {
        let mut spec = GuestSpec::named("a");
        assert!(line(&spec).contains(&"-no-reboot".to_owned()));
        spec.reboots = true;
        assert!(!line(&spec).contains(&"-no-reboot".to_owned()));
    }

    #[test]
    fn the_kernel_sets_no_policy_unless_told_to() {
        let mut spec = GuestSpec::named("a");
        assert!(!line(&spec).join(" ").contains("memhp_default_state"));
        spec.onlining = true;
        assert!(line(&spec).join(" ").contains("memhp_default_state=online_movable"));
    }

    #[test]
    fn a_limit_of_the_informant_outlives_a_restart_of_the_kernel() {
        let mut spec = GuestSpec::named("a");
        assert!(!line(&spec).join(" ").contains("lab_versions"));
        spec.versions = Some("v1.1".to_owned());
        assert!(line(&spec).join(" ").contains(" lab_versions=v1.1"));
    }

    #[test]
    fn most_memory_covers_what_can_be_added() {
        let mut spec = GuestSpec::named("a");
        spec.extension = Extension::Dimms { slots: 4, mib: 512 };
        assert!(line(&spec).contains(&"256M,slots=4,maxmem=768M".to_owned()));
        spec.extension = Extension::Fixed;
        assert!(line(&spec).contains(&"256M".to_owned()));
    }

    fn line(spec: &GuestSpec) -> Vec<String> {
        let path = Path::new("/x");
        let wiring = Wiring {
            qemu: path,
            accel: Accel::Tcg,
            kernel: path,
            image: path,
            monitors: &[path.to_owned(), path.to_owned()],
            serial: path,
            address: Ipv4Addr::LOCALHOST,
            snapshot: None,
        };
        spec.command_line(&wiring).1
    }
}
