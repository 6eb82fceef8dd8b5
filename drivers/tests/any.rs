//! Drivers of several kinds behind one type.

use tokio::sync::mpsc;
use windlass_drivers::any::AnyAttach;
use windlass_drivers::{Attach, Driver, DriverError, Notice};
use windlass_drivers_fake::{FakeDriver, FakeVm};
use windlass_protocol::{
    Bytes, Capabilities, MemorySeen, MilliCpu, Promises, Resize, Resources, RunState, Seen,
    ShrinkCpu,
};

/// A second kind, which can be at the same place.
struct Other(FakeVm);

impl Attach for Other {
    type Driver = FakeDriver;

    fn place(&self) -> String {
        self.0.place()
    }

    async fn attach(&self) -> Result<(FakeDriver, mpsc::Receiver<Notice>), DriverError> {
        self.0.attach().await
    }
}

#[tokio::test]
async fn ways_are_the_same_by_kind_and_place_and_what_else_their_driver_says() {
    let vm = vm().at("/a");
    let way = AnyAttach::new(vm.clone());
    assert_eq!(way, AnyAttach::new(vm.clone()));
    for other in [vm.clone().at("/b"), vm.clone().by_way(1)] {
        assert_ne!(way, AnyAttach::new(other));
    }
    assert_ne!(way, AnyAttach::new(Other(vm.clone())));
    assert_eq!((way.place(), format!("{way:?}")), ("/a".into(), "AnyAttach(\"/a\")".into()));
    let (mut driver, _notices) = AnyAttach::new(Other(vm.clone())).attach().await.unwrap();
    assert_eq!(driver.capabilities().max.cpu, MilliCpu::from_cores(2));
    driver.resize(Resize::Cpu(MilliCpu::from_cores(2))).await.unwrap();
    assert_eq!(driver.see().await.unwrap(), vm.seen());
}

fn vm() -> FakeVm {
    let cores = |cores| Resources { cpu: MilliCpu::from_cores(cores), ..Resources::ZERO };
    let capabilities = Capabilities {
        cpu_step: MilliCpu::from_cores(1),
        limit_step: None,
        memory_step: Bytes::from_mib(1),
        shrink_cpu: ShrinkCpu::Parking,
        shrink_memory: false,
        promises: Promises::IN_ORDER,
        min: cores(1),
        max: cores(2),
    };
    let memory = MemorySeen::default();
    FakeVm::new(
        capabilities,
        Seen {
            plugged: MilliCpu::from_cores(1),
            limit: None,
            found_limit: None,
            memory,
            state: RunState::Running,
        },
    )
}
