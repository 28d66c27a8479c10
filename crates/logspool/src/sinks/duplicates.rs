//! Duplicates of the program's descriptors. A forked child inherits them. The reader of a pipe sees no end as long as
//! any process can write to it. So duplicates are listed here, and a child closes the duplicates of its parent.
//!
//! This file uses atomics, although it is not part of `queue` or `stats`: the places of the list are atomics. So a
//! child can read them whatever the parent's threads were doing at the fork.

use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};

use logspool_lanes::segment::layout::MAX_SINKS;
use logspool_sys::kept::{KeptDescriptor, close_copy};

/// Duplicates by descriptor. The upper half of a word is the id of the process that created the duplicate. 0 is a free
/// place.
static PLACES: [DuplicatePlace; MAX_SINKS] =
    [const { DuplicatePlace { word: AtomicU64::new(0), inode: AtomicU64::new(0) } }; MAX_SINKS];

/// A place of the list.
#[derive(Debug)]
struct DuplicatePlace {
    word: AtomicU64,
    /// Inode of the duplicated file. A child closes nothing else.
    inode: AtomicU64,
}

/// A listed duplicate, closed when dropped.
#[derive(Debug)]
pub struct ListedDuplicate {
    file: KeptDescriptor<File>,
    /// `None`: the list was full. A child then keeps its inherited copy open.
    place: Option<&'static DuplicatePlace>,
}

impl ListedDuplicate {
    /// Adds a new duplicate to the list.
    pub fn new(file: File) -> Self {
        let file = KeptDescriptor::new(file);
        let word = u64::from(std::process::id()) << 32 | u64::from(file.number() as u32);
        let take = |place: &&DuplicatePlace| {
            place.word.compare_exchange(0, word, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        };
        let place = PLACES.iter().find(take);
        if let (Some(place), Some(identity)) = (place, file.identity()) {
            place.inode.store(identity.inode, Ordering::Relaxed);
        }
        Self { place, file }
    }

    /// The descriptor. `None`: the program has closed it.
    pub fn descriptor(&self) -> Option<RawFd> {
        self.file.get().ok().map(File::as_raw_fd)
    }
}

impl Drop for ListedDuplicate {
    fn drop(&mut self) {
        // The place is freed before the descriptor is closed: afterwards the number may refer to another file. Relaxed:
        // a child without this store does not have the close either, because both fork and close take the kernel's lock
        // of the table.
        if let Some(place) = self.place {
            place.word.store(0, Ordering::Relaxed);
        }
    }
}

/// Call in a forked child: closes the duplicates of its parent. The parent has closed those of the grandparent, unless
/// it did not notice its own fork. In that case the numbers may refer to other files.
pub fn close_inherited() {
    let parent = u64::from(std::os::unix::process::parent_id());
    for place in &PLACES {
        let word = place.word.load(Ordering::Relaxed);
        if word != 0 && word >> 32 == parent {
            place.word.store(0, Ordering::Relaxed);
            close_copy(word as u32 as RawFd, place.inode.load(Ordering::Relaxed));
        }
    }
}
