//! A VM file, from its text to a checked value, with every problem named.

use windlass_kit::config::parse_toml;
use windlass_kit::problem::Problem;
use windlass_protocol::Usual;
use windlass_protocol::vm_file::VmFile;

/// What a VM file says.
///
/// # Errors
/// Everything that is wrong with it.
pub fn parse(stem: &str, text: &str) -> Result<VmFile, Vec<Problem>> {
    with_usual(stem, text, &Usual::default())
}

/// The same, where something else holds for files that do not say it.
///
/// # Errors
/// Everything that is wrong with it.
pub fn with_usual(stem: &str, text: &str, usual: &Usual) -> Result<VmFile, Vec<Problem>> {
    VmFile::with_usual(stem, parse_toml(text).map_err(|problem| vec![problem])?, usual)
}
