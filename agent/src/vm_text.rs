//! A VM file, from its text to a checked value, with every problem named.

use windlass_kit::config::parse_toml;
use windlass_kit::problem::Problem;
use windlass_protocol::vm_file::{VmFile, VmFileText};

/// What a VM file says.
///
/// # Errors
/// Everything that is wrong with it.
pub fn parse(stem: &str, text: &str) -> Result<VmFile, Vec<Problem>> {
    let text: VmFileText = parse_toml(text).map_err(|problem| vec![problem.into()])?;
    VmFile::from_text(stem, text).map_err(|errors| errors.into_iter().map(Problem::from).collect())
}
