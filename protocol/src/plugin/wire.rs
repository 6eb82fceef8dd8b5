//! The keys of requests and answers in each version, as [`PluginFeatures`] says them.

use super::parts::{Counted, Cpu, MOST_CPU, Size};
use super::told;
use super::{Metrics, OverRange, PermitRequest, PermitResponse};
use crate::config::MOST_SLOTS;
use crate::go_json::{self, Json, Parser, Path, Read, Write, Writer, keys, read, write};
use crate::version::{PluginFeatures, PluginVersion};
use crate::{BadBody, Bytes, ComputeUnit, MilliCpu, Resources, VmName};

const CORE: MilliCpu = MilliCpu::from_cores(1);

/// A message, in the keys of the versions with these features.
pub(super) struct In<T>(pub(super) &'static PluginFeatures, pub(super) T);

/// What an agent says, however memory counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Request<M> {
    pub(super) version: PluginVersion,
    pub(super) vm: VmName,
    pub(super) unit: Option<Size<M>>,
    pub(super) resources: Size<M>,
    last_permit: Option<Size<M>>,
    pub(super) metrics: Option<Metrics>,
    pub(super) told: Option<Box<told::Wire<M>>>,
}

#[derive(Default)]
pub(super) struct Response<M> {
    pub(super) permit: Size<M>,
    pub(super) migrate: Option<Present>,
    unit: Size<M>,
}

/// An object that says something by being there.
#[derive(Default)]
pub(super) struct Present;

keys!(Present {});

// === impl In ===

impl<T: Default> In<T> {
    pub(super) fn fill(has: &'static PluginFeatures, json: &Json) -> Result<T, BadBody>
    where
        for<'a> In<&'a mut T>: Read,
    {
        let mut message = T::default();
        In(has, &mut message).read(&Path::Body, json)?;
        Ok(message)
    }
}

// === impl Request ===

impl<M: Counted> Request<M> {
    pub(super) fn of(request: &PermitRequest, slot: Bytes) -> Result<Self, OverRange> {
        let has = request.version.features();
        let unit = request.unit.filter(|_| has.agent_sends_unit);
        let unit = unit.map(|unit| Size::of("computeUnit", unit, slot)).transpose()?;
        let step = if has.memory_in_bytes { Bytes::ZERO } else { slot };
        let last_permit = request
            .last_permit
            .map(|last| Size::of("lastPermit", permitted(last, step), slot))
            .transpose()?;
        let mut resources: Size<M> = Size::of("resources", request.resources, slot)?;
        if !has.fractional_cpu {
            resources.cpu = Cpu::of("resources", resources.cpu.0.round_up(CORE))?;
        }
        let mut metrics = request.metrics_said();
        if !has.metrics_may_be_missing {
            metrics.get_or_insert_with(|| busy(resources.cpu));
        }
        let told = request.told.as_ref().filter(|_| has.tells_people);
        // What is for people alone is no reason to ask for no permit.
        let told = told.and_then(|told| told::Wire::of(told, slot).ok()).map(Box::new);
        let (version, vm) = (request.version, request.vm.clone());
        Ok(Self { version, vm, unit, resources, last_permit, metrics, told })
    }

    pub(super) fn with_slot(self, slot: Bytes) -> PermitRequest {
        let size = |size: Size<M>| size.resources(slot);
        let load = |metrics: Metrics| Metrics { load_5m: None, memory_usage: None, ..metrics };
        PermitRequest {
            version: self.version,
            vm: self.vm,
            unit: self.unit.map(size),
            resources: size(self.resources),
            last_permit: self.last_permit.map(size),
            metrics: self.metrics.map(load),
            told: self.told.map(|told| Box::new(told.told(slot))),
        }
    }

    /// Has `read` fill these keys, in the order in which they are written.
    fn keys<T>(
        &mut self,
        has: &'static PluginFeatures,
        read: impl FnOnce(&mut [(&str, &mut dyn Read)]) -> T,
    ) -> T {
        let VmName { namespace, name } = &mut self.vm;
        let pod: &mut [(&str, &mut dyn Read)] = &mut [("namespace", namespace), ("name", name)];
        let keys: [(_, _, &mut dyn Read); 7] = [
            (true, "protoVersion", &mut self.version),
            (true, "pod", &mut read::Group(pod)),
            (has.agent_sends_unit, "computeUnit", &mut self.unit),
            (true, "resources", &mut self.resources),
            (has.last_permit, "lastPermit", &mut self.last_permit),
            (true, "metrics", &mut In(has, &mut self.metrics)),
            (has.tells_people, "windlass", &mut self.told),
        ];
        said(keys, read)
    }
}

impl<M: Counted> Read for In<&mut Request<M>> {
    fn read(&mut self, at: &Path<'_>, json: &Json) -> Result<(), BadBody> {
        self.1.keys(self.0, |keys| go_json::read_object(at, json, keys))
    }

    fn read_written(&mut self, from: &mut Parser<'_>) -> Option<()> {
        let optional = usize::from(self.0.tells_people);
        self.1.keys(self.0, |keys| go_json::read_written_but(from, keys, optional))
    }
}

impl<M: Counted> Write for In<&Request<M>> {
    fn write(&self, out: &mut Writer) {
        let Self(has, request) = self;
        let VmName { namespace, name } = &request.vm;
        let keys: [(_, _, &dyn Write); 7] = [
            (true, "protoVersion", &request.version),
            (true, "pod", &write::Group(&[("namespace", namespace), ("name", name)])),
            (has.agent_sends_unit, "computeUnit", &request.unit),
            (true, "resources", &request.resources),
            (has.last_permit, "lastPermit", &request.last_permit),
            (true, "metrics", &request.metrics.map(|metrics| In(has, metrics))),
            (has.tells_people && request.told.is_some(), "windlass", &request.told),
        ];
        said(keys, |keys| out.object(keys));
    }
}

// === impl Metrics ===

impl In<&mut Option<Metrics>> {
    fn keys<T>(&mut self, read: impl FnOnce(&mut [(&str, &mut dyn Read)]) -> T) -> T {
        let Metrics { load_1m, load_5m, memory_usage } = self.1.get_or_insert_default();
        let keys: [(_, _, &mut dyn Read); 3] = [
            (true, "loadAvg1M", load_1m),
            (self.0.five_minutes, "loadAvg5M", load_5m),
            (self.0.memory_usage, "memoryUsageBytes", memory_usage),
        ];
        said(keys, read)
    }
}

impl Read for In<&mut Option<Metrics>> {
    fn read(&mut self, at: &Path<'_>, json: &Json) -> Result<(), BadBody> {
        if *json == Json::Null {
            *self.1 = None;
            return Ok(());
        }
        self.keys(|keys| go_json::read_object(at, json, keys))
    }

    fn read_written(&mut self, from: &mut Parser<'_>) -> Option<()> {
        if from.take_null() {
            *self.1 = None;
            return Some(());
        }
        self.keys(|keys| go_json::read_written(from, keys))
    }
}

impl Write for In<Metrics> {
    fn write(&self, out: &mut Writer) {
        let Self(has, Metrics { load_1m, load_5m, memory_usage }) = self;
        let keys: [(_, _, &dyn Write); 3] = [
            (true, "loadAvg1M", load_1m),
            (has.five_minutes, "loadAvg5M", &load_5m.unwrap_or_default()),
            (has.memory_usage, "memoryUsageBytes", memory_usage),
        ];
        said(keys, |keys| out.object(keys));
    }
}

/// The load is what decides who is moved off a full node, the least busy first. Where it is not
/// known, the VM counts with as many tasks as vCPUs: it is not moved for want of a figure.
fn busy(cpu: Cpu) -> Metrics {
    let busy = f32::from(u16::try_from(cpu.0.cores_up()).unwrap_or(u16::MAX));
    Metrics { load_1m: busy, load_5m: Some(busy), memory_usage: None }
}

// === impl Response ===

impl<M: Counted> Response<M> {
    pub(super) fn of(response: PermitResponse, slot: Bytes) -> Result<Self, OverRange> {
        let permit = Size::of("permit", response.permit, slot)?;
        let migrate = response.migrate.then_some(Present);
        Ok(Self { permit, migrate, unit: Size::default() })
    }
}

impl Response<u16> {
    /// Memory in slots, and CPU if need be in whole ones, rounded down, so that no more is said
    /// than is meant.
    pub(super) fn in_slots(
        response: PermitResponse,
        has: &PluginFeatures,
        slot: Bytes,
        unit: ComputeUnit,
    ) -> Result<Self, OverRange> {
        let permit = permitted(response.permit, slot);
        let mut answer = Self::of(PermitResponse { permit, ..response }, slot)?;
        if has.plugin_sends_unit {
            // In slots rounded up, so that it is never none, and as far as the wire goes, because
            // it is only told.
            let mem = unit.mem().min(slot.saturating_mul(MOST_SLOTS));
            answer.unit = Size::of("resourceUnit", Resources { cpu: unit.cpu(), mem }, slot)?;
        }
        if !has.fractional_cpu {
            let permit = &mut answer.permit.cpu.0;
            *permit = permit.round_down(CORE);
            answer.unit = whole(answer.unit);
        }
        Ok(answer)
    }
}

impl<M: Read> Read for In<&mut Response<M>> {
    fn read(&mut self, at: &Path<'_>, json: &Json) -> Result<(), BadBody> {
        let Response { permit, migrate, unit } = &mut *self.1;
        let keys: [(_, _, &mut dyn Read); 3] = [
            (true, "permit", permit),
            (true, "migrate", migrate),
            (self.0.plugin_sends_unit, "resourceUnit", unit),
        ];
        said(keys, |keys| go_json::read_object(at, json, keys))
    }
}

/// Without `migrate` if the VM is not about to be moved.
impl<M: Write> Write for In<Response<M>> {
    fn write(&self, out: &mut Writer) {
        let Self(has, Response { permit, migrate, unit }) = self;
        let keys: [(_, _, &dyn Write); 3] = [
            (true, "permit", permit),
            (migrate.is_some(), "migrate", migrate),
            (has.plugin_sends_unit, "resourceUnit", unit),
        ];
        said(keys, |keys| out.object(keys));
    }
}

/// The smallest multiple of a unit that has whole CPUs.
fn whole(unit: Size<u16>) -> Size<u16> {
    let cpu = unit.cpu.0;
    let fits =
        |times: &u16| cpu.saturating_mul(u64::from(*times)).milli().is_multiple_of(CORE.milli());
    // At the latest a thousand times as much is whole.
    let times = (1..=1000).find(fits).unwrap_or(1000);
    let most = MOST_CPU.round_down(CORE);
    let cpu = Cpu(cpu.saturating_mul(u64::from(times)).min(most));
    Size { cpu, mem: unit.mem.saturating_mul(times) }
}

/// A permit in whole slots.
fn permitted(permit: Resources, slot: Bytes) -> Resources {
    Resources { cpu: permit.cpu, mem: permit.mem.round_down(slot) }
}

/// What `then` makes of the keys that are said, in their order: without an allocation, since each
/// permit comes by here.
fn said<K, T, const N: usize>(
    keys: [(bool, &'static str, K); N],
    then: impl FnOnce(&mut [(&'static str, K)]) -> T,
) -> T {
    let is_said = keys.each_ref().map(|(is_said, ..)| *is_said);
    let mut keys = keys.map(|(_, key, value)| (key, value));
    let mut count = 0;
    for (place, _) in is_said.iter().enumerate().filter(|(_, is_said)| **is_said) {
        keys.swap(count, place);
        count += 1;
    }
    then(&mut keys[..count])
}
