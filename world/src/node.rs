//! A node: its books, and the host that tells them what its hypervisors have.

use crate::coverage::Coverage;
use crate::laws;
use crate::process::Process;
use crate::promises::{Present, Promises};
use std::collections::BTreeSet;
use windlass_plugin_core::wire;
use windlass_plugin_core::{Books, HostVms, Note, VmRecord};
use windlass_protocol::status::NodeStatus;
use windlass_protocol::{
    Bytes, ComputeUnit, Moment, PluginVersion, Resources, Versions, VmInfo, VmName,
};

/// One node of a world.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    books: Books,
    /// They know of VMs by a list alone: nobody sees what hypervisors have.
    listed: bool,
    promises: Promises,
    /// Otherwise: what the host saw of its VMs.
    vms: HostVms,
    /// VMs that are about to be moved.
    moving: BTreeSet<VmName>,
    /// The versions in which its books are asked.
    pub(crate) versions: Versions<PluginVersion>,
    pub(crate) process: Process,
    /// It is down before this moment.
    pub(crate) up_at: Moment,
    /// By how many milliseconds the host's wall clock is off.
    pub(crate) wall: i64,
    /// Memory that the host itself has available; `None`: nobody knows.
    pub(crate) available: Option<Bytes>,
}

/// A request for a permit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PermitAsked<'a> {
    /// Of this VM.
    pub(crate) vm: &'a VmName,
    pub(crate) body: &'a [u8],
    /// Its agent hears the answer: it still waits.
    pub(crate) waits: bool,
}

/// What came of a request for a permit.
pub(crate) struct Requested {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
    /// The version in which it was made, unless it was refused.
    pub(crate) version: Option<PluginVersion>,
    /// How law 2 was broken, if it was.
    pub(crate) broken: Option<String>,
}

// === impl Node ===

impl Node {
    pub(crate) fn new(room: Resources, listed: bool) -> Self {
        Self {
            books: Books::new(room),
            listed,
            promises: Promises::default(),
            vms: HostVms::default(),
            moving: BTreeSet::new(),
            versions: PluginVersion::SPOKEN,
            process: Process::default(),
            up_at: Moment::default(),
            wall: 0,
            available: None,
        }
    }

    /// The process that keeps the books is lost, and with it what it knew.
    pub(crate) fn forget(&mut self) {
        self.books = Books::new(self.books.room());
        self.vms = HostVms::default();
        self.process.starts(self.wall);
    }

    pub(crate) fn set_room(&mut self, room: Resources) {
        self.books.set_room(room);
    }

    /// A VM may be there and was not seen yet: it counts with the most that it may have.
    pub(crate) fn presume(&mut self, info: &VmInfo, most: Resources) {
        if self.listed {
            let record = VmRecord::listed(info.priority, info.bounds, info.memory_slot);
            self.books.presume(info.name.clone(), record, most);
        } else {
            self.vms.presume(&mut self.books, &info.name, VmRecord::of(info), most);
        }
        self.books.set_moving(&info.name, self.moving.contains(&info.name));
    }

    /// The host sees that a VM is there, which has no more than this.
    pub(crate) fn enter(&mut self, info: &VmInfo, has: Resources) {
        if !self.listed {
            self.vms.entered(&mut self.books, info, Some(has));
        }
    }

    /// What a VM should be that the host has seen changed.
    pub(crate) fn update(&mut self, info: &VmInfo) {
        if !self.listed {
            self.vms.updated(&mut self.books, info);
        }
    }

    /// The host saw what a hypervisor has.
    pub(crate) fn witness(&mut self, met: &mut Coverage, vm: &VmName, has: Resources) {
        if !self.listed {
            met.books_hear(&self.books, "witness");
            self.vms.witnessed(&mut self.books, vm, has);
        }
    }

    /// The host saw what a VM has for which no permits are asked.
    pub(crate) fn count(&mut self, met: &mut Coverage, vm: &VmName, has: Resources) {
        if !self.listed {
            met.books_hear(&self.books, "count");
            self.vms.counted(&mut self.books, vm, has);
        }
    }

    pub(crate) fn leave(&mut self, met: &mut Coverage, vm: &VmName) {
        met.books_hear(&self.books, "leave");
        self.moving.remove(vm);
        self.vms.left(&mut self.books, vm);
        self.promises.leave(vm);
    }

    /// A VM is about to be moved, or stays after all.
    pub(crate) fn set_moving(&mut self, vm: &VmName, moving: bool) {
        if moving {
            self.moving.insert(vm.clone());
        } else {
            self.moving.remove(vm);
        }
        self.books.set_moving(vm, moving);
    }

    /// A request arrives. `here` are the VMs of this node, and what they have.
    pub(crate) fn request(
        &mut self,
        met: &mut Coverage,
        now: Moment,
        asked: PermitAsked<'_>,
        here: &[Present],
        unit: ComputeUnit,
    ) -> Requested {
        let PermitAsked { vm, body, waits } = asked;
        let (before, had) = (self.books.reserved(), self.books.reserved_for(vm));
        let spoken = self.books.is_spoken_for(vm);
        let uncounted = here.iter().filter(|present| self.books.record(&present.vm).is_none());
        let uncounted = uncounted.map(|present| present.has);
        let uncounted = uncounted.fold(Resources::ZERO, Resources::saturating_add);
        let was = (self.books.room(), before);
        let clock = self.process.clock(now);
        let permitted = wire::read(body, self.versions)
            .and_then(|request| wire::grant(&mut self.books, clock, unit, request));
        met.books_heard(
            was,
            match (&permitted, had) {
                (Err(_), _) => "refused",
                (Ok(permitted), Some(had)) if had.covers(permitted.asked) => "report",
                (Ok(permitted), _) if permitted.granted.short.is_empty() => "permit in full",
                (Ok(_), _) => "permit in part",
            },
        );
        let all = |reserved: Resources| reserved.saturating_add(uncounted);
        let room = self.books.room();
        let mut broken = laws::books(room, all(before), all(self.books.reserved()));
        if let (true, Ok(permitted)) = (self.listed && waits, &permitted) {
            let kept = had.filter(|_| spoken).unwrap_or_default();
            let beyond = self.promises.permitted(room, here, vm, permitted.granted.permit, kept);
            // Below v2.1 an agent cannot say what it was permitted, and is believed once.
            let can_say = permitted.version >= PluginVersion::V2_1;
            broken = broken.or(beyond.filter(|_| spoken || can_say));
        }
        let version = permitted.as_ref().ok().map(|permitted| permitted.version);
        let (status, body) = match permitted.and_then(|permitted| permitted.encode()) {
            Ok(body) => (200, body),
            Err(refusal) => (refusal.status(), refusal.to_string().into_bytes()),
        };
        Requested { status, body, version, broken }
    }

    /// What is promised to a VM; `None` before it was heard of, when its maximum counts.
    pub(crate) fn booked(&self, vm: &VmName) -> Option<Resources> {
        self.books.reserved_for(vm)
    }

    /// Whether it counts with the most that it may have: nobody has spoken for it yet.
    pub(crate) fn presumes(&self, vm: &VmName) -> bool {
        self.listed && !self.books.is_spoken_for(vm)
    }

    /// Whether it keeps more than its agent said last, which may have come late.
    pub(crate) fn doubts(&self, vm: &VmName) -> bool {
        self.books.is_doubted(vm)
    }

    /// What is not promised to anybody.
    pub(crate) fn free(&self) -> Resources {
        self.books.room().saturating_sub(self.books.reserved())
    }

    /// Why a VM got less than it asked for, lately.
    pub(crate) fn notes(&self, vm: &VmName) -> Vec<Note> {
        self.books.notes(vm)
    }

    pub(crate) fn status(&self, now: Moment) -> NodeStatus {
        self.books.status(self.process.clock(now))
    }
}
