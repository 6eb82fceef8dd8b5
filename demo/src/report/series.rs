//! From readings to charts: what is drawn of the node, and of each VM.

use super::chart::{Area, Chart, Line, Mark, Zone};
use crate::recording::{Ours, Reading, Recording, Track};
use windlass_protocol::{Bytes, MilliCpu, Moment, Waiting};

/// Classes of the VMs in a sum, in order; further VMs share the last.
const LAYERS: [&str; 4] = ["layer a", "layer b", "layer c", "layer d"];

/// Two charts of the node: what the VMs have together, against what there is.
pub(super) fn node(recording: &Recording) -> Vec<Chart> {
    let room = recording.room;
    let mut cpu = frame(recording, "vCPUs online in all guests", "vCPU", cores(room.cpu), 1.0);
    cpu.areas = layers(recording, |vm, at| {
        latest(&vm.inside, at).map_or(0.0, |inside| cores(inside.online))
    });
    let mut memory = frame(recording, "memory of all guests", "MiB", mib(room.mem), 256.0);
    memory.areas = layers(recording, |vm, at| {
        latest(&vm.outside, at).map_or(0.0, |seen| mib(seen.memory.upper()))
    });
    for (chart, figure) in [(&mut cpu, Axis::Cpu), (&mut memory, Axis::Memory)] {
        let booked = recording
            .books
            .iter()
            .map(|books| (recording.seconds(books.to), Some(figure.of(books.value.reserved))));
        let room = recording
            .books
            .iter()
            .map(|books| (recording.seconds(books.to), Some(figure.of(books.value.room))));
        chart.lines = vec![
            Line {
                class: "permit",
                name: "reserved in the books",
                steps: true,
                points: thin(booked),
            },
            Line { class: "room", name: "what the node has", steps: true, points: thin(room) },
        ];
    }
    vec![cpu, memory]
}

/// Two charts of a VM.
pub(super) fn vm(recording: &Recording, vm: &Track) -> Vec<Chart> {
    vec![cpu(recording, vm), memory(recording, vm)]
}

fn cpu(recording: &Recording, vm: &Track) -> Chart {
    let loads = vm.ours.iter().filter_map(|ours| ours.value.load);
    let top = loads.fold(cores(vm.bounds.max.cpu), f64::max);
    let mut chart = frame(recording, "load and vCPUs", "vCPU", top, 1.0);
    let load = vm.ours.iter().map(|ours| (recording.seconds(ours.to), ours.value.load));
    let plugged =
        vm.outside.iter().map(|seen| (recording.seconds(seen.to), Some(cores(seen.value.plugged))));
    let online =
        vm.inside.iter().map(|seen| (recording.seconds(seen.to), Some(cores(seen.value.online))));
    chart.lines = vec![
        Line { class: "load", name: "load, in processes", steps: false, points: thin(load) },
        Line {
            class: "plugged",
            name: "plugged, by the hypervisor",
            steps: true,
            points: thin(plugged),
        },
        Line { class: "inside", name: "online, seen inside", steps: true, points: thin(online) },
    ];
    chart.lines.extend(ours(recording, vm, Axis::Cpu));
    chart.zones = waits_for_room(recording, vm, Axis::Cpu);
    chart
}

fn memory(recording: &Recording, vm: &Track) -> Chart {
    let mut chart = frame(recording, "memory", "MiB", mib(vm.bounds.max.mem), 256.0);
    let inside = |figure: fn(&crate::recording::Inside) -> Bytes| {
        let each = vm.inside.iter();
        thin(each.map(|seen| (recording.seconds(seen.to), Some(mib(figure(&seen.value))))))
    };
    let present = vm
        .outside
        .iter()
        .map(|seen| (recording.seconds(seen.to), Some(mib(seen.value.memory.present()))));
    chart.lines = vec![
        Line {
            class: "load",
            name: "in use, seen inside",
            steps: false,
            points: inside(|i| i.used()),
        },
        Line {
            class: "plugged",
            name: "size, by the hypervisor",
            steps: true,
            points: thin(present),
        },
        Line {
            class: "inside",
            name: "size, seen inside",
            steps: true,
            points: inside(|i| i.total),
        },
    ];
    chart.lines.extend(ours(recording, vm, Axis::Memory));
    chart.zones = waits_for_room(recording, vm, Axis::Memory);
    chart.marks = refusals(vm)
        .into_iter()
        .map(|(at, held)| Mark {
            at: recording.seconds(at),
            value: mib(held),
            name: format!("{:.1} s: declined to shrink below {held}", recording.seconds(at)),
        })
        .collect();
    chart
}

/// Goal and permit.
fn ours(recording: &Recording, vm: &Track, axis: Axis) -> [Line; 2] {
    let line = |figure: fn(&Ours) -> Option<windlass_protocol::Resources>| {
        let each = vm.ours.iter();
        thin(each.map(|ours| {
            (recording.seconds(ours.to), figure(&ours.value).map(|size| axis.of(size)))
        }))
    };
    [
        Line { class: "permit", name: "permit", steps: true, points: line(|ours| ours.permit) },
        Line { class: "goal", name: "goal", steps: true, points: line(|ours| ours.goal) },
    ]
}

/// When the guest refused to have less memory, and what it had then.
pub(super) fn refusals(vm: &Track) -> Vec<(Moment, Bytes)> {
    let mut told = Vec::new();
    let mut found = Vec::new();
    for ours in &vm.ours {
        for waiting in &ours.value.waiting {
            let until = refused_until(waiting);
            if until.is_some() && !told.contains(&until) {
                told.push(until);
                let held = latest(&vm.outside, ours.to).map(|seen| seen.memory.present());
                found.push((ours.from, held.unwrap_or_default()));
            }
        }
    }
    found
}

fn refused_until(waiting: &Waiting) -> Option<Moment> {
    if let Waiting::Refused { until } = waiting { Some(*until) } else { None }
}

fn waits_for_room(recording: &Recording, vm: &Track, axis: Axis) -> Vec<Zone> {
    let mut zones: Vec<Zone> = Vec::new();
    let mut open = false;
    for ours in &vm.ours {
        let at = recording.seconds(ours.to);
        let short = ours.value.waiting.iter().find_map(|waiting| {
            let Waiting::Room { wanted, permit } = waiting else { return None };
            (axis.of(*wanted) > axis.of(*permit))
                .then(|| format!("wants {wanted}, may have {permit}"))
        });
        if let (true, Some(zone)) = (open, zones.last_mut()) {
            zone.to = at;
        }
        if let (false, Some(name)) = (open, &short) {
            zones.push(Zone { from: at, to: at, name: name.clone() });
        }
        open = short.is_some();
    }
    zones
}

fn frame(recording: &Recording, title: &str, unit: &'static str, top: f64, tick: f64) -> Chart {
    let ended = recording.ended();
    let bands = recording.acts.iter().enumerate().map(|(index, act)| {
        let next = recording.acts.get(index + 1).map_or(ended, |next| next.began);
        Zone {
            from: recording.seconds(act.began),
            to: recording.seconds(next),
            name: act.name.clone(),
        }
    });
    Chart {
        title: title.to_owned(),
        unit,
        span: (0.0, recording.seconds(ended)),
        top,
        tick,
        bands: bands.collect(),
        zones: Vec::new(),
        areas: Vec::new(),
        lines: Vec::new(),
        marks: Vec::new(),
    }
}

/// The VMs' figures, one upon the other.
fn layers(recording: &Recording, figure: impl Fn(&Track, Moment) -> f64) -> Vec<Area> {
    let mut moments: Vec<Moment> = recording
        .vms
        .iter()
        .flat_map(|vm| {
            vm.outside.iter().map(|seen| seen.to).chain(vm.inside.iter().map(|seen| seen.to))
        })
        .filter(|at| *at >= recording.began)
        .collect();
    moments.sort_unstable();
    let mut floor = vec![0.0; moments.len()];
    let mut areas = Vec::new();
    for (index, vm) in recording.vms.iter().enumerate() {
        let mut points: Vec<(f64, f64, f64)> = Vec::new();
        for (at, low) in moments.iter().zip(&mut floor) {
            let high = *low + figure(vm, *at);
            let same = points.last().is_some_and(|last| (last.1, last.2) == (*low, high));
            if !same || moments.last() == Some(at) {
                points.push((recording.seconds(*at), *low, high));
            }
            *low = high;
        }
        let class = LAYERS[index.min(LAYERS.len() - 1)];
        areas.push(Area { class, name: vm.name.name.clone(), points });
    }
    areas
}

fn latest<T>(readings: &[Reading<T>], at: Moment) -> Option<&T> {
    let known = readings.partition_point(|reading| reading.to <= at);
    readings.get(known.checked_sub(1)?).map(|reading| &reading.value)
}

/// Without the points that lie between two equal ones.
fn thin(points: impl Iterator<Item = (f64, Option<f64>)>) -> Vec<(f64, Option<f64>)> {
    let mut kept: Vec<(f64, Option<f64>)> = Vec::new();
    for point in points.filter(|point| point.0 >= 0.0) {
        if let [.., before, last] = kept.as_mut_slice()
            && before.1 == last.1
            && last.1 == point.1
        {
            *last = point;
        } else {
            kept.push(point);
        }
    }
    kept
}

/// One axis of a size, as a chart shows it.
#[derive(Clone, Copy)]
enum Axis {
    Cpu,
    Memory,
}

impl Axis {
    fn of(self, size: windlass_protocol::Resources) -> f64 {
        match self {
            Self::Cpu => cores(size.cpu),
            Self::Memory => mib(size.mem),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a drawing has fewer digits")]
fn cores(cpu: MilliCpu) -> f64 {
    cpu.milli() as f64 / 1000.0
}

#[expect(clippy::cast_precision_loss, reason = "a drawing has fewer digits")]
fn mib(memory: Bytes) -> f64 {
    memory.bytes() as f64 / f64::from(1 << 20)
}
