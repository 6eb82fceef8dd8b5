//! What is known of pods, VMs and nodes, by their names.
//!
//! To find one of a thousand names in their order, a dozen of them are compared, each of which lies elsewhere in memory. So
//! the order here is that of a digest of the name, and names are compared where digests are equal. Nothing depends on that
//! order: it is for lookups and sums, and [`ByName::in_order`] is for all else.

use std::collections::BTreeMap;
use std::iter::successors;
use std::sync::Arc;
use windlass_protocol::VmName;

/// Values by the names `K`. Values stay where they are in memory, and none has room kept beside it.
#[derive(Debug)]
pub(crate) struct ByName<K: ?Sized, T> {
    /// By digest.
    held: BTreeMap<u64, Box<Held<K, T>>>,
    len: usize,
}

#[derive(Debug)]
struct Held<K: ?Sized, T> {
    name: Arc<K>,
    value: T,
    /// Of another name with this digest.
    other: Option<Box<Self>>,
}

// === impl ByName ===

/// What something is known by.
pub(crate) trait Name: Ord {
    fn bytes(&self) -> impl Iterator<Item = u8>;
}

impl Name for str {
    fn bytes(&self) -> impl Iterator<Item = u8> {
        str::bytes(self)
    }
}

impl Name for VmName {
    fn bytes(&self) -> impl Iterator<Item = u8> {
        self.name.bytes().chain([0]).chain(self.namespace.bytes())
    }
}

impl<K: ?Sized, T: Clone> Clone for ByName<K, T> {
    fn clone(&self) -> Self {
        Self { held: self.held.clone(), len: self.len }
    }
}

impl<K: ?Sized, T: Clone> Clone for Held<K, T> {
    fn clone(&self) -> Self {
        let Self { name, value, other } = self;
        Self { name: Arc::clone(name), value: value.clone(), other: other.clone() }
    }
}

impl<K: ?Sized, T> Default for ByName<K, T> {
    fn default() -> Self {
        Self { held: BTreeMap::new(), len: 0 }
    }
}

impl<K: Name + ?Sized, T> ByName<K, T> {
    pub(crate) fn get(&self, name: &K) -> Option<&T> {
        self.held(digest(name), name).map(|held| &held.value)
    }

    /// The name as it is kept here, so that others can share it.
    pub(crate) fn name(&self, name: &K) -> Option<&Arc<K>> {
        self.held(digest(name), name).map(|held| &held.name)
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
        if self.held(digest, name).is_none() {
            self.insert_at(digest, name.into(), T::default());
        }
        self.get_mut_at(digest, name).expect("it was there, or put there")
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// All of them, in an order that says nothing.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Arc<K>, &T)> {
        let with_others = self.held.values().flat_map(|held| held.with_others());
        with_others.map(|held| (&held.name, &held.value))
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
        let mut all = Vec::with_capacity(self.len);
        for held in self.held.values_mut() {
            held.push_all(&mut all);
        }
        all.sort_unstable_by_key(|(name, _)| *name);
        all.into_iter().map(|(_, value)| value).collect()
    }

    fn held(&self, digest: u64, name: &K) -> Option<&Held<K, T>> {
        self.held.get(&digest)?.with_others().find(|held| *held.name == *name)
    }

    fn get_mut_at(&mut self, digest: u64, name: &K) -> Option<&mut T> {
        let mut next = self.held.get_mut(&digest);
        while let Some(held) = next {
            if *held.name == *name {
                return Some(&mut held.value);
            }
            next = held.other.as_mut();
        }
        None
    }

    fn insert_at(&mut self, digest: u64, name: Arc<K>, value: T) {
        if let Some(known) = self.get_mut_at(digest, &name) {
            *known = value;
            return;
        }
        self.len += 1;
        let other = self.held.remove(&digest);
        self.held.insert(digest, Box::new(Held { name, value, other }));
    }

    fn remove_at(&mut self, digest: u64, name: &K) -> Option<T> {
        let (left, removed) = self.held.remove(&digest)?.without(name);
        if let Some(left) = left {
            self.held.insert(digest, left);
        }
        self.len -= usize::from(removed.is_some());
        removed
    }
}

impl<K: Name + ?Sized, T: PartialEq> PartialEq for ByName<K, T> {
    fn eq(&self, other: &Self) -> bool {
        self.in_order() == other.in_order()
    }
}

// === impl Held ===

impl<K: Name + ?Sized, T> Held<K, T> {
    fn with_others(&self) -> impl Iterator<Item = &Self> {
        successors(Some(self), |held| held.other.as_deref())
    }

    fn push_all<'a>(&'a mut self, all: &mut Vec<(&'a Arc<K>, &'a mut T)>) {
        let mut next = Some(self);
        while let Some(Self { name, value, other }) = next {
            all.push((name, value));
            next = other.as_deref_mut();
        }
    }

    /// What is left without the one of this name, and that.
    fn without(mut self: Box<Self>, name: &K) -> (Option<Box<Self>>, Option<T>) {
        if *self.name == *name {
            let Self { value, other, .. } = *self;
            return (other, Some(value));
        }
        let (other, removed) =
            self.other.take().map(|other| other.without(name)).unwrap_or_default();
        self.other = other;
        (Some(self), removed)
    }
}

/// FNV-1a, which is short and the same everywhere. Names that somebody chose to share a digest cost time, and nothing else.
fn digest(name: &(impl Name + ?Sized)) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |digest, byte| {
        (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
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
                    let held = named.held(digest, &name).map(|held| held.value);
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
