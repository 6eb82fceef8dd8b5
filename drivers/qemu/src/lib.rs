//! The driver for QEMU: sees and resizes a running VM over its monitor (QMP).
//!
//! Windlass attaches to a VM that it did not start, over a monitor of its own. What a VM
//! can do is found out at each attach and holds for that connection; what it has is asked each
//! time. Nothing is inferred from what was asked for (law 4), with one exception that errs on
//! the safe side: a DIMM whose removal was asked counts as not requested any more.
//!
//! Resets and changes come as notices; the hypervisor's own events are late and incomplete
//! (a size change is told once a second at most), so a notice says "look", never a figure.

mod awaited;
pub mod check;
mod cpu;
mod in_pod;
mod limit;
mod link;
mod memory;
mod peer;
mod reader;
mod run;
mod wire;

use cpu::{SLOTS, Vcpus};
use limit::HostLimit;
use link::{CallError, Limits, Link};
use memory::{MEMORY, Memory, Way};
use peer::Peer;
use run::STATE;
use serde::Deserialize;
use serde_json::Value;
use std::fmt::Debug;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use windlass_drivers::{Attach, Driver, DriverError, Notice};
use windlass_drivers_cgroup::Look;
use windlass_protocol::{
    Capabilities, CpuLimit, LimitCounts, MilliCpu, Promises, Resize, Resources, Seen, ShrinkCpu,
};

/// What this driver promises: QEMU carries out commands in their order, also those whose answers were
/// lost, and its answers tell what is so at that moment.
const PROMISES: Promises = Promises {
    settles_within: Duration::ZERO,
    lag: Duration::ZERO,
    // A look is one exchange, and the guest's blocks move at the pace of its kernel.
    look_again: Duration::from_millis(200),
    // A guest that returns memory at all returns a block of it in far less.
    stuck_after: Duration::from_secs(15),
    answers_within: link::ANSWER,
};

/// A VM of QEMU, and how to reach it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Qemu {
    /// The socket of a monitor that has no other client.
    pub qmp: PathBuf,
    /// Whether vCPUs may be taken out for real where that is safe (with KVM).
    pub vcpu_removal: bool,
    /// How the VM's CPU is to be limited; `None`: by its cgroup where that is possible, else not.
    pub cpu_limit: Option<CpuLimit>,
    /// The folder that keeps the limits that were found, and are put back when a VM is let go; `None`
    /// where nothing is kept.
    pub limits: Option<PathBuf>,
}

/// A VM of QEMU in a pod, and how to reach it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QemuInPod {
    /// The socket of a monitor that has no other client, in the folder of the pod's volume.
    pub qmp: PathBuf,
}

/// A connection to a VM of QEMU.
#[derive(Debug)]
pub struct QemuDriver {
    link: Link,
    way: Way,
    /// The host's limit on its CPU, if it has one or can have one.
    limit: Option<HostLimit>,
    /// What that limit came to, at the last look.
    limit_counts: Option<LimitCounts>,
    capabilities: Capabilities,
}

#[derive(Deserialize)]
struct Kvm {
    enabled: bool,
}

// === impl Qemu ===

impl Qemu {
    async fn attach_within(
        &self,
        limits: Limits,
    ) -> Result<(QemuDriver, mpsc::Receiver<Notice>), DriverError> {
        let (link, notices) = Link::open(&self.qmp, limits).await?;
        let driver = QemuDriver::over(link, self).await;
        Ok((driver.map_err(|error| error.of("attach"))?, notices))
    }

    /// Attaches over a connection that is there already, to a monitor of which nothing but its
    /// words is known.
    ///
    /// # Errors
    /// As [`Attach::attach`].
    pub async fn attach_over<S>(
        &self,
        stream: S,
    ) -> Result<(QemuDriver, mpsc::Receiver<Notice>), DriverError>
    where
        S: AsyncRead + AsyncWrite + Debug + Send + Unpin + 'static,
    {
        let (read, write) = tokio::io::split(stream);
        let (peer, limits) = (Peer::unseen(), Limits::default());
        let (link, notices) = Link::over(&self.qmp, limits, peer, read, Box::new(write)).await?;
        let driver = QemuDriver::over(link, self).await;
        Ok((driver.map_err(|error| error.of("attach"))?, notices))
    }
}

impl Attach for Qemu {
    type Driver = QemuDriver;

    fn place(&self) -> String {
        self.qmp.display().to_string()
    }

    fn is_same_way(&self, other: &Self) -> bool {
        self == other
    }

    async fn attach(&self) -> Result<(QemuDriver, mpsc::Receiver<Notice>), DriverError> {
        self.attach_within(Limits::default()).await
    }
}

// === impl QemuInPod ===

impl Attach for QemuInPod {
    type Driver = QemuDriver;

    fn place(&self) -> String {
        self.qmp.display().to_string()
    }

    async fn attach(&self) -> Result<(QemuDriver, mpsc::Receiver<Notice>), DriverError> {
        let path = &self.qmp;
        let opened = in_pod::socket(path).map_err(|error| link::connect_error(path, &error))?;
        let socket = PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd()));
        let (link, notices) = Link::open_by(&socket, path, Limits::default()).await?;
        let cpu_limit = Some(CpuLimit::None);
        let qemu = Qemu { qmp: path.clone(), vcpu_removal: false, cpu_limit, limits: None };
        let driver = QemuDriver::over(link, &qemu).await;
        Ok((driver.map_err(|error| error.of("attach"))?, notices))
    }
}

// === impl QemuDriver ===

impl QemuDriver {
    async fn over(mut link: Link, qemu: &Qemu) -> Result<Self, CallError> {
        let vcpus = Vcpus::fetch(&mut link).await?;
        let memory = Memory::fetch(&mut link).await?;
        let way = Way::fetch(&mut link, &memory).await?;
        let (choice, folder) = (qemu.cpu_limit, qemu.limits.clone());
        let limit = HostLimit::find(choice, folder, &mut link).await?.ok();
        let shrink_cpu = if qemu.vcpu_removal && kvm(&mut link).await? && vcpus.are_in_slots() {
            ShrinkCpu::Removal
        } else {
            ShrinkCpu::Parking
        };
        let limit_step = limit.as_ref().filter(|limit| limit.sets).map(|_| limit::STEP);
        let least = limit_step.unwrap_or_else(|| vcpus.least(shrink_cpu));
        let capabilities = Capabilities {
            cpu_step: MilliCpu::from_cores(1),
            limit_step,
            memory_step: memory.step(way),
            shrink_cpu,
            shrink_memory: way != Way::Fixed,
            promises: PROMISES,
            min: Resources::new(least, memory.boot(way)),
            max: Resources::new(vcpus.most(), memory.most(way)),
        };
        Ok(Self { link, way, limit, limit_counts: None, capabilities })
    }

    async fn look(&mut self) -> Result<Seen, CallError> {
        let ([summary, devices], [status, migration]) = (MEMORY, STATE);
        // The state is the last of the five questions, so that what is decided by this look is fresh. The sweep of
        // DIMMs and the count of a machine without slots come after it.
        let answers = self.link.ask_all([SLOTS, summary, devices, status, migration]).await?;
        let [slots, summary, devices, status, migration] = answers;
        let plugged = cpu::plugged(&mut self.link, slots).await?;
        let memory = Memory::read([summary, devices])?;
        let state = run::read_state([status, migration])?;
        if matches!(self.way, Way::Dimms { .. }) {
            // Boxed, as what few looks do: each look has a future of its own.
            Box::pin(memory::sweep(&mut self.link, &memory)).await?;
        }
        Ok(Seen {
            plugged,
            limit: None,
            found_limit: None,
            memory: memory.seen(self.way, &self.link),
            state,
        })
    }
}

impl Driver for QemuDriver {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn limit_counts(&self) -> Option<LimitCounts> {
        self.limit_counts
    }

    async fn see(&mut self) -> Result<Seen, DriverError> {
        let seen = self.look().await.map_err(|error| error.of("see"))?;
        let Some(limit) = &self.limit else { return Ok(seen) };
        let (Look { limit, found }, counts) = limit.look()?;
        self.limit_counts = Some(counts);
        Ok(Seen { limit, found_limit: found, ..seen })
    }

    async fn resize(&mut self, resize: Resize) -> Result<(), DriverError> {
        match resize {
            Resize::Cpu(vcpus) => {
                cpu::resize(&mut self.link, self.capabilities.shrink_cpu, vcpus).await
            }
            Resize::Memory(total) => memory::resize(&mut self.link, self.way, total).await,
            Resize::Limit(to) => match &self.limit {
                Some(limit) if limit.sets || to.is_none() => limit.set(to).await,
                Some(_) | None => Err(DriverError::Refused {
                    command: "limit of cpu",
                    reason: "QEMU has no cgroup whose quota is to be its limit".to_owned(),
                }),
            },
        }
    }
}

async fn kvm(link: &mut Link) -> Result<bool, CallError> {
    Ok(link.ask::<Kvm>("query-kvm", Value::Null).await?.enabled)
}

#[cfg(test)]
mod tests;
