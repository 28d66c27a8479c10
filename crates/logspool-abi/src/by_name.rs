//! Finds open loggers by their names.
//!
//! The chain of a bucket goes from one logger to the next by ids. Each change is one store, so a child that is forked
//! meanwhile finds whole chains.
//!
//! Atomics belong in `queue` and `stats`; those of this file are an exception: the heads of the chains.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::loggers::{LOGGERS, LoggerHandle};

/// Chains. Chosen: twice the number of loggers that can be open.
const BUCKETS: usize = 4096;

/// The open loggers, by their names. Used by one thread at a time.
pub struct NameIndex([AtomicU32; BUCKETS]);

impl NameIndex {
    /// An index without loggers.
    pub const fn new() -> Self {
        Self([const { AtomicU32::new(0) }; BUCKETS])
    }

    fn bucket(&self, name: &str) -> &AtomicU32 {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        &self.0[hasher.finish() as usize % BUCKETS]
    }

    /// The logger with a name, and its id.
    pub fn find(&self, name: &str) -> Option<(u32, &'static LoggerHandle)> {
        let mut id = self.bucket(name).load(Ordering::Relaxed);
        while let Some(logger) = LOGGERS.get(id) {
            if logger.name == name {
                return Some((id, logger));
            }
            id = logger.next_of_bucket.load(Ordering::Relaxed);
        }
        None
    }

    /// Adds a logger.
    pub fn add(&self, id: u32, logger: &LoggerHandle) {
        let bucket = self.bucket(&logger.name);
        logger.next_of_bucket.store(bucket.load(Ordering::Relaxed), Ordering::Relaxed);
        bucket.store(id, Ordering::Relaxed);
    }

    /// Removes a logger.
    pub fn remove(&self, id: u32, logger: &LoggerHandle) {
        let mut link = self.bucket(&logger.name);
        while let Some(other) = LOGGERS.get(link.load(Ordering::Relaxed)) {
            if link.load(Ordering::Relaxed) == id {
                link.store(logger.next_of_bucket.load(Ordering::Relaxed), Ordering::Relaxed);
                return;
            }
            link = &other.next_of_bucket;
        }
    }
}
