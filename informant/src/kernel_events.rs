//! What the kernel says unasked: hardware came or went, tasks wait for memory.
//!
//! Both only make us look sooner; a notice that is lost is made up for by the next sample or
//! the next look. A tree in place of the machine sends none. A thread waits for them, in
//! `poll`, because a pressure trigger is an exceptional condition of its file and nothing else.

use crate::log;
use crate::memory_cotenant::MemoryCotenant;
use crate::shared::Shared;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::netlink::{KOBJECT_UEVENT, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use windlass_informant_core::Event;

/// Fires when some task waited for memory for 5 % of a second, once a second at most.
const TRIGGER: &[u8] = b"some 50000 1000000\0";

/// The multicast group in which the kernel tells of devices.
const KERNEL_GROUP: u32 = 1;

/// 128 KiB: buffers of a message and a little more.
const STACK: usize = 131_072;

/// Where notices of one kind come from.
struct Source {
    file: OwnedFd,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    Hardware,
    Stalls,
}

/// What a source says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// It will say no more.
    Broken,
    Nothing,
    /// vCPUs came or went or memory came, or that may have been missed.
    Change,
    /// The guest waited for memory.
    Stall,
}

/// Starts to listen, if this is the machine itself.
pub fn listen<B: MemoryCotenant>(shared: Arc<Shared<B>>) -> io::Result<()> {
    if !shared.tree.is_the_machine() {
        return Ok(());
    }
    let found = [(Kind::Hardware, uevents()), (Kind::Stalls, trigger(&shared))];
    let mut sources: Vec<Source> = Vec::new();
    for (kind, file) in found {
        match file {
            Ok(file) => sources.push(Source { file, kind }),
            Err(error) => log::warn(format_args!("no notice of {}: {error}", kind.of())),
        }
    }
    let wait = move || {
        while !sources.is_empty() {
            wait(&shared, &mut sources);
        }
    };
    std::thread::Builder::new().name("kernel-events".to_owned()).stack_size(STACK).spawn(wait)?;
    Ok(())
}

fn uevents() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let family = AddressFamily::NETLINK;
    let socket = socket_with(family, SocketType::DGRAM, flags, Some(KOBJECT_UEVENT))?;
    bind(&socket, &SocketAddrNetlink::new(0, KERNEL_GROUP))?;
    Ok(socket)
}

fn trigger<B: MemoryCotenant>(shared: &Shared<B>) -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(shared.tree.path("proc/pressure/memory"), flags, Mode::empty())?;
    rustix::io::write(&file, TRIGGER)?;
    Ok(file)
}

/// Waits for notices and passes them on; a source that is broken is left out from then on.
fn wait<B: MemoryCotenant>(shared: &Shared<B>, sources: &mut Vec<Source>) {
    let mut files: Vec<PollFd<'_>> =
        sources.iter().map(|source| PollFd::new(&source.file, source.kind.condition())).collect();
    match poll(&mut files, None) {
        Ok(_) => {}
        Err(Errno::INTR) => return,
        Err(error) => {
            log::warn(format_args!("no notices any more: {error}"));
            return sources.clear();
        }
    }
    let found: Vec<PollFlags> = files.iter().map(PollFd::revents).collect();
    let mut found = found.into_iter();
    sources.retain(|source| source.pass_on(shared, found.next().unwrap_or(PollFlags::empty())));
}

impl Source {
    /// Passes on what was found; whether there may be more.
    fn pass_on<B: MemoryCotenant>(&self, shared: &Shared<B>, found: PollFlags) -> bool {
        match self.read(found) {
            Found::Broken => {
                log::warn(format_args!("no notice of {} any more", self.kind.of()));
                return false;
            }
            Found::Nothing => {}
            Found::Change => shared.observe(Event::Stirred),
            Found::Stall => {
                shared.counts.stalls.add();
                // It is judged by how much is free at this moment.
                shared.sample();
                shared.observe(Event::Stalled);
            }
        }
        true
    }

    fn read(&self, found: PollFlags) -> Found {
        let broken = match self.kind {
            // An error of this socket is a notice too: some were missed.
            Kind::Hardware => PollFlags::NVAL,
            Kind::Stalls => PollFlags::NVAL | PollFlags::ERR,
        };
        match self.kind {
            _ if found.intersects(broken) => Found::Broken,
            Kind::Hardware if !found.is_empty() && hears(&self.file) => Found::Change,
            Kind::Stalls if found.contains(PollFlags::PRI) => Found::Stall,
            Kind::Hardware | Kind::Stalls => Found::Nothing,
        }
    }
}

impl Kind {
    fn of(self) -> &'static str {
        match self {
            Self::Hardware => "added hardware",
            Self::Stalls => "memory pressure",
        }
    }

    fn condition(self) -> PollFlags {
        match self {
            Self::Hardware => PollFlags::IN,
            Self::Stalls => PollFlags::PRI,
        }
    }
}

/// Reads what is there; whether any of it is of interest, or something was missed.
fn hears(socket: &OwnedFd) -> bool {
    let mut buffer = [0_u8; 4096];
    let mut heard = false;
    loop {
        match recv(socket, &mut buffer[..], RecvFlags::empty()) {
            Ok((length, _)) => heard |= is_of_interest(buffer.get(..length).unwrap_or(&[])),
            Err(Errno::AGAIN) => return heard,
            Err(Errno::INTR) => {}
            // Too many at once for the socket.
            Err(_) => return true,
        }
    }
}

/// `add@/devices/system/cpu/cpu1`, and the like for memory.
///
/// Memory that leaves needs nothing of the informant: virtio-mem takes a block offline and removes
/// it, and a look in between would take the block for one that was added.
fn is_of_interest(message: &[u8]) -> bool {
    let first = message.split(|byte| *byte == 0).next().unwrap_or(message);
    let mut parts = first.split(|byte| *byte == b'@');
    let (action, path) = (parts.next().unwrap_or(&[]), parts.next().unwrap_or(&[]));
    let leaves = matches!(action, b"offline" | b"remove");
    path.starts_with(b"/devices/system/cpu/")
        || (path.starts_with(b"/devices/system/memory/") && !leaves)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixDatagram;

    #[test]
    fn what_a_source_says_depends_on_its_kind() {
        let (kernel, ours) = UnixDatagram::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let source = |kind| Source { file: ours.try_clone().unwrap().into(), kind };
        let (changes, stalls) = (source(Kind::Hardware), source(Kind::Stalls));
        for (flags, change, stall) in [
            (PollFlags::empty(), Found::Nothing, Found::Nothing),
            (PollFlags::IN, Found::Change, Found::Nothing),
            (PollFlags::ERR, Found::Change, Found::Broken),
            (PollFlags::PRI, Found::Change, Found::Stall),
            (PollFlags::PRI | PollFlags::ERR, Found::Change, Found::Broken),
            (PollFlags::NVAL, Found::Broken, Found::Broken),
        ] {
            kernel.send(b"add@/devices/system/cpu/cpu1\0").unwrap();
            assert_eq!((changes.read(flags), stalls.read(flags)), (change, stall), "{flags:?}");
            // What was not read must not count for the next.
            hears(&changes.file);
        }
        assert_eq!(changes.read(PollFlags::IN), Found::Nothing, "it was woken for nothing");
    }

    #[test]
    fn one_message_of_interest_among_those_that_are_there_is_heard() {
        let (kernel, ours) = UnixDatagram::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let ours = OwnedFd::from(ours);
        assert!(!hears(&ours), "there is nothing");
        for (messages, heard) in [
            (["add@/devices/virtual/net/eth0\0", "change@/devices/virtual/misc"], false),
            (["add@/devices/system/cpu/cpu1\0", "add@/devices/virtual/net/eth0\0"], true),
            (["add@/devices/virtual/net/eth0\0", "add@/devices/system/memory/memory40\0"], true),
        ] {
            for message in messages {
                kernel.send(message.as_bytes()).unwrap();
            }
            assert_eq!(hears(&ours), heard, "{messages:?}");
        }
    }

    #[test]
    fn only_vcpus_and_memory_that_comes_are_of_interest() {
        for yes in [
            "add@/devices/system/cpu/cpu1\0ACTION=add\0",
            "offline@/devices/system/cpu/cpu1",
            "remove@/devices/system/cpu/cpu1",
            "add@/devices/system/memory/memory40",
        ] {
            assert!(is_of_interest(yes.as_bytes()), "{yes}");
        }
        for no in [
            "",
            "add@/devices/virtual/net/eth0\0",
            "libudev\0x",
            "@",
            "add",
            "offline@/devices/system/memory/memory40\0ACTION=offline\0",
            "remove@/devices/system/memory/memory40",
        ] {
            assert!(!is_of_interest(no.as_bytes()), "{no}");
        }
    }
}
