//! The pods that the scheduler has asked about, and that it is to have bound next.
//!
//! A binding is of one revision of a pod. Where the watch shows the very revision that the scheduler asked about, that pod
//! is as good as one that is read anew: the API server refuses the binding if the pod has changed since. Bounded: the oldest is
//! forgotten, and read.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use windlass_protocol::VmName;
use windlass_protocol::pod::Pod;

/// As many are remembered.
const MOST: usize = 128;

/// The pods. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked(Arc<Mutex<VecDeque<Pod>>>);

// === impl Asked ===

impl Asked {
    /// The scheduler asks about this pod.
    pub(crate) fn note(&self, pod: Pod) {
        let mut pods = self.lock();
        pods.retain(|known| known.name != pod.name);
        if pods.len() >= MOST {
            pods.pop_front();
        }
        pods.push_back(pod);
    }

    /// Takes the pod with this name and uid.
    pub(crate) fn take(&self, name: &VmName, uid: &str) -> Option<Pod> {
        let mut pods = self.lock();
        let at = pods.iter().position(|pod| pod.name == *name && pod.uid == uid)?;
        pods.remove(at)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Pod>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_last_word_on_a_pod_counts_once_and_the_oldest_pod_is_forgotten() {
        let asked = Asked::default();
        let take =
            |nth: usize, uid: &str| asked.take(&pod(nth, "").name, uid).map(|pod| pod.revision);
        asked.note(pod(0, "1"));
        asked.note(pod(0, "2"));
        assert_eq!(take(0, "another"), None);
        assert_eq!(take(0, "uid"), Some("2".to_owned()));
        assert_eq!(take(0, "uid"), None);
        for nth in 0..=MOST {
            asked.note(pod(nth, "1"));
        }
        assert_eq!((take(0, "uid"), take(1, "uid")), (None, Some("1".to_owned())));
    }

    fn pod(nth: usize, revision: &str) -> Pod {
        let name = format!("vm{nth}");
        let metadata = json!({"name": name, "uid": "uid", "resourceVersion": revision});
        serde_json::from_value(json!({"metadata": metadata})).unwrap()
    }
}
