//! What the driver says of a machine, by the answers of a monitor that only talks.
#![expect(clippy::unwrap_used, reason = "tests")]

#[expect(dead_code, reason = "the driver's own tests have it misbehave")]
#[path = "../src/fake_monitor.rs"]
mod fake_monitor;

use fake_monitor::{FakeMonitor, Reply};
use windlass_drivers::{Attach, Driver};
use windlass_drivers_qemu::Qemu;
use windlass_protocol::{Bytes, Capabilities, MemorySeen, MilliCpu, Resources, ShrinkCpu};

#[tokio::test]
async fn a_vm_is_seen_as_the_hypervisor_has_it() {
    let monitor = FakeMonitor::new(|_, _| Reply::Usual);
    let qemu = Qemu { qmp: monitor.path().to_owned(), vcpu_removal: false };
    let (mut driver, _notices) = qemu.attach().await.unwrap();
    let seen = driver.see().await.unwrap();
    assert_eq!(seen.plugged, MilliCpu::from_cores(2));
    assert_eq!(
        seen.memory,
        MemorySeen {
            boot: Bytes::from_mib(256),
            requested: Bytes::from_mib(128),
            size: Bytes::from_mib(64),
        }
    );
    assert_eq!(
        driver.capabilities(),
        Capabilities {
            cpu_step: MilliCpu::from_cores(1),
            memory_step: Bytes::from_mib(2),
            shrink_cpu: ShrinkCpu::Parking,
            shrink_memory: true,
            min: Resources::new(MilliCpu::from_cores(1), Bytes::from_mib(256)),
            max: Resources::new(MilliCpu::from_cores(4), Bytes::from_mib(1280)),
        }
    );
    assert_eq!(monitor.changes(), []);
}
