//! The demo in plain lines, for a log or a pipe: what changed since the last line.

use super::recording::{Recording, Track};
use super::waits::waits;
use windlass_protocol::{Moment, Resources};

/// What the lines so far have said.
#[derive(Debug, Default)]
pub(crate) struct ProgressLog {
    acts: usize,
    reached: usize,
    vms: Vec<String>,
}

// === impl ProgressLog ===

impl ProgressLog {
    /// The lines that are news.
    pub(crate) fn news(&mut self, recording: &Recording, now: Moment) -> Vec<String> {
        let mut lines = Vec::new();
        for act in recording.acts.iter().skip(self.acts) {
            lines.push(format!("step {}: {}", act.name, act.says));
        }
        self.acts = recording.acts.len();
        self.vms.resize(recording.vms.len(), String::new());
        for (vm, said) in recording.vms.iter().zip(&mut self.vms) {
            let state = state(vm);
            if *said != state {
                lines.push(format!("  {}: {state}", vm.name.name));
                *said = state;
            }
        }
        let reached: Vec<_> =
            recording.acts.iter().filter_map(|act| Some((act, act.reached?))).collect();
        for (act, at) in reached.iter().skip(self.reached) {
            let seconds = at.since(act.began).as_secs_f64();
            lines.push(format!("step {}: as it should be, after {seconds:.1} s", act.name));
        }
        self.reached = reached.len();
        let seconds = recording.seconds(now);
        lines.into_iter().map(|line| format!("{seconds:6.1} s  {line}")).collect()
    }
}

/// A VM without its load, which changes all the time.
fn state(vm: &Track) -> String {
    let ours = vm.ours.last().map(|reading| &reading.value);
    let inside = vm.inside.last().map(|reading| reading.value);
    let seen = vm.outside.last().map(|reading| reading.value);
    let size = |size: Option<Resources>| size.map_or("?".to_owned(), |size| size.to_string());
    let waiting = ours.and_then(|ours| ours.waiting.first()).map_or("?".to_owned(), waits);
    format!(
        "goal {}, granted {}, QEMU {}, inside {} online, waits for {waiting}",
        size(ours.and_then(|ours| ours.goal)),
        size(ours.and_then(|ours| ours.permit)),
        size(seen.map(|seen| Resources { cpu: seen.plugged, mem: seen.memory.present() })),
        inside.map_or("?".to_owned(), |inside| format!("{} vCPU", inside.online)),
    )
}

#[cfg(test)]
mod tests {
    use super::super::rehearsal::recording;
    use super::*;
    use expect_test::expect;

    #[test]
    fn only_what_changed_is_logged() {
        let mut log = ProgressLog::default();
        let whole = recording();
        let mut lines = Vec::new();
        for act in &whole.acts[..3] {
            let now = act.reached.unwrap();
            let until = whole.until(now);
            lines.extend(log.news(&until, now));
            assert_eq!(log.news(&until, now), Vec::<String>::new());
        }
        expect![[r#"
            log:
               7.8 s  step idle: three guests at their minimum; the node has two vCPUs to spare
               7.8 s    web: goal 1 vCPU / 256MiB, granted 1 vCPU / 256MiB, QEMU 3 vCPU / 256MiB, inside 1 vCPU online, waits for –
               7.8 s    batch: goal 1 vCPU / 256MiB, granted 1 vCPU / 256MiB, QEMU 3 vCPU / 256MiB, inside 1 vCPU online, waits for –
               7.8 s    cache: goal 1 vCPU / 256MiB, granted 1 vCPU / 256MiB, QEMU 3 vCPU / 256MiB, inside 1 vCPU online, waits for –
               7.8 s  step idle: as it should be, after 7.8 s
              15.8 s  step rise: batch starts six processes, and gets all vCPUs that the node can spare
              15.8 s    batch: goal 3 vCPU / 768MiB, granted 3 vCPU / 768MiB, QEMU 3 vCPU / 768MiB, inside 3 vCPU online, waits for –
              15.8 s  step rise: as it should be, after 7.8 s
              23.8 s  step contention: web starts four processes: memory is there, a second vCPU is not; batch has it
              23.8 s    web: goal 2 vCPU / 512MiB, granted 1 vCPU / 512MiB, QEMU 3 vCPU / 512MiB, inside 1 vCPU online, waits for room: 1 vCPU short
              23.8 s  step contention: as it should be, after 7.8 s"#]].assert_eq(&format!("log:\n{}", lines.join("\n")));
    }
}
