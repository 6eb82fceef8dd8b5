//! Our agent, as a program has it: the library on a runtime of its own.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;
use windlass_agent::{Agent, Asked, Config, NullLedger, Permits};
use windlass_conformance::agent::{Ready, Start, Stop};
use windlass_drivers::any::AnyAttach;
use windlass_drivers_qemu::Qemu;
use windlass_kit::client::{Address, Ask, ask};
use windlass_kit::clock::Clock;
use windlass_kit::tasks::Tasks;
use windlass_protocol::{Bytes, ComputeUnit, MilliCpu};

/// Starts our agent in this process.
pub(crate) struct Library;

/// The plugin over HTTP.
struct Remote(SocketAddr);

struct Running {
    runtime: Runtime,
    tasks: Tasks,
}

impl Start for Library {
    fn start(&self, ready: &Ready) -> Result<Box<dyn Stop>, String> {
        let meminfo = ready.folder.join("meminfo");
        let plenty = "MemTotal: 16777216 kB\nMemFree: 8388608 kB\nMemAvailable: 12582912 kB\n";
        std::fs::write(&meminfo, plenty).unwrap();
        let unit = ComputeUnit::new(MilliCpu::from_cores(1), Bytes::from_mib(256)).unwrap();
        let mut config = Config::new(unit);
        config.callback_listen = IpAddr::V4(Ipv4Addr::LOCALHOST);
        config.callback_ports = 0..=0;
        config.cpu_limit = Some(windlass_protocol::CpuLimit::Trust);
        config.meminfo = meminfo;
        let text = std::fs::read_to_string(ready.folder.join("vms.d/a.toml")).unwrap();
        let file = windlass_vm_files::text::parse("a", &text).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let tasks = Tasks::default();
        let (permits, clock) = (Arc::new(Remote(ready.plugin)), Clock::system());
        let inside = runtime.enter();
        let agent = Agent::new(config, permits, Arc::new(NullLedger), &tasks, clock);
        let qemu = Qemu {
            qmp: file.qmp.clone(),
            vcpu_removal: file.vcpu_removal,
            cpu_limit: None,
            limits: None,
        };
        agent.manage(windlass_vm_files::vm(&file), AnyAttach::new(qemu));
        drop(inside);
        Ok(Box::new(Running { runtime, tasks }))
    }
}

impl Stop for Running {
    fn stop(&mut self) {
        let _ = self.runtime.block_on(self.tasks.drain(Duration::from_secs(8)));
    }

    // Whoever ends it is this process.
    fn ended(&mut self) -> Option<String> {
        None
    }
}

impl Permits for Remote {
    fn ask(&self, body: bytes::Bytes) -> Asked<'_> {
        let at = Address::Tcp(self.0);
        Box::pin(async move {
            let request = Ask::new(axum::http::Method::POST, "/", body);
            let answer = ask(&at, request.within(Duration::from_secs(5))).await;
            answer.map(|answer| (answer.status, answer.body)).map_err(|error| error.to_string())
        })
    }

    fn place(&self) -> String {
        self.0.to_string()
    }
}
