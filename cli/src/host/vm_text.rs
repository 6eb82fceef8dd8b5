//! A VM file, from the disk to a checked value, with every problem named.

use crate::problem::Problem;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;
use windlass_protocol::vm_file::{FieldError, VmFile, VmFileText};

/// A file that is longer was not written by a person.
const LONGEST: u64 = 256 * 1024;

/// The text of a file. `Err(None)`: there is none.
///
/// # Errors
/// It is no file, cannot be read, is too long, or is no text.
pub fn read(path: &Path) -> Result<String, Option<Problem>> {
    let failed = |error: std::io::Error| {
        let gone = error.kind() == ErrorKind::NotFound;
        (!gone).then(|| Problem::without_value("", format!("cannot be read: {error}")))
    };
    // Before it is opened: a pipe would be waited for.
    if !std::fs::metadata(path).map_err(failed)?.is_file() {
        return Err(Some(Problem::without_value("", "is no file")));
    }
    let mut bytes = Vec::new();
    File::open(path).map_err(failed)?.take(LONGEST + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > LONGEST {
        let limit = format!("is longer than {} KiB", LONGEST / 1024);
        return Err(Some(Problem::without_value("", limit)));
    }
    String::from_utf8(bytes).map_err(|_| Some(Problem::without_value("", "is not UTF-8 text")))
}

/// What a VM file says.
///
/// # Errors
/// Everything that is wrong with it.
pub fn parse(stem: &str, text: &str) -> Result<VmFile, Vec<Problem>> {
    let text: VmFileText = windlass_kit::config::parse_toml(text).map_err(|problem| {
        let line = problem.line.map_or(String::new(), |line| format!("line {line}: "));
        vec![Problem::without_value(problem.field, format!("{line}{}", problem.message))]
    })?;
    VmFile::from_text(stem, text).map_err(|errors| {
        let problem = |error: FieldError| Problem {
            field: error.field,
            value: error.value,
            limit: error.limit,
        };
        errors.into_iter().map(problem).collect()
    })
}
