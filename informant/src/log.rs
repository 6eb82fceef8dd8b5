//! Lines on standard error, for a person. journald or another collector adds the
//! time.
//!
//! A line is written when a state changes, never for each request, so that no peer can fill a
//! disk with them.

use std::fmt::Arguments;
use std::io::Write;

/// A state changed.
pub fn info(line: Arguments<'_>) {
    write(line, "");
}

/// Something surprising that was handled.
pub fn warn(line: Arguments<'_>) {
    write(line, "warning: ");
}

fn write(line: Arguments<'_>, level: &str) {
    // If standard error is closed, no other place for the line is left.
    let _ = writeln!(std::io::stderr(), "windlass-informant: {level}{line}");
}
