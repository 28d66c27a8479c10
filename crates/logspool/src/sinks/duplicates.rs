//! Duplicates of the program's descriptors. A forked child inherits them. The reader of a pipe sees no end as long as
//! any process can write to it. So duplicates are listed here, and a child closes the duplicates of its parent.
//!
//! This file uses atomics, although it is not part of `queue` or `stats`: the places of the list are atomics. So a
//! child can read them whatever the parent's threads were doing at the fork.

use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};

use logspool_lanes::segment::layout::MAX_SINKS;

/// Duplicates by descriptor. The upper half of a word is the id of the process that created the duplicate. 0 is a free
/// place.
static PLACES: [AtomicU64; MAX_SINKS] = [const { AtomicU64::new(0) }; MAX_SINKS];

/// A listed duplicate, closed when dropped.
#[derive(Debug)]
pub struct ListedDuplicate {
    file: File,
    /// `None`: the list was full. A child then keeps its inherited copy open.
    place: Option<&'static AtomicU64>,
}

impl ListedDuplicate {
    /// Adds a new duplicate to the list.
    pub fn new(file: File) -> Self {
        let word = u64::from(std::process::id()) << 32 | u64::from(file.as_raw_fd() as u32);
        let take = |place: &&AtomicU64| place.compare_exchange(0, word, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        Self { place: PLACES.iter().find(take), file }
    }

    /// The descriptor's number.
    pub fn descriptor(&self) -> RawFd {
        self.file.as_raw_fd()
    }
}

impl Drop for ListedDuplicate {
    fn drop(&mut self) {
        // The place is freed before the descriptor is closed: afterwards the number may refer to another file. Relaxed:
        // a child without this store does not have the close either, because both fork and close take the kernel's lock
        // of the table.
        if let Some(place) = self.place {
            place.store(0, Ordering::Relaxed);
        }
    }
}

/// Call in a forked child: closes the duplicates of its parent. The parent has closed those of the grandparent, unless
/// it did not notice its own fork. In that case the numbers may refer to other files.
pub fn close_inherited() {
    let parent = u64::from(std::os::unix::process::parent_id());
    for place in &PLACES {
        let word = place.load(Ordering::Relaxed);
        if word != 0 && word >> 32 == parent {
            place.store(0, Ordering::Relaxed);
            // SAFETY: the child's own copy of the descriptor; the child never uses the sink that owned it.
            unsafe { libc::close(word as u32 as RawFd) };
        }
    }
}
