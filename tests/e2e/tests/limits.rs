//! Real guests whose QEMU has a cgroup of its own, under a real `windlass host` that limits them by its quota.
//!
//! Underneath, all the time, the books are compared with the quotas: what a VM may use never exceeds them. A
//! machine that lets nobody make a cgroup cannot tell these stories, and says so.

use windlass_protocol::{Bytes, MilliCpu, Resources};

#[path = "limits/dense.rs"]
mod dense;
#[path = "limits/inside.rs"]
mod inside;
#[path = "limits/killed.rs"]
mod killed;
#[path = "limits/liar.rs"]
mod liar;
#[path = "limits/parked.rs"]
mod parked;
#[path = "limits/part.rs"]
mod part;

/// This much CPU, in thousandths, and this many MiB.
fn size(milli: u64, mib: u64) -> Resources {
    Resources { cpu: MilliCpu::from_milli(milli), mem: Bytes::from_mib(mib) }
}
