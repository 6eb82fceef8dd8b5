//! `ports.json`, which `windlass-agent` kept before it kept a state: taken over once.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;
use tracing::warn;

const FILE: &str = "ports.json";
const ASIDE: &str = "ports.json.broken";

/// At which port the informant of each VM calls back. A file that is not understood is set aside:
/// informants whose port has changed are registered with anew, and nothing else is lost.
pub(super) fn read(folder: &Path) -> io::Result<BTreeMap<String, u16>> {
    let path = folder.join(FILE);
    let text = match fs::read(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeMap::new()),
        read => read?,
    };
    serde_json::from_slice(&text).or_else(|_| {
        let aside = folder.join(ASIDE);
        fs::rename(&path, &aside)?;
        warn!(aside = %aside.display(), "ports.json not understood, and set aside");
        Ok(BTreeMap::new())
    })
}

/// The state has them from here on.
pub(super) fn remove(folder: &Path) {
    // One that stays is passed over: there is a state.
    let _ = fs::remove_file(folder.join(FILE));
}
