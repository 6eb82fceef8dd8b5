//! What must hold in a world: at each moment, and once all is well again.

use super::draw::{PLACES, VMS};
use super::game::{Game, monitor, name};
use crate::api::{VmEntry, VmState};
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::sleep;
use windlass_drivers_fake::FakeVm;
use windlass_protocol::Resources;
use windlass_protocol::status::HostStatus;

/// From the end of a machine until nothing is reserved for it: three commands that hang, at a
/// monitor that is slow, and a look after each attempt.
const OUT_OF_THE_BOOKS: Duration = Duration::from_secs(45);
/// From the moment when all is well until everything is as files and orders say.
const SETTLES: Duration = Duration::from_secs(60);
/// How long it then stays so.
const STAYS: Duration = Duration::from_secs(15);

// === impl Game ===

impl Game {
    /// What holds at each moment.
    pub(super) async fn judge(&mut self) -> Result<(), String> {
        if let Some(wrong) = self.machines.wrong() {
            return Err(wrong);
        }
        let turned_away: usize = self.machines.all().iter().map(FakeVm::turned_away).sum();
        if turned_away > 0 {
            return Err("a monitor is tried beside the connection to it".to_owned());
        }
        let status = self.status().await?;
        let mut digest = Vec::new();
        for vm in 0..VMS {
            let reserved = reserved(&status, vm);
            let connected = self.there(vm).iter().filter(|vm| vm.is_connected()).count();
            if connected > 1 {
                return Err(format!("{} is two machines at a time", name(vm)));
            }
            if let (Some(reserved), Some(gone)) = (reserved, self.gone_for(vm))
                && gone > OUT_OF_THE_BOOKS
            {
                let name = name(vm);
                return Err(format!("{name} has {reserved}, and is gone for {} s", gone.as_secs()));
            }
            let tried: usize = places(vm).map(|at| self.machines.with(&at, |p| p.tried)).sum();
            digest.push(format!("{} {connected}/{tried}", reserved.unwrap_or_default()));
        }
        self.note(digest.join(", "));
        Ok(())
    }

    /// What holds once nothing is wrong any more: first while the machines are there, then when all
    /// of them have ended.
    pub(super) async fn judge_at_rest(&mut self) -> Result<(), String> {
        self.all_is_well();
        sleep(SETTLES).await;
        self.judge().await?;
        self.judge_settled().await?;
        let before: Vec<usize> = self.attempts();
        sleep(STAYS).await;
        self.judge_settled().await?;
        if self.attempts() != before {
            return Err("a monitor that is held is tried".to_owned());
        }
        for at in (0..VMS).flat_map(places) {
            self.machines.end(&at);
        }
        sleep(OUT_OF_THE_BOOKS).await;
        self.judge().await?;
        let status = self.status().await?;
        let reserved = reserved_in_all(&status);
        if reserved != Resources::ZERO {
            return Err(format!("{reserved} is reserved for nothing"));
        }
        let kept = self.list().await?;
        // A file that is there and not understood is waited for.
        let filed: Vec<String> = self.disk.papers().files.keys().cloned().collect();
        let unfiled = |entry: &&VmEntry| entry.file.is_none() && !filed.contains(&entry.name.name);
        let unfiled = kept.iter().find(unfiled);
        if let Some(entry) = unfiled {
            return Err(format!("{} is gone, without a file, and kept", entry.name));
        }
        self.end().await
    }

    fn all_is_well(&mut self) {
        self.note("all is well from here on".to_owned());
        for machine in self.machines.all() {
            machine.let_go();
            machine.set_refusal(None);
            if machine.is_rebooting() {
                machine.boot();
            }
        }
        for at in (0..VMS).flat_map(places) {
            self.machines.with(&at, |place| place.slow = Duration::ZERO);
            if let Some(machine) = self.machines.at(&at) {
                machine.set_taken(false);
            }
        }
        for kind in ["look", "save", "history"] {
            self.disk.let_go(kind);
        }
        self.disk.papers().is_full = false;
    }

    async fn judge_settled(&mut self) -> Result<(), String> {
        let (status, kept) = (self.status().await?, self.list().await?);
        let stage = self.stage.as_ref().unwrap();
        let hanging = stage.watchdog.hanging();
        if !hanging.is_empty() {
            return Err(format!("it hangs: {hanging:?}"));
        }
        let mut real = Resources::ZERO;
        for vm in 0..VMS {
            let used: Vec<FakeVm> =
                self.there(vm).into_iter().filter(FakeVm::is_connected).collect();
            let reserved = reserved(&status, vm);
            let Some(machine) = used.first() else {
                // One that the host never heard of, or whose file names an empty place.
                if let Some(reserved) = reserved {
                    return Err(format!("{} has {reserved}, and is not connected", name(vm)));
                }
                continue;
            };
            let has = machine.seen().upper();
            real = real.saturating_add(has);
            if reserved != Some(has) {
                return Err(format!("{} has {has}, and the books have {reserved:?}", name(vm)));
            }
        }
        if let Some(twice) = kept.windows(2).find(|two| two[0].name == two[1].name) {
            return Err(format!("{} is listed twice", twice[0].name));
        }
        // What a file names is found.
        for (vm, file) in self.files.iter().enumerate() {
            let Some(text) = file else { continue };
            let entry = kept.iter().find(|entry| entry.name.name == name(vm));
            let machine = self.machines.at(&monitor(vm, text.place));
            if entry.is_none_or(|entry| entry.file.is_none() || !entry.problems.is_empty()) {
                return Err(format!("{} has a valid file: {entry:?}", name(vm)));
            }
            // A VM that was let go is followed where it is, whatever its file says meanwhile.
            let released = entry.is_some_and(|entry| entry.state == VmState::Released);
            if !released && machine.is_some_and(|machine| !machine.is_connected()) {
                return Err(format!("{} is there, and is not connected to", name(vm)));
            }
        }
        let reserved = reserved_in_all(&status);
        if reserved != real {
            return Err(format!("{reserved} is reserved in all, and {real} is there"));
        }
        Ok(())
    }

    /// The machines where a VM may be.
    fn there(&self, vm: usize) -> Vec<FakeVm> {
        places(vm).filter_map(|at| self.machines.at(&at)).collect()
    }

    /// Since when no machine is at any place of a VM; from the beginning, if none ever was.
    fn gone_for(&self, vm: usize) -> Option<Duration> {
        if !self.there(vm).is_empty() {
            return None;
        }
        let since = places(vm).filter_map(|at| self.machines.with(&at, |place| place.gone_since));
        Some(since.max().unwrap_or(self.start).max(self.taken_up[vm]).elapsed())
    }

    fn attempts(&self) -> Vec<usize> {
        let held = |at: &PathBuf| self.machines.at(at).is_some_and(|vm| vm.is_connected());
        let held = (0..VMS).flat_map(places).filter(held);
        held.map(|at| self.machines.with(&at, |place| place.tried)).collect()
    }

    async fn status(&self) -> Result<HostStatus, String> {
        let (_, status) = self.ask("GET", "/v1/state", "").await?;
        serde_json::from_value(status).map_err(|error| error.to_string())
    }

    async fn list(&self) -> Result<Vec<VmEntry>, String> {
        let (_, list) = self.ask("GET", "/v1/vms", "").await?;
        serde_json::from_value(list).map_err(|error| error.to_string())
    }
}

fn places(vm: usize) -> impl Iterator<Item = PathBuf> {
    (0..PLACES).map(move |place| monitor(vm, place))
}

fn reserved_in_all(status: &HostStatus) -> Resources {
    status.node.as_ref().map_or(Resources::ZERO, |node| node.reserved)
}

fn reserved(status: &HostStatus, vm: usize) -> Option<Resources> {
    let booked = status.node.as_ref()?.vms.iter().find(|booked| booked.name.name == name(vm))?;
    Some(booked.reserved).filter(|reserved| *reserved != Resources::ZERO)
}
