//! A VM file, from its text to a checked value, with every problem named.

use windlass_kit::config::parse_toml;
use windlass_kit::problem::Problem;
use windlass_protocol::Target;
use windlass_protocol::vm_file::{VmFile, VmFileText};

/// What a VM file says.
///
/// # Errors
/// Everything that is wrong with it.
pub fn parse(stem: &str, text: &str) -> Result<VmFile, Vec<Problem>> {
    aiming(stem, text, Target::default())
}

/// The same, where another target holds for files that state none.
///
/// # Errors
/// Everything that is wrong with it.
pub fn aiming(stem: &str, text: &str, target: Target) -> Result<VmFile, Vec<Problem>> {
    let text: VmFileText = parse_toml(text).map_err(|problem| vec![problem.into()])?;
    let read = VmFile::aiming(stem, text, target);
    read.map_err(|errors| errors.into_iter().map(Problem::from).collect())
}
