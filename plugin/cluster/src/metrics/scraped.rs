//! What is read of the books at the moment of a scrape.

use crate::books::ClusterBooks;
use crate::books::moving::Watermark;
use crate::leadership::Epoch;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use std::fmt;
use windlass_plugin::metrics::gauge;

/// What is read at the moment of a scrape: whether the process leads is a matter of the clock. And which VMs move.
#[derive(Debug)]
pub(super) struct Leads(pub(super) ClusterBooks);

/// What is read of nodes that have a watermark at the moment of a scrape.
#[derive(Debug)]
pub(super) struct Watermarks(pub(super) ClusterBooks);

/// The gauges of a node that has a watermark: what each is called, what it is, and where it is read.
type OfWatermark = (&'static str, &'static str, fn(&Watermark) -> u64);

const OF_WATERMARK: [OfWatermark; 4] = [
    (
        "windlass_plugin_watermark_milli_cpu",
        "Thousandths of a vCPU above which VMs that may be moved leave a node",
        |node| node.watermark.cpu.milli(),
    ),
    (
        "windlass_plugin_watermark_bytes",
        "Bytes of memory above which VMs that may be moved leave a node",
        |node| node.watermark.mem.bytes(),
    ),
    (
        "windlass_plugin_pressure_milli_cpu",
        "Thousandths of a vCPU that are taken and asked for above the watermark, less what leaves already",
        |node| node.pressure.cpu.milli(),
    ),
    (
        "windlass_plugin_pressure_bytes",
        "Bytes of memory that are taken and asked for above the watermark, less what leaves already",
        |node| node.pressure.mem.bytes(),
    ),
];

// === impl Leads ===

impl Collector for Leads {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let epoch = self.0.serves().map_or(0, |Epoch(epoch)| epoch);
        let help = "1 while this plugin leads and answers";
        let leader =
            encoder.encode_descriptor("windlass_plugin_leader", help, None, MetricType::Gauge)?;
        gauge(u64::from(epoch > 0)).encode(leader)?;
        let help = "The epoch in which this plugin answers; 0 while it does not";
        let number =
            encoder.encode_descriptor("windlass_plugin_epoch", help, None, MetricType::Gauge)?;
        gauge(epoch).encode(number)?;
        let help = "VMs that move to another node";
        let name = "windlass_plugin_moving";
        let moving = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        gauge(u64::try_from(self.0.moving()).unwrap_or(u64::MAX)).encode(moving)
    }
}

// === impl Watermarks ===

impl Collector for Watermarks {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let nodes = self.0.watermarks();
        for (name, help, of) in OF_WATERMARK {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for node in &nodes {
                let labels = [("node", node.name.as_str())];
                gauge(of(node)).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}
