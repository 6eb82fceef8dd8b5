//! What is known of pods, VMs and nodes, by their names.
//!
//! To find one of a thousand names in their order, a dozen of them are compared, each of which lies elsewhere in memory. So
//! the order here is that of a digest of the name, and names are compared where digests are equal. Nothing depends on that
//! order: it is for lookups and sums, and [`ByName::in_order`] is for all else.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use windlass_protocol::VmName;

/// Values by the names `K`. Values stay where they are in memory, and none has room kept beside it.
#[derive(Debug)]
pub(crate) struct ByName<K: ?Sized, T> {
    /// By digest.
    held: BTreeMap<u64, Box<Held<K, T>>>,
    /// Those whose digest another name had when they came.
    others: BTreeMap<Arc<K>, T>,
}

#[derive(Debug)]
struct Held<K: ?Sized, T> {
    name: Arc<K>,
    value: T,
}

/// What something is known by.
pub(crate) trait Name: Ord {
    fn parts(&self) -> [&str; 2];
}

impl Name for str {
    fn parts(&self) -> [&str; 2] {
        [self, ""]
    }
}

impl Name for VmName {
    fn parts(&self) -> [&str; 2] {
        [&self.name, &self.namespace]
    }
}

impl<K: Name + ?Sized, T: Clone> Clone for ByName<K, T> {
    fn clone(&self) -> Self {
        Self { held: self.held.clone(), others: self.others.clone() }
    }
}

impl<K: ?Sized, T: Clone> Clone for Held<K, T> {
    fn clone(&self) -> Self {
        let Self { name, value } = self;
        Self { name: Arc::clone(name), value: value.clone() }
    }
}

impl<K: Name + ?Sized, T> Default for ByName<K, T> {
    fn default() -> Self {
        Self { held: BTreeMap::new(), others: BTreeMap::new() }
    }
}

impl<K: Name + ?Sized, T> ByName<K, T> {
    pub(crate) fn get(&self, name: &K) -> Option<&T> {
        self.get_at(digest(name), name)
    }

    /// The name as it is kept here, so that others can share it.
    pub(crate) fn name(&self, name: &K) -> Option<&Arc<K>> {
        let held = self.held.get(&digest(name)).filter(|held| *held.name == *name);
        let other = || self.others.get_key_value(name).map(|(name, _)| name);
        held.map(|held| &held.name).or_else(other)
    }

    pub(crate) fn get_mut(&mut self, name: &K) -> Option<&mut T> {
        self.get_mut_at(digest(name), name)
    }

    /// Replaces what is known by this name.
    pub(crate) fn insert(&mut self, name: Arc<K>, value: T) {
        self.insert_at(digest(&*name), name, value);
    }

    pub(crate) fn remove(&mut self, name: &K) -> Option<T> {
        self.remove_at(digest(name), name)
    }

    /// What is known by this name, which is nothing special if nothing was.
    pub(crate) fn or_default(&mut self, name: &K) -> &mut T
    where
        T: Default,
        Arc<K>: for<'a> From<&'a K>,
    {
        let digest = digest(name);
        if self.get_at(digest, name).is_none() {
            self.insert_at(digest, name.into(), T::default());
        }
        self.get_mut_at(digest, name).expect("it was there, or put there")
    }

    pub(crate) fn len(&self) -> usize {
        self.held.len() + self.others.len()
    }

    /// All of them, in an order that says nothing.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Arc<K>, &T)> {
        self.held.values().map(|held| (&held.name, &held.value)).chain(&self.others)
    }

    /// The same, without their names.
    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.iter().map(|(_, value)| value)
    }

    /// All of them, by name.
    pub(crate) fn in_order(&self) -> Vec<(&Arc<K>, &T)> {
        let mut all: Vec<_> = self.iter().collect();
        all.sort_unstable_by_key(|(name, _)| *name);
        all
    }

    /// The same, to be changed.
    pub(crate) fn in_order_mut(&mut self) -> Vec<&mut T> {
        let held = self.held.values_mut().map(|held| (&held.name, &mut held.value));
        let mut all: Vec<_> = held.chain(&mut self.others).collect();
        all.sort_unstable_by_key(|(name, _)| *name);
        all.into_iter().map(|(_, value)| value).collect()
    }

    fn get_at(&self, digest: u64, name: &K) -> Option<&T> {
        let held = self.held.get(&digest).filter(|held| *held.name == *name);
        held.map(|held| &held.value).or_else(|| self.others.get(name))
    }

    fn get_mut_at(&mut self, digest: u64, name: &K) -> Option<&mut T> {
        let held = self.held.get_mut(&digest).filter(|held| *held.name == *name);
        held.map(|held| &mut held.value).or_else(|| self.others.get_mut(name))
    }

    fn insert_at(&mut self, digest: u64, name: Arc<K>, value: T) {
        if let Some(known) = self.get_mut_at(digest, &name) {
            *known = value;
            return;
        }
        match self.held.entry(digest) {
            Entry::Vacant(free) => drop(free.insert(Box::new(Held { name, value }))),
            Entry::Occupied(_) => drop(self.others.insert(name, value)),
        }
    }

    fn remove_at(&mut self, digest: u64, name: &K) -> Option<T> {
        if self.held.get(&digest).is_some_and(|held| *held.name == *name) {
            return self.held.remove(&digest).map(|held| held.value);
        }
        self.others.remove(name)
    }
}

impl<K: Name + ?Sized, T: PartialEq> PartialEq for ByName<K, T> {
    fn eq(&self, other: &Self) -> bool {
        self.in_order() == other.in_order()
    }
}

/// FxHash of rustc 1.0 to 1.78, which takes eight bytes at a time and is the same everywhere. Names that somebody chose to share a
/// digest are found in their order.
fn digest(name: &(impl Name + ?Sized)) -> u64 {
    let mix =
        |digest: u64, word: u64| (digest.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    name.parts().into_iter().fold(0, |digest, part| {
        let (words, rest) = part.as_bytes().as_chunks::<8>();
        let digest =
            words.iter().fold(digest, |digest, word| mix(digest, u64::from_le_bytes(*word)));
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        // Where one part ends and the next begins is a part of it.
        mix(mix(digest, u64::from_le_bytes(last)), part.len() as u64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_a_map_whatever_digests_are_equal(
            acts in prop::collection::vec((0..9_u8, prop::option::weighted(0.7, 0..9_u32)), 0..60),
        ) {
            let (mut named, mut map) = (ByName::default(), BTreeMap::new());
            for (vm, value) in acts {
                let (name, digest) = (name(vm), u64::from(vm % 3));
                match value {
                    Some(value) => {
                        named.insert_at(digest, Arc::new(name.clone()), value);
                        map.insert(name, value);
                    }
                    None => prop_assert_eq!(named.remove_at(digest, &name), map.remove(&name)),
                }
                for vm in 0..9 {
                    let (name, digest) = (self::name(vm), u64::from(vm % 3));
                    let held = named.get_at(digest, &name).copied();
                    prop_assert_eq!(held, map.get(&name).copied());
                    prop_assert_eq!(named.get_mut_at(digest, &name).copied(), held);
                }
                let all: Vec<_> = named.in_order().into_iter().map(|(name, it)| (&**name, it)).collect();
                prop_assert_eq!(all, map.iter().collect::<Vec<_>>());
                let all: Vec<u32> = named.in_order_mut().into_iter().map(|it| *it).collect();
                prop_assert_eq!(all, map.values().copied().collect::<Vec<_>>());
                prop_assert_eq!((named.len(), named.values().count()), (map.len(), map.len()));
            }
        }
    }

    #[test]
    fn names_and_namespaces_have_digests_of_their_own() {
        let names = [("a", "bc"), ("ab", "c"), ("abc", ""), ("", "abc"), ("b", "ac")];
        let digest = |(namespace, name): (&str, &str)| {
            self::digest(&VmName { namespace: namespace.to_owned(), name: name.to_owned() })
        };
        let mut digests = names.map(digest).to_vec();
        digests.sort_unstable();
        digests.dedup();
        assert_eq!(digests.len(), names.len());
    }

    #[test]
    fn what_is_known_by_a_name_is_found_by_an_equal_one() {
        let mut named = ByName::default();
        for vm in 0..200 {
            named.insert(Arc::new(name(vm)), vm);
        }
        *named.get_mut(&name(7)).unwrap() = 0;
        assert_eq!((named.get(&name(7)), named.get(&name(8))), (Some(&0), Some(&8)));
        assert_eq!((named.remove(&name(8)), named.get(&name(8))), (Some(8), None));
        assert_eq!((named.get(&name(200)), named.len()), (None, 199));
        assert_eq!(
            (named.name(&name(9)).map(|it| &**it), named.name(&name(8))),
            (Some(&name(9)), None)
        );
    }

    fn name(vm: u8) -> VmName {
        VmName::on_host(format!("vm{vm}"))
    }
}
