//! The frame of the page: style, headline, and how to read it.

use super::escape::escape;
use crate::laws::Verdict;
use crate::recording::Recording;
use std::fmt::Write;

/// What the lines and marks mean.
pub(super) const READING: &str = "\
<dl>
<dt>Goal</dt><dd>what the load calls for.</dd>
<dt>Permit</dt><dd>what the books of the node allow. A VM grows only within its permit.</dd>
<dt>By the hypervisor</dt><dd>figures that QEMU gave to a monitor of the test bench's own.</dd>
<dt>Seen inside</dt><dd>figures that the load program read in the guest. The guest's kernel keeps some \
memory for itself, so the size seen inside is a little less than the hypervisor's.</dd>
<dt>Plugged, online</dt><dd>a guest gives vCPUs back by <i>parking</i> them: the hypervisor keeps them \
plugged, the guest stops using them. The demo needs no root, so no cgroup limits the guests' CPU: it \
trusts each guest to leave alone the vCPUs that it has parked.</dd>
<dt>Shaded</dt><dd>the VM wants more than the node has left.</dd>
<dt>Triangle</dt><dd>the guest declined to shrink, because it uses its memory.</dd>
<dt>A number above a chart</dt><dd>the step of that number, where its name has no room.</dd>
</dl>
<p>Checks judge by the hypervisor and by what is seen inside. What Windlass says of itself is drawn beside \
that, and nothing is judged by it, save which permit was given and what a guest agreed to.</p>
";

/// A whole page around `body`.
pub(super) fn whole(body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>Windlass demo</title>\n<style>\n{}</style>\n</head>\n<body>\n<main>\n{body}</main>\n\
         </body>\n</html>\n",
        include_str!("style.css")
    )
}

/// Title, verdict and the run in a few sentences.
pub(super) fn head(recording: &Recording, verdicts: &[Verdict]) -> String {
    let failed = verdicts.iter().filter(|verdict| !verdict.holds()).count();
    let (class, word) = match failed {
        0 => ("good", "everything held".to_owned()),
        1 => ("bad", "1 check failed".to_owned()),
        more => ("bad", format!("{more} checks failed")),
    };
    let mut head =
        format!("<header>\n<h1>Windlass demo</h1>\n<p class=\"verdict {class}\">{word}</p>\n");
    let _ = writeln!(head, "<p>{}</p>\n</header>", escape(&summary(recording)));
    head
}

/// What was run, for whom, and how much was looked at.
fn summary(recording: &Recording) -> String {
    let wanted = recording
        .vms
        .iter()
        .fold(windlass_protocol::Resources::ZERO, |sum, vm| sum.saturating_add(vm.bounds.max));
    let readings: usize =
        recording.vms.iter().map(|vm| vm.outside.len() + vm.inside.len() + vm.ours.len()).sum();
    format!(
        "{} real guests, which may grow to {wanted} together, on a node of {}, for {:.0} seconds; \
         sizes move in steps of {}. {readings} readings were taken, of hypervisor, guest and \
         Windlass.",
        recording.vms.len(),
        recording.room,
        recording.seconds(recording.ended()),
        recording.unit,
    )
}
