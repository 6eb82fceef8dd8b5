//! A resize of memory that cannot be.

use windlass_drivers::DriverError;

pub(super) const COMMAND: &str = "resize of memory";

pub(super) fn refused(reason: String) -> DriverError {
    DriverError::Refused { command: COMMAND, reason }
}
