//! A `windlass-agent` that is not alone: its monitor, and the ways between it, the guest and the
//! plugin.

use crate::acts::{Act, What, Who};
use crate::fleet::told;
use crate::programs::beside;
use crate::relay::Relay;
use crate::served::{Served, last_words};
use crate::vm::Vm;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use windlass_lab::Guest;
use windlass_lab::proxy::Proxy;
use windlass_protocol::informant::{DOWNSCALE, HEALTH_CHECK, RESUME, UPSCALE};

/// Where it listens for its informant. The guest's way to the host ends at 127.0.0.1, where the
/// relay has the same port.
const LISTEN: [u8; 4] = [127, 0, 0, 2];

/// A way between an agent and its guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The informant's calls to the agent.
    Calls,
    /// The agent's requests to the informant.
    Requests,
}

/// An agent, running or not.
pub(crate) struct Rival {
    who: Who,
    vm: Vm,
    folder: PathBuf,
    /// Of `agent.toml`.
    text: String,
    proxy: Proxy,
    calls: Relay,
    requests: Relay,
    permits: Relay,
    served: Option<Served>,
}

// === impl Rival ===

impl Rival {
    /// Prepares it, with the guest's monitor of this number; does not start it.
    pub(crate) async fn set(
        who: Who,
        vm: Vm,
        guest: &Guest,
        folder: PathBuf,
        permits: SocketAddr,
    ) -> Result<Self> {
        fs::create_dir_all(folder.join("vms.d"))?;
        let proxy = Proxy::start(&folder.join("qmp.sock"), &guest.monitor(who as usize))?;
        let calls = Relay::start(|port| SocketAddr::from((LISTEN, port))).await?;
        let informant = guest.informant();
        let requests = Relay::start(|_| informant).await?;
        let permits = Relay::start(|_| permits).await?;
        let (ip, port) = (SocketAddr::from((LISTEN, 0)).ip(), calls.at().port());
        let own = format!("callback_listen = \"{ip}\"\ncallback_ports = \"{port}-{port}\"\n");
        let text = told(&folder, permits.at(), &own);
        let file = folder.join("vms.d").join(format!("{}.toml", vm.name));
        fs::write(file, vm.text(requests.at(), proxy.path()))?;
        Ok(Self { who, vm, folder, text, proxy, calls, requests, permits, served: None })
    }

    /// Replaces the file of its VM.
    pub(crate) fn write(&self, vm: &Vm) -> Result<()> {
        let folder = self.folder.join("vms.d");
        let beside = folder.join("new");
        fs::write(&beside, vm.text(self.requests.at(), self.proxy.path()))?;
        Ok(fs::rename(beside, folder.join(format!("{}.toml", vm.name)))?)
    }

    /// What its VM should be.
    pub(crate) fn vm(&self) -> &Vm {
        &self.vm
    }

    /// Starts it, and waits until it serves. Blocks.
    pub(crate) fn start(&mut self) -> Result<()> {
        ensure!(self.served.is_none(), "{} runs already", self.who);
        let program = beside("windlass-agent")?;
        self.served = Some(Served::start(&program, &self.folder, "agent", &self.text)?);
        Ok(())
    }

    /// Kills it as a crash would.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.running()?.kill()
    }

    /// Has it stand still, or go on.
    pub(crate) fn pause(&self, pause: bool) -> Result<()> {
        let served = self.served.as_ref().with_context(|| format!("{} does not run", self.who))?;
        served.signal(if pause { "-STOP" } else { "-CONT" })
    }

    /// Ends it in good order.
    pub(crate) async fn stop(&mut self) -> Result<()> {
        let stopped = self.running()?.stop().await;
        stopped.with_context(|| format!("{} ended badly", self.who))
    }

    pub(crate) fn runs(&self) -> bool {
        self.served.is_some()
    }

    /// Where it dumps its state, while it runs.
    pub(crate) fn dump_state(&self) -> Option<SocketAddr> {
        self.served.as_ref().map(|served| served.dump_state)
    }

    /// Cuts a way, or makes it whole.
    pub(crate) fn cut(&self, way: Way, cut: bool) {
        match way {
            Way::Calls => self.calls.cut(cut),
            Way::Requests => self.requests.cut(cut),
        }
    }

    /// All that it was told, said and did, in no order.
    pub(crate) fn acts(&self) -> impl Iterator<Item = Act> {
        let who = self.who;
        let resumed = self.calls.requests().into_iter().filter(|call| call.path == RESUME.path);
        let answered = self.requests.requests().into_iter().filter_map(|asked| {
            let what = match &*asked.path {
                _ if asked.status != Some(200) => return None,
                path if path == HEALTH_CHECK.path => What::Checked,
                path if path == DOWNSCALE.path || path == UPSCALE.path => What::Changed(asked.path),
                _ => return None,
            };
            Some((asked.at, what))
        });
        let permits = self.permits.requests().into_iter();
        let changed = self.proxy.changes().into_iter();
        resumed
            .map(|call| (call.at, What::Resumed))
            .chain(answered)
            .chain(permits.map(|asked| (asked.at, What::Changed("a permit".to_owned()))))
            .chain(changed.map(|change| (change.at, What::Changed(change.text))))
            .map(move |(at, what)| Act { at, who, what })
    }

    /// The end of its log.
    pub(crate) fn last_words(&self) -> String {
        format!("{}: {}", self.who, last_words(&log(&self.folder)))
    }

    fn running(&mut self) -> Result<Served> {
        self.served.take().with_context(|| format!("{} does not run", self.who))
    }
}

fn log(folder: &Path) -> PathBuf {
    folder.join("agent.log")
}
