//! v2.0, number 3: CPU in thousandths, memory in 16-bit slots, two figures of the load, and the
//! plugin's compute unit in every answer.

use super::parts::{Answered, Present, Slotted};
use super::v2_1;
use crate::go_json::{self, Json, Path, Read, Write, Writer, keys};
use crate::version::PluginVersion;
use crate::{BadBody, VmName};

/// What an agent says.
#[derive(Default)]
pub(super) struct Request {
    pub(super) version: PluginVersion,
    pub(super) vm: VmName,
    pub(super) resources: Slotted,
    pub(super) metrics: Option<Metrics>,
}

/// The load over one minute and over five.
#[derive(Clone, Copy, Default)]
pub(super) struct Metrics {
    pub(super) load_1m: f32,
    pub(super) load_5m: f32,
}

/// What the plugin says.
#[derive(Default)]
pub(super) struct Response {
    pub(super) permit: Answered,
    pub(super) migrate: Option<Present>,
    pub(super) unit: Answered,
}

keys!(Request {
    "protoVersion": version,
    "pod": { "namespace": vm.namespace, "name": vm.name },
    "resources": resources,
    "metrics": metrics,
});
keys!(Metrics { "loadAvg1M": load_1m, "loadAvg5M": load_5m });

// === impl Request ===

impl From<Request> for v2_1::Request {
    fn from(older: Request) -> Self {
        let Request { version, vm, resources, metrics } = older;
        let metrics = metrics.map(|Metrics { load_1m, load_5m }| v2_1::Metrics {
            load_1m,
            load_5m,
            memory_usage: None,
        });
        Self { version, vm, resources, last_permit: None, metrics }
    }
}

impl From<v2_1::Request> for Request {
    fn from(newer: v2_1::Request) -> Self {
        let v2_1::Request { version, vm, resources, last_permit: _, metrics } = newer;
        let metrics = metrics.map(|v2_1::Metrics { load_1m, load_5m, memory_usage: _ }| Metrics {
            load_1m,
            load_5m,
        });
        Self { version, vm, resources, metrics }
    }
}

// === impl Response ===

impl Read for Response {
    fn read(&mut self, at: &Path<'_>, json: &Json) -> Result<(), BadBody> {
        go_json::read_object(
            at,
            json,
            &mut [
                ("permit", &mut self.permit),
                ("migrate", &mut self.migrate),
                ("resourceUnit", &mut self.unit),
            ],
        )
    }
}

/// Without `migrate` if the VM is not about to be moved.
impl Write for Response {
    fn write(&self, out: &mut Writer) {
        let mut fields: Vec<(&str, &dyn Write)> = vec![("permit", &self.permit)];
        if let Some(present) = &self.migrate {
            fields.push(("migrate", present));
        }
        fields.push(("resourceUnit", &self.unit));
        out.object(&fields);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors are bodies with what the reference's own types of v0.12.2 make of them: what
    /// they decode to, written again, or that it is an error.
    #[test]
    fn requests_are_read_as_the_reference_reads_them() {
        for line in include_str!("../../tests/vectors/plugin-requests.tsv").lines() {
            let (body, answer) = line.split_once('\t').unwrap();
            match go_json::decode_first::<Request>(body.as_bytes()) {
                Ok(read) => {
                    let written = String::from_utf8(go_json::encode(&read)).unwrap();
                    assert_eq!(written, answer, "{body}");
                }
                Err(error) => assert_eq!("error", answer, "{body}: {error}"),
            }
        }
    }
}
