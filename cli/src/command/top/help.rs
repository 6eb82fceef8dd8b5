//! What the keys do, and what columns and colours mean.

use super::sight::Sight;
use crate::explain::frozen;

/// The columns, also for `windlass help top`.
pub(super) const COLUMNS: &str = "\
Columns:
  CPU       what the VM has; `2 of 4` where 4 are plugged and the guest uses 2
  MEMORY    what the VM has; USED  how much of it is in use
  LOAD      load average over the VM's window
  GOAL      what the load calls for, as vCPU/memory
  GRANTED   what the books allow the VM
  BOUNDS    least and most, as its file says
  CHANGED   the last change of its size in the last hour: ↑ larger, ↓ smaller
  STATE     at goal, or what keeps the VM from its goal
";

/// The text of the help page.
pub(super) fn text(sight: &Sight) -> String {
    let frozen = frozen(&sight.state).map_or(String::new(), |line| format!("{line}\n\n"));
    format!(
        "{frozen}\
Keys:
  ↑ ↓ j k    select a VM; PgUp PgDn by ten, Home End g G to the first and the last
  Enter      explain the VM: its state, why not more, why not less; there, v shows every decision
  p          pause the VM, or resume it; it asks first
  ← →        sort by another column, which is marked; r turns the order
  q Esc      end; on another page, back; Ctrl-C ends everywhere

{COLUMNS}
  A narrow terminal leaves out BOUNDS, GRANTED, USED, CHANGED, GOAL, one by one:
  never the one by which the VMs are sorted.

Colours (none where NO_COLOR is set):
  red        a part does not answer, and a person has to look: `windlass doctor`
  yellow     the VM waits for room, or for something else that it needs
  cyan       frozen, paused, observed, or not run by QEMU
"
    )
}
