//! Tables of handles. A lookup takes no lock, and a forked child finds the entries of its parent whole.
//!
//! An id is a place in the table and the number of times the place was used before, so the id of a closed entry finds
//! nothing. The place of a closed entry is used again after at least `KEPT` later ones, and only then the entry is
//! freed: a program that uses a logger while it closes it is wrong, but does not reach freed memory.
//!
//! Atomics belong in `queue` and `stats`; those of this file are an exception: the entries of the tables, and the ids
//! that headers of other languages read.

use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use logspool_sys::fork_safe_lock::ForkSafeLock;
use logspool_sys::published::Published;

/// Entries of a block.
const BLOCK: usize = 1024;
/// Blocks of a table. Chosen: a million sites; the definitions of the core end at 8,192.
const BLOCKS: usize = 1024;

type Block<T> = [AtomicPtr<T>; BLOCK];

/// Id of a sink, a logger or a site.
pub type Id = u32;

/// Bits of an id that number its place; the others count how often the place was used before.
const PLACE_BITS: u32 = 20;
const PLACE_MASK: u32 = (1 << PLACE_BITS) - 1;

/// Closed entries that are kept. Chosen: a table has at most 2,047 open loggers, and a closed one takes some 100 bytes.
const KEPT: u32 = 1024;

/// How long a definition waits for the place of a closed logger or sink. Chosen: records are written in milliseconds
/// unless a sink stalls.
pub const PLACE_TIMEOUT: Duration = Duration::from_secs(5);

struct Entry<T> {
    /// The id of the entry.
    own: u32,
    /// The id, or 0 since the entry was closed.
    open: AtomicU32,
    /// The place that was closed next, of a closed entry.
    next: AtomicU32,
    value: T,
}

/// What changes when an entry is added or closed.
#[derive(Clone, Copy)]
struct Places {
    /// Number of places that were ever used.
    used: u32,
    /// Number of closed places, in a list from the one that was closed first to the one that was closed last.
    closed: u32,
    oldest: u32,
    newest: u32,
}

/// A table of handles; ids begin at 1.
pub struct HandleTable<T: 'static> {
    blocks: [AtomicPtr<Block<Entry<T>>>; BLOCKS],
    places: ForkSafeLock<Places>,
}

impl<T: Sync> Default for HandleTable<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Sync> HandleTable<T> {
    /// An empty table.
    pub const fn new() -> Self {
        let places = Places { used: 0, closed: 0, oldest: 0, newest: 0 };
        Self { blocks: [const { AtomicPtr::new(std::ptr::null_mut()) }; BLOCKS], places: ForkSafeLock::new(places) }
    }

    /// The last entry in the place of an id.
    #[inline]
    fn last(&self, id: u32) -> Option<&'static Entry<T>> {
        let index = (id & PLACE_MASK).checked_sub(1)? as usize;
        let block = self.blocks.get(index / BLOCK)?.observe();
        // SAFETY: stored by `place`, never freed.
        let entry = unsafe { block.as_ref() }?[index % BLOCK].observe();
        // SAFETY: an entry is stored by `put`, and freed when its place is used again: see the head of the file.
        unsafe { entry.as_ref() }
    }

    /// The entry with this id.
    #[inline]
    pub fn get(&self, id: u32) -> Option<&'static T> {
        // Relaxed: `observe` above made the entry visible.
        self.last(id).filter(|entry| entry.open.load(Ordering::Relaxed) == id).map(|entry| &entry.value)
    }

    /// The word with the address of an entry. `None`: the table has no such place.
    fn place(&self, place: u32) -> Option<&AtomicPtr<Entry<T>>> {
        let index = place.checked_sub(1)? as usize;
        let slot = self.blocks.get(index / BLOCK)?;
        let mut block = slot.observe();
        if block.is_null() {
            block = Box::into_raw(Box::new([const { AtomicPtr::new(std::ptr::null_mut()) }; BLOCK]));
            slot.publish(block);
        }
        // SAFETY: a block is never freed.
        Some(unsafe { &(&*block)[index % BLOCK] })
    }

    fn put(&self, id: u32, value: T) -> Option<u32> {
        let place = self.place(id & PLACE_MASK)?;
        let entry = Entry { own: id, open: AtomicU32::new(id), next: AtomicU32::new(0), value };
        let old = place.observe();
        place.publish(Box::into_raw(Box::new(entry)));
        if !old.is_null() {
            // SAFETY: the entry was closed, and at least `KEPT` others after it. No call uses a closed one.
            drop(unsafe { Box::from_raw(old) });
        }
        Some(id)
    }

    /// Adds the entry that `make` returns. It gets the closed entry whose place is used again, if there is one. `None`:
    /// the table is full.
    pub fn add(&self, make: impl FnOnce(Option<&T>) -> T) -> Option<u32> {
        let mut places = self.places.lock();
        if places.closed > KEPT || places.used == PLACE_MASK && places.closed > 0 {
            let entry = self.last(places.oldest)?;
            places.oldest = entry.next.load(Ordering::Relaxed);
            places.closed -= 1;
            return self.put(entry.own.wrapping_add(1 << PLACE_BITS), make(Some(&entry.value)));
        }
        if places.used == PLACE_MASK {
            return None;
        }
        places.used += 1;
        self.put(places.used, make(None))
    }

    /// Adds the entry of another copy under the id that it has there. `None`: the place is in use.
    pub fn add_as(&self, id: u32, value: T) -> Option<u32> {
        let mut places = self.places.lock();
        if self.last(id).is_some() {
            return None;
        }
        places.used = places.used.max(id & PLACE_MASK);
        self.put(id, value)
    }

    /// Closes an entry. No call may use it any more.
    pub fn close(&self, id: u32) {
        let mut places = self.places.lock();
        let Some(entry) = self.last(id).filter(|entry| entry.open.load(Ordering::Relaxed) == id) else { return };
        entry.open.store(0, Ordering::Relaxed);
        match self.last(places.newest) {
            Some(newest) if places.closed > 0 => newest.next.store(id & PLACE_MASK, Ordering::Relaxed),
            _ => places.oldest = id & PLACE_MASK,
        }
        places.newest = id & PLACE_MASK;
        places.closed += 1;
    }

    /// All open entries with their ids, in the order of their places.
    pub fn all(&self) -> impl Iterator<Item = (u32, &'static T)> {
        let used = self.places.lock().used;
        (1..=used).filter_map(|place| {
            let entry = self.last(place)?;
            (entry.open.load(Ordering::Relaxed) != 0).then_some((entry.own, &entry.value))
        })
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
