//! Finds open handles by their names.
//!
//! The chain of a bucket goes from one handle to the next by ids. Each change is one store, so a child that is forked
//! meanwhile finds whole chains.
//!
//! Atomics belong in `queue` and `stats`; those of this file are an exception: the heads of the chains.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::handles::HandleTable;

/// Chains. Chosen: twice the number of loggers that can be open.
const BUCKETS: usize = 4096;

/// A handle with a name.
pub trait Named {
    /// The name. It never changes.
    fn name(&self) -> &str;

    /// Id of the next handle in the chain of its bucket; only [`NameIndex`] uses it.
    fn next_of_bucket(&self) -> &AtomicU32;
}

/// The open handles of a table, by their names. Used by one thread at a time.
pub struct NameIndex<T: 'static> {
    table: &'static HandleTable<T>,
    buckets: [AtomicU32; BUCKETS],
}

impl<T: Named + Sync> NameIndex<T> {
    /// An index without handles.
    pub const fn new(table: &'static HandleTable<T>) -> Self {
        Self { table, buckets: [const { AtomicU32::new(0) }; BUCKETS] }
    }

    fn bucket(&self, name: &str) -> &AtomicU32 {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        &self.buckets[hasher.finish() as usize % BUCKETS]
    }

    /// The handle with a name, and its id.
    pub fn find(&self, name: &str) -> Option<(u32, &'static T)> {
        let mut id = self.bucket(name).load(Ordering::Relaxed);
        while let Some(handle) = self.table.get(id) {
            if handle.name() == name {
                return Some((id, handle));
            }
            id = handle.next_of_bucket().load(Ordering::Relaxed);
        }
        None
    }

    /// Adds a handle.
    pub fn add(&self, id: u32, handle: &T) {
        let bucket = self.bucket(handle.name());
        handle.next_of_bucket().store(bucket.load(Ordering::Relaxed), Ordering::Relaxed);
        bucket.store(id, Ordering::Relaxed);
    }

    /// Removes a handle.
    pub fn remove(&self, id: u32, handle: &T) {
        let mut link = self.bucket(handle.name());
        while let Some(other) = self.table.get(link.load(Ordering::Relaxed)) {
            if link.load(Ordering::Relaxed) == id {
                link.store(handle.next_of_bucket().load(Ordering::Relaxed), Ordering::Relaxed);
                return;
            }
            link = other.next_of_bucket();
        }
    }
}
