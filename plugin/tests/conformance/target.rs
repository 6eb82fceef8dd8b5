//! A plugin at work: a node of five vCPUs and 40 slots with two VMs on it.

use std::net::SocketAddr;
use std::thread::JoinHandle;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use windlass_conformance::case::Choice;
use windlass_conformance::plugin::{Options, Vm};
use windlass_conformance::versions::{PLUGIN, Version};
use windlass_kit::clock::Clock;
use windlass_kit::server::{Counts, Limits, serve};
use windlass_plugin::{Endpoint, Shared};
use windlass_plugin_core::{Books, VmRecord};
use windlass_protocol::{
    Bytes, ComputeUnit, MilliCpu, Moment, PluginVersion, Resources, VmInfo, VmName,
};

/// It ends with this value.
pub(crate) struct Target {
    pub(crate) addr: SocketAddr,
    stop: CancellationToken,
    serving: Option<JoinHandle<()>>,
}

impl Target {
    pub(crate) fn start() -> Self {
        let (ready, listens) = std::sync::mpsc::channel();
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let serving = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                ready.send(listener.local_addr().unwrap()).unwrap();
                let limits = Limits::small(Counts::default());
                serve(listener, Endpoint(node()), limits, stopped).await.unwrap();
            });
        });
        Self { addr: listens.recv().unwrap(), stop, serving: Some(serving) }
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        self.stop.cancel();
        self.serving.take().unwrap().join().unwrap();
    }
}

/// The kit's versions that this release speaks.
pub(crate) fn spoken() -> Vec<Version> {
    let ours = PluginVersion::SPOKEN;
    let is_spoken = |version: &Version| ours.contains(PluginVersion::from_number(version.number));
    PLUGIN.into_iter().filter(is_spoken).collect()
}

pub(crate) fn options(target: SocketAddr, choice: Choice) -> Options {
    let slot = VmInfo::DEFAULT_MEMORY_SLOT.bytes();
    let (vm, other) = (Vm::named("a"), Vm::named("other"));
    Options { target, vm, other, moving: Some(Vm::named("moved")), slot, frees_late: false, choice }
}

fn node() -> Shared {
    let size = |milli, mib| Resources::new(MilliCpu::from_milli(milli), Bytes::from_mib(mib));
    // The moved VM has one vCPU and 1 GiB of it.
    let mut books = Books::new(size(6000, 6 * 1024));
    for name in ["a", "other", "moved"] {
        books.enter(VmName::on_host(name), VmRecord::default(), size(1000, 1024));
    }
    books.set_moving(&VmName::on_host("moved"), true);
    let unit = ComputeUnit::try_from(size(250, 128)).unwrap();
    Shared::new(books, unit, Clock::starting_at(Moment::from_millis(1_000_000)))
}
