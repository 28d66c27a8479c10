//! Tables of handles that only grow. Entries live for ever, so a lookup takes no lock and a forked child finds the
//! entries of its parent whole.
//!
//! Atomics belong in `queue` and `stats`; those of this file are an exception: the entries of the tables, and the ids
//! that headers of other languages read.

use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use logspool_sys::fork_safe_lock::ForkSafeLock;
use logspool_sys::published::Published;

/// Entries of a block.
const BLOCK: usize = 1024;
/// Blocks of a table. Chosen: a million sites; the definitions of the core end at 8,192.
const BLOCKS: usize = 1024;

type Block<T> = [AtomicPtr<T>; BLOCK];

/// A table of handles; ids begin at 1.
pub struct HandleTable<T: 'static> {
    blocks: [AtomicPtr<Block<T>>; BLOCKS],
    /// Number of entries. Locked while one is added.
    len: ForkSafeLock<u32>,
}

impl<T: Sync> Default for HandleTable<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Sync> HandleTable<T> {
    /// An empty table.
    pub const fn new() -> Self {
        Self { blocks: [const { AtomicPtr::new(std::ptr::null_mut()) }; BLOCKS], len: ForkSafeLock::new(0) }
    }

    /// The entry with this id.
    #[inline]
    pub fn get(&self, id: u32) -> Option<&'static T> {
        let index = id.checked_sub(1)? as usize;
        let block = self.blocks.get(index / BLOCK)?.observe();
        // SAFETY: stored below, never freed.
        let entry = unsafe { block.as_ref() }?[index % BLOCK].observe();
        // SAFETY: an entry is stored by `insert` and never freed.
        unsafe { entry.as_ref() }
    }

    /// The id of the first entry that `wanted` accepts.
    pub fn find(&self, wanted: impl Fn(&T) -> bool) -> Option<u32> {
        let len = *self.len.lock();
        (1..=len).find(|id| self.get(*id).is_some_and(&wanted))
    }

    /// Finds the first entry that `wanted` accepts, or adds the entry that `make` returns. Returns its id; `None`: the
    /// table is full.
    pub fn find_or_add<E>(
        &self,
        wanted: impl Fn(&T) -> bool,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<Option<u32>, E> {
        let mut len = self.len.lock();
        if let Some(id) = (1..=*len).find(|id| self.get(*id).is_some_and(&wanted)) {
            return Ok(Some(id));
        }
        self.insert(&mut len, make)
    }

    fn insert<E>(&self, len: &mut u32, make: impl FnOnce() -> Result<T, E>) -> Result<Option<u32>, E> {
        let index = *len as usize;
        let Some(place) = self.blocks.get(index / BLOCK) else { return Ok(None) };
        let mut block = place.observe();
        if block.is_null() {
            block = Box::into_raw(Box::new([const { AtomicPtr::new(std::ptr::null_mut()) }; BLOCK]));
            place.publish(block);
        }
        let entry = Box::into_raw(Box::new(make()?));
        // SAFETY: a block is never freed.
        let block: &Block<T> = unsafe { &*block };
        block[index % BLOCK].publish(entry);
        *len += 1;
        Ok(Some(*len))
    }

    /// Adds an entry. `None`: the table is full.
    pub fn add(&self, entry: T) -> Option<u32> {
        self.insert(&mut self.len.lock(), || Ok::<_, ()>(entry)).ok().flatten()
    }

    /// All entries in the order of their ids.
    pub fn all(&self) -> impl Iterator<Item = &'static T> {
        (1..).map_while(|id| self.get(id))
    }
}

/// The part of a logger or a site that headers of other languages read; `struct logspool_handle`.
#[derive(Debug)]
#[repr(C)]
pub struct PublicHandle {
    /// Upper half: the lower half of the pipeline's number. Lower half: the id in that pipeline.
    pub ids: AtomicU64,
    /// Of a logger the lowest level that is logged, of a site the level of its records.
    pub level: AtomicU32,
    /// See `LOGSPOOL_NEEDS_THREAD`.
    pub needs: AtomicU32,
}

/// Value of [`PublicHandle::needs`]: a format shows the thread.
pub const NEEDS_THREAD: u32 = 1;

/// See `LOGSPOOL_NEEDS_THREAD_NAME`.
pub const NEEDS_THREAD_NAME: u32 = 2;

impl PublicHandle {
    /// A handle that is not defined yet.
    pub fn new(level: u16) -> Self {
        Self { ids: AtomicU64::new(0), level: AtomicU32::new(u32::from(level)), needs: AtomicU32::new(0) }
    }

    /// The id under the pipeline with this number; `None`: it is not defined there.
    #[inline]
    pub fn id_under(&self, pipeline: u64) -> Option<u32> {
        // Relaxed: the id is a number, and its definition was published by the segment.
        let ids = self.ids.load(Ordering::Relaxed);
        (ids >> 32 == pipeline & 0xffff_ffff && ids >> 32 != 0).then_some(ids as u32)
    }

    /// Notes the id under the pipeline with this number.
    pub fn set(&self, pipeline: u64, id: u32) {
        self.ids.publish(pipeline << 32 | u64::from(id));
    }
}
