//! The VMs for which most is reserved, as far as a shortage has to name them.
//!
//! They are found out when the first VM is short, and kept with each change from there on. While
//! no VM is short, and for a VM that is far from the largest, a change costs nothing.

use std::cmp::Reverse;
use std::sync::Arc;
use windlass_protocol::VmName;
use windlass_protocol::shortage::MOST_NAMED;

/// As many are known after all VMs were looked at.
const KEPT: usize = 64;

/// A shortage names no more than [`MOST_NAMED`], and not the VM that is short.
const NEEDED: usize = MOST_NAMED + 1;

/// The VMs for which most is reserved, the largest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Largest(Option<Known>);

#[derive(Clone, Debug)]
struct Known {
    /// Every VM that is not behind `last`, in order.
    vms: Vec<Rank>,
    /// `None`: no VM is missing.
    last: Option<Rank>,
}

type Rank = (Reverse<u64>, Arc<VmName>);

// === impl Largest ===

impl Largest {
    /// More or less is reserved for a VM, or it came or left.
    pub(crate) fn change(&mut self, vm: &Arc<VmName>, before: Option<u64>, after: Option<u64>) {
        let Some(known) = self.0.as_mut().filter(|_| before != after) else { return };
        if let Some(at) = before.and_then(|before| known.place(before, vm).ok()) {
            known.vms.remove(at);
        }
        if let Some(after) = after
            && known.last.as_ref().is_none_or(|last| (Reverse(after), vm) <= (last.0, &last.1))
            && let Err(at) = known.place(after, vm)
        {
            known.vms.insert(at, (Reverse(after), Arc::clone(vm)));
        }
        if known.vms.len() > 2 * KEPT {
            known.vms.truncate(KEPT);
            known.last = known.vms.last().cloned();
        } else if known.vms.len() < NEEDED && known.last.is_some() {
            self.0 = None;
        }
    }

    /// The largest of all these VMs.
    pub(crate) fn of<'a, V: Iterator<Item = (&'a Arc<VmName>, u64)>>(
        &mut self,
        all: impl FnOnce() -> V,
    ) -> impl Iterator<Item = &Arc<VmName>> {
        let known = self.0.get_or_insert_with(|| {
            let mut all: Vec<_> = all().map(|(vm, reserved)| (Reverse(reserved), vm)).collect();
            let many = all.len() > KEPT;
            if many {
                all.select_nth_unstable(KEPT - 1);
                all.truncate(KEPT);
            }
            all.sort_unstable();
            let vms: Vec<Rank> = all.into_iter().map(|(has, vm)| (has, Arc::clone(vm))).collect();
            let last = vms.last().filter(|_| many).cloned();
            Known { vms, last }
        });
        known.vms.iter().map(|(_, vm)| vm)
    }
}

// === impl Known ===

impl Known {
    fn place(&self, reserved: u64, vm: &Arc<VmName>) -> Result<usize, usize> {
        self.vms.binary_search_by(|(has, name)| (*has, name).cmp(&(Reverse(reserved), vm)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn the_largest_are_the_first_of_all(changes in prop::collection::vec(change(), 1..800)) {
            let (mut largest, mut all) = (Largest::default(), BTreeMap::new());
            for (vm, after, asked) in changes {
                let vm = Arc::new(VmName::on_host(format!("vm{vm}")));
                let before = match after {
                    Some(after) => all.insert(Arc::clone(&vm), after),
                    None => all.remove(&vm),
                };
                largest.change(&vm, before, after);
                if asked {
                    let found = largest.of(|| all.iter().map(|(vm, has)| (vm, *has)));
                    let found: Vec<_> = found.take(NEEDED).cloned().collect();
                    let mut first: Vec<_> = all.iter().map(|(vm, has)| (Reverse(*has), vm)).collect();
                    first.sort_unstable();
                    let first = first.into_iter().take(NEEDED).map(|(_, vm)| Arc::clone(vm));
                    prop_assert_eq!(found, first.collect::<Vec<_>>());
                }
            }
        }
    }

    /// A VM, what is reserved for it, and whether the largest are asked for then.
    fn change() -> impl Strategy<Value = (usize, Option<u64>, bool)> {
        (0..200_usize, prop::option::weighted(0.7, 0..6_u64), prop::bool::weighted(0.2))
    }
}
