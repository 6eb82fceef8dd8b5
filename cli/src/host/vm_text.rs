//! A VM file, from its text to a checked value, with every problem named.

use crate::problem::Problem;
use windlass_protocol::vm_file::{FieldError, VmFile, VmFileText};

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
