//! What a case has at hand: the plugin under test, spoken to in one version.

use super::said::{Said, Size, cpu, memory, size};
use super::{Options, Vm};
use crate::case::{Fault, Verdict, ensure};
use crate::http::{self, Answer, Lost};
use crate::versions::Version;
use serde_json::Value;
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(10);

/// What was said so long ago makes no word of now uncertain to a plugin that frees late.
const IS_PAST: Duration = Duration::from_millis(12_500);

/// The first version in which an agent names its last permit.
const NAMES_LAST: u32 = 4;

/// What both VMs have when a case begins.
pub(super) const BASE: Size = size(1000, 8);

/// More than any node has.
pub(super) const ALL: Size = size(512_000, 60_000);

/// The plugin under test, spoken to in one version.
#[derive(Debug)]
pub(super) struct Bench {
    pub(super) target: SocketAddr,
    pub(super) version: Version,
    pub(super) vm: Vm,
    pub(super) other: Vm,
    pub(super) slot: u64,
    moving: Option<Vm>,
    frees_late: bool,
}

/// What was permitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Permit {
    pub(super) size: Size,
    pub(super) migrate: bool,
    /// The plugin's compute unit, where it is said.
    pub(super) unit: Option<Size>,
}

// === impl Bench ===

impl Bench {
    pub(super) fn new(options: &Options, version: Version) -> Self {
        let Options { target, vm, other, moving, slot, frees_late, .. } = options.clone();
        Self { target, version, vm, other, slot, moving, frees_late }
    }

    /// The VM that is moved.
    pub(super) fn moving(&self) -> Result<&Vm, Fault> {
        self.moving.as_ref().ok_or_else(|| Fault("--moving was not given".to_owned()))
    }

    /// The same plugin, spoken to in another version.
    pub(super) fn in_version(&self, version: Version) -> Self {
        let (vm, other, moving) = (self.vm.clone(), self.other.clone(), self.moving.clone());
        Self { version, vm, other, moving, ..*self }
    }

    /// Whether memory is bytes.
    pub(super) fn in_bytes(&self) -> bool {
        self.version.number >= 6
    }

    /// Both VMs are where every case begins.
    pub(super) fn settle(&self) -> Verdict {
        for vm in [&self.vm, &self.other] {
            self.permitted(vm, size(0, 0))?;
        }
        for vm in [&self.vm, &self.other] {
            let permit = self.permitted(vm, BASE)?.size;
            ensure(permit == BASE, || {
                format!(
                    "{vm} is to begin with {BASE:?}, and is permitted {permit:?}: is the node larger than twice that, and empty but for these VMs?"
                )
            })?;
        }
        Ok(())
    }

    /// Both VMs are where every case begins, and what they had before is free.
    pub(super) fn settle_and_free(&self) -> Verdict {
        self.settle()?;
        self.is_free(&[&self.vm, &self.other], BASE)
    }

    /// What these VMs gave back, who were just permitted this size, is free for others: at once, or when a plugin that
    /// frees late is sure of it, since each names the answer, or says its size twice more.
    pub(super) fn is_free(&self, vms: &[&Vm], size: Size) -> Verdict {
        let words = if self.version.number < NAMES_LAST { 2 } else { 1 };
        for _ in 0..if self.frees_late { words } else { 0 } {
            thread::sleep(IS_PAST);
            for vm in vms {
                let said = self.said(vm, size);
                let last_permit = format!(r#"{{"vCPUs":{},"mem":{}}}"#, said.cpu, said.mem);
                let body = Said { last_permit, ..said }.body();
                self.read(&self.post(&body)?, &format!("POST {body}"))?;
            }
        }
        Ok(())
    }

    /// A request for this, to be changed or said.
    pub(super) fn said(&self, vm: &Vm, wanted: Size) -> Said {
        Said::new(self.version.number, vm, wanted, self.slot)
    }

    /// Sends a body.
    pub(super) fn post(&self, body: &str) -> Result<Answer, Lost> {
        http::ask(self.target, "POST", "/", body.as_bytes(), LIMIT)
    }

    /// Asks for this, which must be answered.
    pub(super) fn permitted(&self, vm: &Vm, wanted: Size) -> Result<Permit, Fault> {
        let body = self.said(vm, wanted).body();
        self.read(&self.post(&body)?, &format!("POST {body}"))
    }

    /// What an answer says, in the shape of this version.
    pub(super) fn read(&self, answer: &Answer, asked: &str) -> Result<Permit, Fault> {
        let found = answer.json(asked)?;
        let missing = || Fault(format!("{asked}: permit is not what this version has: {found}"));
        Ok(Permit {
            size: self.size(&found["permit"]).ok_or_else(missing)?,
            migrate: found.get("migrate").is_some_and(Value::is_object),
            unit: found.get("resourceUnit").and_then(|unit| self.size(unit)),
        })
    }

    /// Amounts that are written exactly as this version writes them.
    fn size(&self, found: &Value) -> Option<Size> {
        let milli = milli(&found["vCPUs"])?;
        let slots = if self.in_bytes() {
            let amount = quantity(&found["mem"])?;
            amount.is_multiple_of(self.slot).then_some(amount / self.slot)?
        } else {
            found["mem"].as_u64()?
        };
        let canonical = found["vCPUs"] == raw(&cpu(milli))
            && found["mem"] == raw(&memory(self.version.number, slots, self.slot));
        canonical.then_some(Size { milli, slots })
    }
}

/// An amount as it is written.
fn raw(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

/// CPU: a bare number, or quoted thousandths.
fn milli(found: &Value) -> Option<u64> {
    match found.as_str() {
        Some(text) => text.strip_suffix('m')?.parse().ok(),
        None => found.as_u64()?.checked_mul(1000),
    }
}

/// Bytes: a bare number, or a quoted binary quantity.
fn quantity(found: &Value) -> Option<u64> {
    let Some(text) = found.as_str() else { return found.as_u64() };
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let power = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]
        .iter()
        .position(|unit| *unit == &text[digits.len()..])?;
    let unit = 1024_u64.checked_pow(u32::try_from(power).ok()?)?;
    digits.parse::<u64>().ok()?.checked_mul(unit)
}
