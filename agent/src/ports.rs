//! One call-back port per VM, the same after a restart.
//!
//! v1.x and v2.0 of the informant's protocol do not say in a call which VM calls, so the port
//! has to. A VM gets the port that it had; else the first that is free from a place in the
//! range that follows from its name alone. Two names may lead to the same place; which VM gets it
//! then depends on the order of starts, which is why a host keeps what was assigned.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, TcpListener};
use std::ops::RangeInclusive;
use thiserror::Error;
use windlass_protocol::VmName;

/// Which VM has which port.
#[derive(Debug)]
pub(crate) struct Ports {
    range: RangeInclusive<u16>,
    /// Whose each port was last: no more than there are ports.
    kept: BTreeMap<VmName, u16>,
    assigned: BTreeMap<VmName, u16>,
    /// Those of `assigned`.
    taken: BTreeSet<u16>,
    /// `kept`, by port: several VMs may have had a port, one after another.
    owners: BTreeMap<u16, BTreeSet<VmName>>,
    /// VMs for which no port was left when one was last tried.
    refused: BTreeSet<VmName>,
}

/// No port could be listened on.
#[derive(Debug, Error)]
#[error(
    "no call-back port for {vm}: of {}-{} {taken} are other vms', the rest cannot be listened on",
    range.start(), range.end()
)]
pub(crate) struct NoPort {
    vm: VmName,
    range: RangeInclusive<u16>,
    taken: usize,
    #[source]
    last: Option<io::Error>,
}

// === impl NoPort ===

impl NoPort {
    /// What the system said of the last port that was tried.
    pub(crate) fn because(&self) -> String {
        self.last.as_ref().map(ToString::to_string).unwrap_or_default()
    }
}

// === impl Ports ===

impl Ports {
    pub(crate) fn new(range: RangeInclusive<u16>, kept: BTreeMap<VmName, u16>) -> Self {
        let mut owners: BTreeMap<u16, BTreeSet<VmName>> = BTreeMap::new();
        for (vm, port) in &kept {
            owners.entry(*port).or_default().insert(vm.clone());
        }
        let (assigned, taken, refused) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        Self { range, kept, assigned, taken, owners, refused }
    }

    /// Listens for the calls of `vm`.
    pub(crate) fn listen(&mut self, ip: IpAddr, vm: &VmName) -> Result<TcpListener, NoPort> {
        let (mut last, mut found) = (None, None);
        for port in self.candidates(vm) {
            match TcpListener::bind((ip, port)).and_then(|l| Ok((l.local_addr()?.port(), l))) {
                Ok(listening) => {
                    found = Some(listening);
                    break;
                }
                Err(error) => last = Some(error),
            }
        }
        let Some((port, listener)) = found else {
            let range = self.range.clone();
            self.refused.insert(vm.clone());
            let taken = range.clone().filter(|port| self.taken.contains(port)).count();
            return Err(NoPort { vm: vm.clone(), range, taken, last });
        };
        self.release(vm);
        self.assigned.insert(vm.clone(), port);
        self.taken.insert(port);
        self.keep(vm, port);
        Ok(listener)
    }

    /// `vm` is gone; its port may be another's. It is still preferred if `vm` comes back.
    pub(crate) fn release(&mut self, vm: &VmName) {
        self.refused.remove(vm);
        if let Some(port) = self.assigned.remove(vm) {
            self.taken.remove(&port);
        }
    }

    /// Which VM has which port.
    pub(crate) fn assigned(&self) -> &BTreeMap<VmName, u16> {
        &self.assigned
    }

    /// VMs for which no port was left when one was last tried.
    pub(crate) fn refused(&self) -> &BTreeSet<VmName> {
        &self.refused
    }

    /// Remembers a port for this VM, and for no other.
    fn keep(&mut self, vm: &VmName, port: u16) {
        for other in self.owners.remove(&port).into_iter().flatten() {
            self.kept.remove(&other);
        }
        let before = self.kept.insert(vm.clone(), port);
        if let Some(owners) = before.and_then(|before| self.owners.get_mut(&before)) {
            owners.remove(vm);
        }
        self.owners.insert(port, BTreeSet::from([vm.clone()]));
    }

    /// All ports that `vm` may have, the best first.
    fn candidates(&self, vm: &VmName) -> impl Iterator<Item = u16> {
        let (first, last) = (*self.range.start(), *self.range.end());
        // Any port that is free.
        let any = self.range.contains(&0);
        let ports = if any { 1 } else { usize::from(last).saturating_sub(first.into()) + 1 };
        let place = usize::try_from(hash(vm) % (ports as u64)).unwrap_or(0);
        let own = self.assigned.get(vm).copied();
        let kept = self.kept.get(vm).copied().filter(|port| !any && self.range.contains(port));
        let by_name = self.range.clone().cycle().skip(place).take(ports);
        let by_name = by_name.map(move |port| if any { 0 } else { port });
        let free = move |port: &u16| own == Some(*port) || !self.taken.contains(port);
        kept.into_iter().chain(by_name).filter(free)
    }
}

/// FNV-1a: the same in every release, unlike the standard library's.
fn hash(vm: &VmName) -> u64 {
    vm.to_string().bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    #[test]
    fn a_vm_prefers_the_same_port_after_a_restart() {
        let vm = VmName::on_host("db1");
        let first = Ports::new(10310..=10399, BTreeMap::new()).candidates(&vm).next().unwrap();
        assert_eq!(
            Ports::new(10310..=10399, BTreeMap::new()).candidates(&vm).next().unwrap(),
            first
        );
        let kept = BTreeMap::from([(vm.clone(), 10_320)]);
        assert_eq!(Ports::new(10310..=10399, kept).candidates(&vm).next().unwrap(), 10_320);
        let outside = BTreeMap::from([(vm.clone(), 9)]);
        assert_eq!(Ports::new(10310..=10399, outside).candidates(&vm).next().unwrap(), first);
    }

    #[test]
    fn vms_prefer_ports_of_their_own() {
        let ports = Ports::new(10310..=10399, BTreeMap::new());
        let names = (1..=20).map(|nth| VmName::on_host(format!("db{nth}")));
        let preferred: BTreeSet<u16> =
            names.map(|vm| ports.candidates(&vm).next().unwrap()).collect();
        assert!(preferred.len() > 10, "{preferred:?}");
        // Of every release.
        assert_eq!(hash(&VmName::on_host("db1")), 0x2ca1_3507_e51c_65fc);
    }

    #[test]
    fn no_two_vms_have_one_port_and_a_full_range_says_so() {
        // Whatever is free here, found by asking for it.
        let port = TcpListener::bind((HERE, 0)).unwrap().local_addr().unwrap().port();
        let mut ports = Ports::new(port..=port, BTreeMap::new());
        let one = ports.listen(HERE, &VmName::on_host("one")).unwrap();
        let error = ports.listen(HERE, &VmName::on_host("two")).unwrap_err();
        assert_eq!(error.because(), "", "no port was tried");
        let error = error.to_string();
        assert!(error.contains("default/two") && error.contains(&format!("{port}-{port} 1")));
        assert_eq!(ports.refused(), &BTreeSet::from([VmName::on_host("two")]));
        let others = Ports::new(port..=port, BTreeMap::new()).listen(HERE, &VmName::on_host("two"));
        assert!(others.unwrap_err().because().contains("in use"), "somebody else listens there");
        drop(one);
        ports.release(&VmName::on_host("one"));
        ports.listen(HERE, &VmName::on_host("two")).unwrap();
        assert_eq!(ports.refused(), &BTreeSet::new());
        // The port is remembered for its last VM alone.
        assert_eq!(ports.kept, BTreeMap::from([(VmName::on_host("two"), port)]));
    }

    #[test]
    fn a_port_is_remembered_for_its_last_vm_alone() {
        let [a, b, c] = ["a", "b", "c"].map(VmName::on_host);
        let kept = BTreeMap::from([(a.clone(), 7), (b.clone(), 7), (c.clone(), 8)]);
        let mut ports = Ports::new(7..=9, kept);
        ports.keep(&b, 7);
        assert_eq!(ports.kept, BTreeMap::from([(b.clone(), 7), (c.clone(), 8)]));
        ports.keep(&b, 8);
        assert_eq!(ports.kept, BTreeMap::from([(b.clone(), 8)]));
        // What `b` had before is its own no more.
        ports.keep(&a, 7);
        assert_eq!(ports.kept, BTreeMap::from([(a, 7), (b, 8)]));
    }
}
