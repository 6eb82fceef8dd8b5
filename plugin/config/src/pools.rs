//! The pools of a cluster's nodes, as a person lists them.

use crate::keys::POOL;
use crate::lists::{Entry, entries, name};
use std::collections::{BTreeMap, BTreeSet};
use windlass_kit::problem::Problem;
use windlass_plugin_core::pods::{HeadroomTerms, Mode, Pool};
use windlass_protocol::config::{Node, Reader};

/// Thousandths of one.
const WHOLE: f64 = 1000.0;

/// Reads `kubernetes.pool`, in the order of the file. Every entry is looked at, also when another is wrong.
pub(crate) fn read(file: &mut Reader) -> Vec<Pool> {
    let pools = file.find_with("kubernetes.pool", |list| entries("kubernetes.pool", list, pool));
    let (mut taken, mut names) = (Vec::new(), BTreeSet::new());
    for Entry { place, read, .. } in pools.unwrap_or_default() {
        match read {
            Ok(pool) if names.insert(pool.name.clone()) => taken.push(pool),
            Ok(pool) => file.wrong(&format!("{place}.name"), &pool.name, "is listed already"),
            Err(problems) => file.add(problems.into_iter().map(|p| p.within(&place))),
        }
    }
    taken
}

fn pool(table: BTreeMap<String, Node>) -> Result<Pool, Vec<Problem>> {
    let mut file = Reader::of(&POOL, table);
    let name = file.required_with("name", name);
    let labels = file.required_with("labels", labels);
    let mode = file.required_with("mode", |mode| {
        [Word::Dedicated, Word::Headroom, Word::Resize]
            .into_iter()
            .find(|it| mode.text() == Some(it.written()))
    });
    let share: Option<f64> = file.find("headroom.share");
    let terms = HeadroomTerms {
        cpu: file.find("headroom.cpu"),
        mem: file.find("headroom.memory"),
        share: share.map_or(HeadroomTerms::default().share, thousandths),
    };
    let mode = match mode {
        Some(Word::Headroom) => Some(Mode::Headroom(terms)),
        Some(word @ (Word::Dedicated | Word::Resize)) => {
            if terms != HeadroomTerms::default() {
                file.wrong("headroom", "a table", "must not be there unless mode = \"headroom\"");
            }
            Some(if let Word::Resize = word { Mode::Resize } else { Mode::Dedicated })
        }
        None => None,
    };
    let watermark = file.find("watermark").map(thousandths);
    let pool = name.zip(labels).zip(mode);
    let pool = pool.map(|((name, labels), mode)| Pool { name, labels, mode, watermark });
    file.finish(pool)
}

/// What `mode` may say.
#[derive(Clone, Copy)]
enum Word {
    Dedicated,
    Headroom,
    Resize,
}

// === impl Word ===

impl Word {
    const fn written(self) -> &'static str {
        match self {
            Self::Dedicated => "dedicated",
            Self::Headroom => "headroom",
            Self::Resize => "resize",
        }
    }
}

fn labels(node: &Node) -> Option<BTreeMap<String, String>> {
    let text = |(name, value): (&String, &Node)| Some((name.clone(), value.text()?.to_owned()));
    let labels: Option<BTreeMap<_, _>> = node.table()?.iter().map(text).collect();
    labels.filter(|labels| !labels.is_empty())
}

/// The share is above zero and at most one.
pub(crate) fn thousandths(share: f64) -> u64 {
    let share = (share * WHOLE).ceil();
    // Counting up needs no cast that could lose a part.
    (1..=1000).find(|count: &u16| f64::from(*count) >= share).map_or(1000, u64::from)
}
